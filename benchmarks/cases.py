"""Measured cases. Every comparison first checks that both sides compute the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, Data, arm, record
from benchmarks.peers import OUR_ORDER, Figaroh, Pinocchio
from benchmarks.timing import interleaved, one_core, peak_extra
from dynident.identify.regression.factor import CACHE, Workspace
from dynident.identify.regression.rows import Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Parameters
    ----------
    what : str
        Measured quantity.
    value : float or None
        The figure, or None when it could not be measured.
    unit : str
        "x" (times faster than the peer, at least), "of" (share of a reference, at most), "MB", "s", "ms", "us", "files" or
        "lines".
    target : float or None
        Bound of the figure; None when it is for information.
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
        return bool(self.value >= self.target if self.unit == "x" else self.value <= self.target)


def agree(ours: Array, peer: Array, tolerance: float, what: str) -> None:
    """Stop the benchmark when two results differ: timing of different results is meaningless."""
    worst = float(np.max(np.abs(ours - peer))) / float(np.max(np.abs(peer)))
    if not worst < tolerance:
        raise AssertionError(f"{what}: ours and the peer's differ by {worst:.2g} of the largest value, more than {tolerance:g}")


def compare(
    what: str,
    peer: Callable[[], object],
    ours: Callable[[], object],
    repeats: int,
    target: float | None,
    peer_name: str,
    clock: Callable[[], float] = perf_counter,
) -> Result:
    """Time both and return their ratio."""
    slow, fast = interleaved(peer, ours, repeats, clock)
    return Result(what, slow / fast, "x", target, f"{peer_name} {1e3 * slow:.1f} ms, ours {1e3 * fast:.1f} ms")


def identify(robot: di.Mechanism, data: Data) -> di.Fit:
    """Return the weighted fit, including the computation of the base parameters."""
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
    out = np.zeros((samples, robot.dof, 10 * robot.dof))
    loop, fast = interleaved(lambda: peer.regressor(q, v, a, out), lambda: identify(robot, data), 2 * repeats)
    detail = f"Pinocchio's regressor loop alone {1e3 * loop:.1f} ms, ours {1e3 * fast:.1f} ms"
    results = [Result(f"{label}, share of Pinocchio's regressor loop", fast / loop, "of", 0.12, detail)]
    usual = "Pinocchio loop + QR + lstsq"
    few = max(1, repeats // 2)
    results.append(compare(label, lambda: peer.identify(q, v, a, data.effort), lambda: identify(robot, data), few, None, usual))
    results.append(base_rows(robot, peer, data, repeats))
    evidence = di.Regression.from_motion(robot, data.motion, data.effort)
    stored = peer.full_regressor(q, v, a).reshape(samples * robot.dof, -1)[:, estimate.columns]
    y = data.effort.ravel()
    results.append(
        compare(
            "WLS again from the regression data (OLS + re-weighting)",
            lambda: np.linalg.lstsq(stored, y, rcond=None),
            lambda: di.WLS(iterations=1).fit(evidence),
            repeats,
            None,
            "one lstsq on the stored matrix",
        )
    )
    return [*results, default_fit(robot, data, samples, few)]


def long_log(samples: int) -> list[Result]:
    """Preparing, choosing the band, compressing and fitting a long log: processor time, and memory beyond its arrays."""
    robot = arm()

    def recorded(count: int) -> di.Log:
        data, noise = record(robot, count), np.random.default_rng(2).standard_normal((count, robot.dof))
        return di.Log(data.motion.t, robot.coordinate_names, data.motion.q + 1e-5 * noise, data.effort, "joint_torque")

    def work(log: di.Log) -> float:
        start = process_time()
        di.MAP().fit(di.Regression.from_logs(robot, [log]))
        return process_time() - start

    work(recorded(10_000))  # compiles
    log, seconds = recorded(samples), list[float]()
    memory = peak_extra(lambda: seconds.append(work(log)))
    label, detail = f"from_logs + MAP, {samples} samples", f"{log.position.nbytes / 1e6:.0f} MB of positions"
    results = [
        Result(label, seconds[0], "s", 4.0, detail),
        Result(f"{label}: memory beyond the log", memory, "MB", 60.0, detail),
    ]
    return [*results, mcap_stream(recorded(samples // 10))]


def mcap_stream(log: di.Log) -> Result:
    """Read an MCAP file piece by piece, against its decoder alone, by processor time."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    def decoder() -> int:
        with path.open("rb") as stream:
            return sum(1 for _ in make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages())

    with TemporaryDirectory() as folder:
        path = log.save(Path(folder) / "log.mcap")
        ours = lambda: sum(map(len, di.Log.stream(path, effort="joint_torque")))  # noqa: E731 - one expression
        slow, fast = interleaved(decoder, ours, 2, process_time)
    detail = f"{len(log)} messages; mcap_ros2 {slow:.2f} s, ours {fast:.2f} s"
    return Result("stream of an MCAP file, over its decoder alone", fast / slow, "of", 1.0, detail)


