"""Accuracy of the defaults on unknown robots: ``python -m benchmarks.truth [FOLDER_WITH_THE_RECORDINGS] [--only 1,8]``.

Measurements, one default configuration, no option anywhere; 1, 2, 7, 8, 9 and 13 need the recordings:

1. held-out error and coverage on public recordings;
2. extrapolation: trained on the slow stretches of a log, judged on its fast ones;
3. virtual robots (`benchmarks.population`): error compared with least squares and the description, coverage;
4. independent runs of the same virtual robot: by how many stated deviations their parameters differ;
5. one slow move of 8 s to train, another one to judge: coverage for a log with little information;
6. one motion repeated for 150 s to train, another one to judge: periods show noise, not model error;
7. mass of a load behind a wrist sensor whose bias drifts;
8. to 12. (`benchmarks.truth_machines`): pairs of runs, robots without masses, machines of papers, time of the default fit;
13. automatic friction (`--friction auto`) compared with the default: held-out errors and time;
14. virtual robots whose friction changes from run to run: what one run and four runs show of the next one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynident as di
from benchmarks.population import Case, motion, move, population, record
from benchmarks.shared_logs import ROBOTS
from benchmarks.truth_machines import (
    automatic_friction,
    between_runs,
    cost,
    lwr4_pairs,
    stepping_drives,
    two_tanh,
    without_masses,
)
from dynident.errors import DynidentError
from dynident.identify import payload_from_wrench
from dynident.validate import judge

Array = NDArray[np.float64]
STRETCHES = 8


@dataclass(frozen=True)
class Judged:
    """Errors of three models on one held-out log.

    Parameters
    ----------
    free, default, description : float
        ||e|| / ||tau|| of weighted least squares, of the default and of the untouched description.
    coverage : float
        Share of the measurements within two standard deviations of the default.
    every : float
        Error of the default over all samples, not low-passed.
    in_noise : tuple of float
        Root mean square error of least squares and of the default in units of each joint's noise: all joints count equally.
    clear : float
        Excess error of the default over the description in standard errors, from squared errors of eight stretches.
    """

    free: float
    default: float
    description: float
    coverage: float
    every: float
    in_noise: tuple[float, float]
    clear: float


def judged(robot: di.Mechanism, train: Sequence[di.Log], tests: Iterable[di.Log]) -> tuple[di.Fit, list[Judged]]:
    """Fit the default to the training logs and judge it on each test."""
    evidence = di.Regression.from_logs(robot, list(train))
    fit = di.MAP().fit(evidence).result_
    free = di.WLS().fit(evidence).result_
    described = free.altered(values=evidence.base.values(evidence.mechanism.parameters.values))
    rows = []
    for log in tests:
        score = fit.score(log)
        # The log is known not to be training data; a model of zeros cannot distinguish a run from its copy.
        others = [model.score(log, allow_training=True) for model in (free, described)]
        errors = [each.metrics.relative for each in others]
        noise = [float(np.sqrt(np.mean((left(each) / fit.sigma) ** 2))) for each in (others[0], score)]
        clear = standard_errors(left(score), left(others[1]))
        every = score.all_samples.relative
        rows.append(Judged(errors[0], score.metrics.relative, errors[1], score.coverage, every, (noise[0], noise[1]), clear))
    return fit, rows


def left(score: di.Score) -> Array:
    """Return the residuals of the measured efforts, (M, n)."""
    return np.asarray(score.measured - score.predicted)


def standard_errors(one: Array, other: Array) -> float:
    """Return mean over standard error of the difference of squared errors, stretch by stretch."""
    pieces = zip(np.array_split(one, STRETCHES), np.array_split(other, STRETCHES), strict=True)
    difference = np.array([np.sum(a**2) - np.sum(b**2) for a, b in pieces])
    return float(difference.mean() / (difference.std(ddof=1) / np.sqrt(STRETCHES)))


def shared_logs(data: Path) -> None:
    """Print the table of the public recordings."""
    print("\n1. public recordings\n")
    heads = ("robot", "base parameters", "training", "held out", "least squares", "description", "coverage", "all samples")
    print(f"| {' | '.join((*heads, 'band Hz', 'RMSE, all samples', 'verdict', 's'))} |\n|{'---|' * (len(heads) + 4)}")
    for name, make in ROBOTS.items():
        shared = make(data)
        start = time.perf_counter()
        fit, rows = judged(shared.robot, shared.train, shared.test)
        spent = time.perf_counter() - start
        scores = [fit.score(log) for log in shared.test]
        cells = [" / ".join(f"{100 * getattr(r, key):.2f}" for r in rows) for key in ("default", "free", "description")]
        cells += [" / ".join(f"{100 * getattr(r, key):.{k}f}" for r in rows) for key, k in (("coverage", 0), ("every", 2))]
        rmse = " ".join(f"{x:.3g}" for x in scores[0].all_samples.rmse)
        ok = "ok" if judge(fit, scores).ok else "refused"
        band = f"{fit.sources[0]['bandwidth']:.3g}"
        line = [name, str(fit.base.rank), f"{100 * fit.training_relative:.2f}", *cells]
        print(f"| {' | '.join([*line, band, rmse, ok, f'{spent:.1f}'])} |", flush=True)


def slow_to_fast(logs: Sequence[di.Log]) -> tuple[list[di.Log], list[di.Log]]:
    """Return the slow half and the fastest quarter of the stretches of logs; short runs are stretches themselves."""
    pieces = []
    for log in logs:
        edges = np.linspace(0, len(log), max(STRETCHES // len(logs), 1) + 1).astype(int)
        pieces += [log.rows(int(a), int(b)) for a, b in pairwise(edges)]
    speeds = [float(np.sqrt(np.mean((np.diff(p.position, axis=0) / np.diff(p.t)[:, None]) ** 2))) for p in pieces]
    order = np.argsort(speeds)
    half, quarter = len(order) // 2, len(order) // 4
    return [pieces[i] for i in sorted(order[:half])], [pieces[i] for i in sorted(order[-quarter:])]


def extrapolation(data: Path) -> None:
    """Print errors and coverage on the fast part of logs, trained on their slow part."""
    print("\n2. slow stretches -> fast stretches: least squares, default, description; coverage")
    for name in ("EMPS", "LWR4+", "UR10", "TX40", "LBR Med 7", "double pendulum"):
        shared = ROBOTS[name](data)
        train, test = slow_to_fast([*shared.train, *shared.test])
        show(name, shared.robot, train, test)
    for case in population(5, seed=7):
        show(case.name, case.described, [case.slow], [case.fast])


def show(name: str, robot: di.Mechanism, train: Sequence[di.Log], test: Sequence[di.Log]) -> None:
    """Print one line of the extrapolation."""
    try:
        _, rows = judged(robot, train, test)
    except DynidentError as error:
        print(f"  {name:22s} {error}")
        return
    mean = [100 * float(np.mean([getattr(r, key) for r in rows])) for key in ("free", "default", "description", "coverage")]
    print(f"  {name:22s} {mean[0]:7.2f} {mean[1]:7.2f} {mean[2]:7.2f} % ({mean[3]:.0f} %)")


def virtual(count: int) -> None:
    """Print improvement and coverage of the default over virtual robots."""
    print(f"\n3. {count} virtual robots")
    start = time.perf_counter()
    kinds = ("like", "fast", "slow")
    rows: list[tuple[Case, list[Judged]]] = []
    for case in population(count):
        rows.append((case, judged(case.described, [case.train], [getattr(case, kind) for kind in kinds])[1]))
    for poor in (False, True):
        for k, kind in enumerate(kinds):
            part = [each[k] for case, each in rows if case.poor == poor]
            ratio = np.array([r.default / r.free for r in part])
            print(
                f"  {'poor' if poor else 'good'} excitation, {kind} motion: mean error {mean(part, 'free'):.2f} -> "
                f"{mean(part, 'default'):.2f} % (description {mean(part, 'description'):.0f} %); ratio median "
                f"{np.median(ratio):.2f}, worst {ratio.max():.2f}, above 1.05: {np.sum(ratio > 1.05)} of {ratio.size}; worse "
                f"than the description: {sum(r.default > r.description for r in part)}; coverage {mean(part, 'coverage'):.1f} %"
            )
    everything = [r for _, each in rows for r in each]
    print(f"  coverage over all {mean(everything, 'coverage'):.1f} %, {time.perf_counter() - start:.0f} s")
    poorly = [r for case, each in rows for r in each if case.poor]
    print(
        f"  poor excitation: mean error {mean(poorly, 'free') / mean(poorly, 'default'):.2f} times smaller than least squares'"
    )
    losing = [(case, kind, r) for case, each in rows for kind, r in zip(kinds, each, strict=True) if r.default > 1.05 * r.free]
    worse = [r for *_, r in losing]
    true = sum(judged(case.true, [case.train], [getattr(case, kind)])[1][0].description > r.free for case, kind, r in losing)
    print(
        f"  default more than 5 % worse than least squares: {len(worse)} of {len(everything)}, of these in units of every "
        f"joint's noise too {sum(r.in_noise[1] > 1.05 * r.in_noise[0] for r in worse)}; the true parameters are worse than "
        f"least squares there too in {true} (wrong gains make bodies that cannot exist the best ones); more than 5 % better: "
        f"{sum(r.free > 1.05 * r.default for r in everything)}"
    )
    below = [r for r in everything if r.default > r.description]
    print(f"  worse than the description {len(below)}, by more than two standard errors {sum(r.clear > 2.0 for r in below)}")
    lucky = scatter(count, [[r.free for r in each] for _, each in rows], kinds)
    print(f"  for scale: least squares from another run of the same kind is more than 5 % worse than from this one: {lucky}")


def scatter(count: int, free: Sequence[Sequence[float]], kinds: Sequence[str]) -> int:
    """Return the number of least-squares errors of another training run more than 5 % above `free`: scatter of runs."""
    worse = 0
    for k, (case, errors) in enumerate(zip(population(count), free, strict=True)):
        evidence = di.Regression.from_logs(case.described, [another_run(case, np.random.default_rng([13, k]))])
        fit = di.WLS().fit(evidence).result_
        worse += sum(fit.score(getattr(case, kind)).metrics.relative > 1.05 * x for kind, x in zip(kinds, errors, strict=True))
    return worse


def another_run(case: Case, rng: np.random.Generator) -> di.Log:
    """Return a second training run of the same kind."""
    size, base = (0.15, 0.12) if case.poor else (0.5, 0.15)
    return record(case.true, motion(case.true.dof, case.train.duration, rng, size, base), case.world, rng, "again")


def mean(part: Sequence[Judged], key: str) -> float:
    """Return the mean of one number in percent."""
    return 100.0 * float(np.mean([getattr(r, key) for r in part]))


def repeats(count: int) -> None:
    """Print the differences of independent runs of the same robot in standard deviations."""
    print("\n4. independent runs of the same robot: rms of the difference over its stated deviation")
    default: list[Array] = []
    free: list[Array] = []
    for k, case in enumerate(population(count, seed=3)):
        again = another_run(case, np.random.default_rng([9, k]))
        fits = []
        for log in (case.train, again):
            evidence = di.Regression.from_logs(case.described, [log])
            fits.append((di.MAP().fit(evidence).result_, di.WLS().fit(evidence).result_))
        for into, (a, b) in zip((default, free), zip(*fits, strict=True), strict=True):
            both = a.solved & b.solved
            into.append(((a.values - b.values) / np.hypot(a.std, b.std))[both])
    for name, found in (("default", default), ("least squares", free)):
        z = np.concatenate(found)
        print(f"  {name}: rms z {np.sqrt(np.mean(z**2)):.2f}, within two deviations {np.mean(np.abs(z) < 2):.0%} of {z.size}")


def one_move(count: int) -> None:
    """Print errors and coverage of another move, trained on a single one."""
    rows = []
    for k, case in enumerate(population(count, seed=11)):
        rng = np.random.default_rng([5, k])
        train, test = (record(case.true, move(case.true.dof, 8.0, rng, 0.8), case.world, rng, f"{k} {i}") for i in range(2))
        rows += judged(case.described, [train], [test])[1]
    covered = np.array([row.coverage for row in rows])
    print(
        f"\n5. one move -> another: coverage {100 * covered.mean():.1f} %, median {100 * np.median(covered):.1f} %, "
        f"below 70 %: {np.sum(covered < 0.7)} of {count}; mean error {mean(rows, 'free'):.0f} -> {mean(rows, 'default'):.0f} %"
    )


def one_motion(count: int) -> None:
    """Print coverage of another motion, and the difference of two fits, trained on one repeated motion."""
    covered, apart = [], []
    for k, case in enumerate(population(count, seed=909)):
        rng = np.random.default_rng([k, 4])
        logs = [record(case.true, motion(case.true.dof, s, rng, 0.5, 0.15), case.world, rng, f"{s}") for s in (150, 20, 150)]
        one, other = (di.MAP().fit(di.Regression.from_logs(case.described, [log])).result_ for log in (logs[0], logs[2]))
        covered.append(one.score(logs[1]).coverage)
        apart.append(((one.values - other.values) / np.hypot(one.std, other.std))[one.solved & other.solved])
    z = np.concatenate(apart)
    print(f"\n6. one motion repeated -> another: coverage {100 * np.mean(covered):.1f} %, rms z {np.sqrt(np.mean(z**2)):.2f}")


def wrist_sensor(data: Path) -> None:
    """Payload behind a wrist sensor whose bias drifts, 100 poses at rest; quarters alone give 1.164 to 1.168 kg."""
    folder = data / "ft_payload"
    if not folder.is_dir():
        return
    pose, wrench = (np.loadtxt(folder / f"recorded_messages_{kind}_100.txt", delimiter=",") for kind in ("pose", "wrench"))
    R = Rotation.from_quat(pose[:, 3:])
    arm = di.Mechanism.from_dh([(0.0, -np.pi / 2, 0.0, 0.0), (0.0, np.pi / 2, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)])
    own = np.hstack([R.apply(x, inverse=True) for x in (wrench[:, :3], wrench[:, 3:])])
    load = payload_from_wrench(arm, R.as_euler("ZYZ"), own, arm.tree.bodies[-1])
    print(f"\n7. wrist sensor, 100 poses with drift: {load.mass:.4f} +- {load.mass_std:.4f} kg (1.166)")


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, help="folder with the public recordings")
    parser.add_argument("--robots", type=int, default=200, help="number of virtual robots")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each machine of the papers")
    parser.add_argument(
        "--only", type=str, default="", help="numbers of the measurements, as 1,8; all but 13 and 14 when omitted"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    fifth, twelfth = max(options.robots // 5, 8), max(options.robots // 12, 8)
    measurements: dict[int, Callable[[], None]] = {
        3: lambda: virtual(options.robots),
        4: lambda: repeats(fifth),
        5: lambda: one_move(fifth),
        6: lambda: one_motion(twelfth),
        10: lambda: stepping_drives(options.seeds),
        11: lambda: two_tanh(options.seeds),
        12: cost,
        14: lambda: between_runs(fifth),
    }
    if options.data is not None:
        recorded = {1: shared_logs, 2: extrapolation, 7: wrist_sensor, 8: lwr4_pairs, 9: without_masses, 13: automatic_friction}
        measurements |= {number: partial(measure, options.data) for number, measure in recorded.items()}
    asked = [int(number) for number in options.only.split(",") if number] or [n for n in sorted(measurements) if n < 13]
    if missing := [str(number) for number in asked if number not in measurements]:
        parser.error(f"there is no measurement {', '.join(missing)}; 1, 2, 7, 8, 9 and 13 need the folder of the recordings")
    for number in asked:
        measurements[number]()


if __name__ == "__main__":
    main()
