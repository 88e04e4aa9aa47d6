"""Closed forms: time to derive, generated C against Pinocchio's loop, generated numba kernels against the generic ones."""

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
from benchmarks.timing import one_core
from dynident.mechanics.batch import sealed
from dynident.mechanics.generated import kernel_of
from dynident.symbolic import CSources, compile_kernel, derive, to_c

Array = NDArray[np.float64]

DATA = Path(os.environ.get("DYNIDENT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SEVEN = [
    (0.0, s * np.pi / 2, d, 0.0) for s, d in zip((0, 1, -1, -1, 1, 1, -1), (0.31, 0.0, 0.4, 0.0, 0.39, 0.0, 0.08), strict=True)
]
TILE = 512  # samples of regressor_rows at a time, as the regression takes them


def cases(samples: int, repeats: int) -> list[Result]:
    """Return everything that is measured about closed forms."""
    return [*derivation(repeats), *generated_c(samples, repeats), *generated_numba(samples, repeats)]


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


def generated_numba(samples: int, repeats: int) -> list[Result]:
    """Generated kernels against the generic ones, both compiled by numba and on one core."""
    robot, motion = arm().with_terms(()), record(arm(), samples).motion
    columns = di.base_parameters(robot).columns
    q, v, a, phi = (sealed(np.ascontiguousarray(x)) for x in (motion.q, motion.v, motion.a, robot.parameters.values))
    generic = kernel_of(robot)
    start = perf_counter()
    own = compile_kernel(robot, columns.tolist())
    slot = np.full(len(robot.parameters), -1)
    slot[columns] = np.arange(columns.size)
    tau, W = np.empty((2, *q.shape)), np.zeros((2, robot.dof, columns.size, TILE))
    own.inverse_dynamics(phi, q, v, a, tau[0])
    own.regressor_rows(q[:TILE], v[:TILE], a[:TILE], slot, W[0])
    compiled = perf_counter() - start
    generic.inverse_dynamics(phi, q, v, a, tau[1])
    generic.regressor_rows(q[:TILE], v[:TILE], a[:TILE], slot, W[1])
    agree(tau[0], tau[1], 1e-12, "generated inverse dynamics")
    agree(W[0], W[1], 1e-12, "generated regressor rows")

    def rows(kernel: di.mechanics.Kernel, out: Array) -> None:
        for i in range(0, samples - TILE + 1, TILE):
            kernel.regressor_rows(q[i : i + TILE], v[i : i + TILE], a[i : i + TILE], slot, out)

    results = [Result("generated numba kernels: generate and compile", compiled, "s", 20.0, "6 axes, base columns")]
    with one_core():
        results.append(
            compare(
                "generated numba kernel: inverse dynamics",
                lambda: generic.inverse_dynamics(phi, q, v, a, tau[1]),
                lambda: own.inverse_dynamics(phi, q, v, a, tau[0]),
                repeats,
                2.0,
                "generic kernel",
            )
        )
        results.append(
            compare(
                "generated numba kernel: base regressor, rows",
                lambda: rows(generic, W[1]),
                lambda: rows(own, W[0]),
                repeats,
                2.0,
                "generic kernel",
            )
        )
    return results