def default_fit(robot: di.Mechanism, data: Data, samples: int, repeats: int) -> Result:
    """The default estimator against plain WLS, both from motion and torque; the extra time is independent of the samples."""

    def way(estimator: type[di.WLS] | type[di.MAP]) -> Callable[[], object]:
        return lambda: estimator().fit(di.Regression.from_motion(robot, data.motion, data.effort))

    plain, default = interleaved(way(di.WLS), way(di.MAP), 2 * repeats)
    detail = f"WLS {1e3 * plain:.1f} ms, default {1e3 * default:.1f} ms"
    return Result(f"default fit over WLS, {samples} samples", default / plain, "of", 3.0, detail)


def base_rows(robot: di.Mechanism, peer: Pinocchio, data: Data, repeats: int) -> Result:
    """The equations of a fit, tile by tile into the same memory, against Pinocchio's loop; both on one core."""
    rows, base = Rows(robot), di.base_parameters(robot)
    compiled = rows.compiled(base.columns)
    samples, motion = len(data.motion), data.motion
    length = CACHE // (8 * compiled.height) // 32 * 32
    tile = Workspace().rows("rows", compiled.height, length)
    out = np.zeros((length, robot.dof, 10 * robot.dof))

    def ours() -> None:
        write = compiled.over(motion, data.effort)(tile)
        for first in range(0, samples, length):
            write(slice(first, min(first + length, samples)), None)

    def theirs() -> None:
        for first in range(0, samples, length):
            part = motion[first : first + length]
            peer.regressor(part.q, part.v, part.a, out)

    with one_core():
        return compare(
            "base regressor, tile by tile, both on one core", theirs, ours, 2 * repeats, 50.0, "Pinocchio loop", process_time
        )


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
        ("regressor", lambda: peer.regressor(q, v, a, out), lambda: di.regressor(robot, motion), None, "Pinocchio loop"),
        ("inverse_dynamics", lambda: peer.inverse_dynamics(q, v, a), lambda: di.inverse_dynamics(robot, motion), 30.0, "rnea"),
        ("mass_matrix", lambda: peer.mass_matrix(q), lambda: di.mass_matrix(robot, q), None, "crba loop"),
        ("forward_dynamics", lambda: peer.forward_dynamics(q, v, tau), lambda: di.forward_dynamics(robot, q, v, tau), None, ""),
    ]  # fmt: skip
    with one_core():
        results = [
            compare(what + ", both on one core", other, ours, repeats, target, name) for what, other, ours, target, name in rows
        ]
        results += in_parallel(peer, robot, motion, tau, repeats)
    return [*results, filled(full, motion, repeats), one_motion()]


def in_parallel(peer: Pinocchio, robot: di.Mechanism, motion: di.Motion, tau: Array, repeats: int) -> list[Result]:
    """Compare with Pinocchio's functions for batches, both with one thread."""
    pool = peer.pin.ModelPool(peer.model, 1)
    q, v, a, f = (np.asfortranarray(x.T) for x in (motion.q, motion.v, motion.a, tau))
    theirs = {
        "inverse_dynamics": (lambda: peer.pin.rneaInParallel(1, pool, q, v, a), "rneaInParallel", 8.5),
        "forward_dynamics": (lambda: peer.pin.abaInParallel(1, pool, q, v, f), "abaInParallel", None),
    }
    ours: dict[str, Callable[[], Array]] = {
        "inverse_dynamics": lambda: di.inverse_dynamics(robot, motion),
        "forward_dynamics": lambda: di.forward_dynamics(robot, motion.q, motion.v, tau),
    }
    results = []
    for what, (other, name, target) in theirs.items():
        agree(ours[what](), other().T, 1e-8, name)
        results.append(compare(f"{what}, one thread each", other, ours[what], repeats, target, name))
    return results


def one_motion(calls: int = 2000) -> Result:
    """Time the constructor of a `Motion` of one sample, as in a loop over samples."""
    t, q = np.zeros(1), np.zeros((1, 6))
    best = float("inf")
    for _ in range(5):
        start = perf_counter()
        for _ in range(calls):
            di.Motion(t, q, q, q)
        best = min(best, perf_counter() - start)
    return Result("first constructor of Motion", 1e6 * best / calls, "us", 20.0, f"one sample, best mean of {calls} calls")


def filled(robot: di.Mechanism, motion: di.Motion, repeats: int) -> Result:
    """All columns of the regressor into allocated memory, against filling this memory with a number."""
    W = di.regressor(robot, motion)
    fill, ours = interleaved(lambda: W.fill(1.0), lambda: di.regressor(robot, motion, out=W), 2 * repeats)
    detail = f"{W.nbytes / 1e6:.0f} MB: fill {1e3 * fill:.1f} ms, ours {1e3 * ours:.1f} ms"
    return Result("regressor with out=, all columns, over a plain fill", ours / fill, "of", 2.0, detail)


def figaroh(samples: int, repeats: int) -> list[Result]:
    """The same identification by FIGAROH's public functions, on fewer samples: its time is long, and linear in them."""
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
