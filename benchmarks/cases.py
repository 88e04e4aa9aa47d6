"""What is measured. Every comparison first checks that both ways compute the same thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, Data, arm, record
from benchmarks.peers import OUR_ORDER, Figaroh, Pinocchio
from benchmarks.timing import interleaved, one_core

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Parameters
    ----------
    what : str
        What was measured.
    value : float or None
        The figure, or None when it could not be measured.
    unit : str
        "x" (times faster than the peer), "MB", "s", "ms" or "us".
    target : float or None
        Bound that the figure should keep; None when it is for information.
    detail : str
        Circumstances: peer, times, samples.
    """

    what: str
    value: float | None
    unit: str
    target: float | None
    detail: str

    @property
    def passed(self) -> bool | None:
        """Whether the target is met; None without a target or a figure."""
        if self.value is None or self.target is None:
            return None
        return bool(self.value >= self.target if self.unit == "x" else self.value < self.target)


def agree(ours: Array, peer: Array, tolerance: float, what: str) -> None:
    """Stop the benchmark when two results differ: a benchmark that computes something else is worthless."""
    worst = float(np.max(np.abs(ours - peer))) / float(np.max(np.abs(peer)))
    if not worst < tolerance:
        raise AssertionError(f"{what}: ours and the peer's differ by {worst:.2g} of the largest value, more than {tolerance:g}")


def compare(
    what: str, peer: Callable[[], object], ours: Callable[[], object], repeats: int, target: float | None, peer_name: str
) -> Result:
    """Time both and return their ratio."""
    slow, fast = interleaved(peer, ours, repeats)
    return Result(what, slow / fast, "x", target, f"{peer_name} {1e3 * slow:.1f} ms, ours {1e3 * fast:.1f} ms")


def identify(robot: di.Mechanism, data: Data) -> di.Fit:
    """Return the weighted fit, everything from the base parameters on included."""
    evidence = di.Regression.from_motion(robot, data.motion, data.effort, di.base_parameters(robot))
    return di.WLS().fit(evidence).result_


def identification(samples: int, repeats: int) -> list[Result]:
    """From motion and torque to base parameters and WLS, against Pinocchio + stored matrix + pivoted QR + lstsq."""
    robot, peer, data, test = arm(), Pinocchio(URDF), record(arm(), samples), record(arm(), 500, seed=9)
    q, v, a = data.motion.q, data.motion.v, data.motion.a

    fit, estimate = identify(robot, data), peer.identify(q, v, a, data.effort)
    if fit.values.size != estimate.values.size:
        raise AssertionError(f"ours has {fit.values.size} base parameters and the peer {estimate.values.size}")
    W = peer.full_regressor(test.motion.q, test.motion.v, test.motion.a)
    # The two weights differ by the degrees of freedom charged to each joint, a relative 1/N.
    agree(fit.predict(test.motion).effort, W[:, :, estimate.columns] @ estimate.values, 5.0 / samples, "identification")

    label = f"motion and torque to WLS, {samples} samples"
    usual = "Pinocchio loop + QR + lstsq"
    results = [compare(label, lambda: peer.identify(q, v, a, data.effort), lambda: identify(robot, data), repeats, 12.0, usual)]
    with one_core():
        results.append(
            compare(
                label + ", both on one core",
                lambda: peer.identify(q, v, a, data.effort),
                lambda: identify(robot, data),
                max(1, repeats - 1),
                None,
                usual,
            )
        )
    evidence = di.Regression.from_motion(robot, data.motion, data.effort)
    stored = peer.full_regressor(q, v, a).reshape(samples * robot.dof, -1)[:, estimate.columns]
    y = data.effort.ravel()
    results.append(
        compare(
            "WLS again from the evidence (OLS + re-weighting)",
            lambda: np.linalg.lstsq(stored, y, rcond=None),
            lambda: di.WLS(iterations=1).fit(evidence),
            repeats,
            None,
            "one lstsq on the stored matrix",
        )
    )
    return results


