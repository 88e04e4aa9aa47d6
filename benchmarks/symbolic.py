"""Closed forms: time to derive, generated C against Pinocchio's loop."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, arm, record
from benchmarks.cases import Result, agree, compare
from benchmarks.peers import OUR_ORDER, Pinocchio
from dynident.symbolic import derive, to_c
from dynident.symbolic.printers import CSources

Array = NDArray[np.float64]

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SEVEN = [
    (0.0, s * np.pi / 2, d, 0.0) for s, d in zip((0, 1, -1, -1, 1, 1, -1), (0.31, 0.0, 0.4, 0.0, 0.39, 0.0, 0.08), strict=True)
]


def cases(samples: int, repeats: int) -> list[Result]:
    """Return all results about closed forms."""
    return [*derivation(repeats), *generated_c(samples, repeats)]


def derivation(repeats: int) -> list[Result]:
    """From a description to the C source of the regressor."""
    robots: list[tuple[str, float, Callable[[], di.Mechanism]]] = [
        ("6 axes, benchmark arm", 3.0, arm),
        ("7 axes, DH table", 5.0, lambda: di.Mechanism.from_dh(SEVEN, convention="modified")),
    ]
    for label, limit, file in (
        ("6 axes, UR10", 3.0, "ur10_petrone2025/ur10_robot"),
        ("7 axes, LWR4", 5.0, "kuka_lwr4_flobaroid/kuka_lwr4"),
    ):
        path = DATA / f"{file}.urdf"
        if path.is_file():
            robots.append((label, limit, lambda path=path: di.Mechanism.from_urdf(path)))  # type: ignore[misc]
    results = []
    for label, limit, read in robots:
        best, detail = float("inf"), ""
        for _ in range(max(1, repeats)):
            start = perf_counter()
            program = derive(read(), ["regressor"])
            text = to_c(program).source
            best = min(best, perf_counter() - start)
            detail = f"{program.operations().total} operations, {len(text) // 1000} kB of C"
        results.append(Result(f"description to C of the regressor, {label}", best, "s", limit, detail))
    return results


@contextmanager
def library(sources: CSources, *flags: str) -> Iterator[ctypes.CDLL]:
    """Compile generated C and load it."""
    with tempfile.TemporaryDirectory() as folder:
        for file, text in sources.files.items():
            (Path(folder) / file).write_text(text)
        binary = Path(folder) / "library.so"
        source = Path(folder) / f"{sources.name}.c"
        subprocess.run(
            ["gcc", "-std=c99", "-O3", *flags, "-shared", "-fPIC", str(source), "-o", str(binary), "-lm"], check=True
        )
        yield ctypes.CDLL(str(binary))


def generated_c(samples: int, repeats: int) -> list[Result]:
    """Base regressor and inverse dynamics in C (gcc -O3, one thread) against Pinocchio called in a loop."""
    if shutil.which("gcc") is None:
        return [Result("generated C", None, "x", None, "gcc is not installed")]
    robot, peer, motion = arm().with_terms(()), Pinocchio(URDF), record(arm(), samples).motion
    q, v, a, phi = (np.ascontiguousarray(x) for x in (motion.q, motion.v, motion.a, robot.parameters.values))
    program = derive(robot, ["inverse_dynamics", "base_regressor"])
    assert program.regrouping is not None
    W, tau = np.empty((samples, *program["base_regressor"].shape)), np.empty_like(q)
    out = np.zeros((samples, robot.dof, 10 * robot.dof))

    def pointer(x: Array) -> ctypes.c_void_p:
        return ctypes.c_void_p(x.ctypes.data)

    results = []
    with library(to_c(program, "bench")) as code:

        def regressor() -> None:
            code.bench_base_regressor_batch(ctypes.c_size_t(samples), pointer(q), pointer(v), pointer(a), pointer(W))

        def torques() -> None:
            inputs = (pointer(x) for x in (q, v, a, phi, tau))
            code.bench_inverse_dynamics_batch(ctypes.c_size_t(samples), *inputs)

        regressor()
        torques()
        columns = [10 * body + k for body in range(robot.dof) for k in OUR_ORDER]
        full = peer.regressor(q, v, a, out)[:, :, columns]
        agree(W, full[:, :, list(program.regrouping.columns)], 1e-10, "generated base regressor")
        agree(tau, peer.inverse_dynamics(q, v, a), 1e-10, "generated inverse dynamics")
        results.append(
            compare(
                "generated C: base regressor", lambda: peer.regressor(q, v, a, out), regressor, repeats, 8.0, "Pinocchio loop"
            )
        )
        results.append(
            compare(
                "generated C: inverse dynamics", lambda: peer.inverse_dynamics(q, v, a), torques, repeats, 10.0, "rnea loop"
            )
        )
    return results