def mechanics(samples: int, repeats: int) -> list[Result]:
    """Regressor, inverse and forward dynamics and mass matrix, against Pinocchio called in a loop."""
    full, peer, data = arm(), Pinocchio(URDF), record(arm(), samples)
    robot, motion = full.with_terms(()), data.motion
    q, v, a, n = motion.q, motion.v, motion.a, full.dof
    out = np.zeros((samples, n, 10 * n))
    tau = di.inverse_dynamics(robot, motion)

    columns = [10 * body + k for body in range(n) for k in OUR_ORDER]
    agree(di.regressor(robot, motion), peer.regressor(q, v, a, out)[:, :, columns], 1e-10, "regressor")
    agree(tau, peer.inverse_dynamics(q, v, a), 1e-10, "inverse dynamics")
    agree(di.mass_matrix(robot, q), peer.mass_matrix(q), 1e-10, "mass matrix")
    agree(di.forward_dynamics(robot, q, v, tau), peer.forward_dynamics(q, v, tau), 1e-8, "forward dynamics")

    rows: list[tuple[str, Callable[[], object], Callable[[], object], float | None, str]] = [
        ("regressor", lambda: peer.regressor(q, v, a, out), lambda: di.regressor(robot, motion), 5.0, "Pinocchio loop"),
        (
            "regressor with friction, rotor, offset",
            lambda: peer.full_regressor(q, v, a),
            lambda: di.regressor(full, motion),
            None,
            "Pinocchio loop",
        ),
        (
            "inverse_dynamics",
            lambda: peer.inverse_dynamics(q, v, a),
            lambda: di.inverse_dynamics(robot, motion),
            6.0,
            "rnea loop",
        ),
        (
            "inverse_dynamics with friction, rotor, offset",
            lambda: peer.inverse_dynamics(q, v, a),
            lambda: di.inverse_dynamics(full, motion, np.ones(len(full.parameters))),
            None,
            "rnea loop without them",
        ),
        ("mass_matrix", lambda: peer.mass_matrix(q), lambda: di.mass_matrix(robot, q), None, "crba loop"),
        (
            "forward_dynamics",
            lambda: peer.forward_dynamics(q, v, tau),
            lambda: di.forward_dynamics(robot, q, v, tau),
            3.0,
            "aba loop",
        ),
    ]
    results = [compare(what, other, ours, repeats, target, name) for what, other, ours, target, name in rows]
    with one_core():
        for what, other, ours, target, name in rows:
            if target is not None:
                results.append(compare(what + ", both on one core", other, ours, max(1, repeats - 1), None, name))
    return results


def figaroh(samples: int, repeats: int) -> list[Result]:
    """The same identification by FIGAROH's public functions, on fewer samples: it is slow, and linear in them."""
    what = f"motion and torque to base parameters, {samples} samples"
    try:
        peer = Figaroh(Pinocchio(URDF))
    except ImportError as error:
        return [Result(what, None, "x", None, f"FIGAROH is not installed ({error.name})")]
    robot, data = arm(), record(arm(), samples)
    q, v, a = data.motion.q, data.motion.v, data.motion.a
    evidence = di.Regression.from_motion(robot, data.motion, data.effort)
    ours = di.OLS().fit(evidence).result_.predict(data.motion).effort
    agree(ours, peer.identify(q, v, a, data.effort), 1e-6, "FIGAROH's least squares")
    return [
        compare(
            what,
            lambda: peer.identify(q, v, a, data.effort),
            lambda: identify(robot, data),
            repeats,
            None,
            "FIGAROH (OLS only, ours with WLS)",
        )
    ]


def _worker(*arguments: str, **environment: str) -> dict[str, float]:
    """Run benchmarks.worker in a fresh process and return what it measured."""
    root = Path(__file__).resolve().parent.parent
    source = os.pathsep.join([str(root), str(Path(di.__file__).resolve().parent.parent)])
    variables = {**os.environ, "PYTHONPATH": source, **environment}
    command = [sys.executable, "-m", "benchmarks.worker", *arguments]
    done = subprocess.run(command, env=variables, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


def memory(sizes: tuple[int, ...]) -> list[Result]:
    """Peak memory of the identification beyond its input, each in a fresh process with compiled kernels."""
    results = []
    for samples in sizes:
        extra = _worker("memory", "ours", str(samples)).get("extra")
        results.append(Result(f"memory of the identification, {samples} samples", extra, "MB", 50.0, "peak beyond the input"))
    extra = _worker("memory", "peer", str(sizes[0])).get("extra")
    results.append(Result(f"memory of the usual way, {sizes[0]} samples", extra, "MB", None, "Pinocchio loop + QR + lstsq"))
    return results


def startup(repeats: int) -> list[Result]:
    """Import, first use with compilation, and later uses, each in a fresh process."""
    imports = [_worker("import") for _ in range(repeats)]
    with tempfile.TemporaryDirectory() as cache:
        first = _worker("first", "1000", DYNIDENT_CACHE=cache)
        later = [_worker("first", "1000", DYNIDENT_CACHE=cache) for _ in range(repeats)]
    with tempfile.TemporaryDirectory() as cache:  # a long log also compiles the streaming QR
        long = _worker("first", "20000", DYNIDENT_CACHE=cache)
    small = "import to WLS fit and prediction, 1000 samples"
    return [
        Result("import dynident", min(r["package"] for r in imports), "s", 1.0, "names load on first use"),
        Result("import of every public name", min(r["names"] for r in imports), "s", None, "without scipy"),
        Result("first use after install", first["seconds"], "s", 15.0, small + ", kernels compiled"),
        Result("first use after install, long log", long["seconds"], "s", 15.0, "the same with 20 000 samples"),
        Result("a later process", min(r["seconds"] for r in later), "s", 2.0, small + ", kernels from disk"),
    ]
