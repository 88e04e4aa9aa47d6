"""Excitation: designs against the literature and against hand-made or random motions, and their computing time.

Run:  python -m benchmarks.excitation [gradient|prr2|replalink|cft|chance|arm|proof ...]
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, arm
from benchmarks.cases import Result
from benchmarks.hand import by_hand, random_motions
from dynident.excitation import MotionLimits, design
from dynident.excitation.designs import relative_sizes
from dynident.excitation.objective import Criterion, Objective, RobotEquations, expected_deviations
from dynident.excitation.optimise import Problem, feasible_start, optimise
from dynident.parallel import one_blas_thread
from dynident.trajectory import Fourier, Trajectory, sample
from dynident.trajectory.curves import Curve
from dynident_papers.robots import er3a_c60
from dynident_papers.trajectories.sines import harmonic_sines

Array = NDArray[np.float64]
SAMPLES = 1000
RATE = 100.0  # [Hz]
FAMILY = Fourier(er3a_c60.FUNDAMENTAL, er3a_c60.HARMONICS)
OBSTACLE = {"link": "base", "from": (0.45, -0.4, 0.0), "to": (0.45, -0.4, 0.5), "radius": 0.05}
"""A post within reach."""
RUNS = 40  # noisy logs of the proof


def gradient() -> list[Result]:
    """Six axes, five harmonics, 1000 samples."""
    import pinocchio as pin

    robot = arm()
    base = di.base_parameters(robot)
    t = np.arange(SAMPLES) / RATE
    objective = Objective(RobotEquations(base, 0.04), FAMILY, Criterion.parse("cond"), t)
    x = np.random.default_rng(0).normal(size=6 * FAMILY.size) * 0.3
    objective(x)
    ours = min(_timed(lambda: objective(x)) for _ in range(200))  # half a second: short enough to avoid other load
    model = pin.buildModelFromUrdf(str(URDF))
    data = model.createData()
    q, v, a = objective.states(x)
    inertial = [c for c in base.columns if c < robot.tree.inertias.size]

    def once() -> float:
        Y = np.empty((SAMPLES, 6, 10 * (model.njoints - 1)))
        for s in range(SAMPLES):
            Y[s] = pin.computeJointTorqueRegressor(model, data, q[s], v[s], a[s])
        return float(np.linalg.cond(np.linalg.qr(Y.reshape(6 * SAMPLES, -1)[:, inertial], mode="r")))

    with one_blas_thread():
        peer = min(_timed(once) for _ in range(3)) * (x.size + 1)
    detail = f"finite differences through a Pinocchio loop, {x.size + 1} evaluations: {1e3 * peer:.0f} ms"
    return [
        Result("criterion and exact gradient, 6 axes, 5 harmonics, 1000 samples", 1e3 * ours, "ms", 2.5, "friction included"),
        Result("criterion and exact gradient, times faster", peer / ours, "x", 120.0, detail),
    ]


def _timed(work: object) -> float:
    start = perf_counter()
    work()  # type: ignore[operator]
    return perf_counter() - start


def _published(name: str, least: float, budget: float, **settings: float) -> list[Result]:
    """Design within the limits of a robot of [Roldan2017]."""
    from dynident_papers import robots

    robot = getattr(robots, name)
    mechanism = robot.mechanism()
    base = di.base_parameters(mechanism, order=[robot.STANDARD_NAMES[leader] for leader in robot.BASE_LEADERS])
    limits = {"default": {"acceleration": robot.ACCELERATION_LIMIT}, "margin": 0.0, **settings}
    family = Fourier(robot.FUNDAMENTAL, robot.HARMONICS, rest=False)
    found = design(mechanism, limits, "cond", budget, family, base=base)
    cond, worst = found.values()["cond"], min(found.margins().values())
    detail = f"condition number {cond:.2f}, {least:g} allowed; smallest margin {worst:.1e}"
    return [
        Result(f"{mechanism.name}: allowed condition number over ours", least / cond, "x", 1.0, detail),
        Result(f"{mechanism.name}: time of the design", found.optimum.seconds, "s", 30.0, f"budget {budget:g} s"),
    ]


def prr2(budget: float = 25.0) -> list[Result]:
    """Document 4: 20.78 by pattern search, 28.23 by a local method; at most 21."""
    return _published("prr2", 21.0, budget)


def replalink(budget: float = 6.0) -> list[Result]:
    """Document 4: box limits; at most 9."""
    return _published("replalink", 9.0, budget, singularity=0.02)


def cft(budget: float = 8.0) -> list[Result]:
    """Document 0: Cartesian Fourier series, four harmonics, inside Table 5; 277.33 with the published coefficients."""
    from dynident_papers.robots import cft as robot

    def columns(x: Array, v: Array, a: Array) -> Array:
        return np.asarray(robot.regressor(*robot.joint_motion(x, v, a)))

    t = np.arange(100) / 10.0
    names = tuple(f"own {name}" for name in robot.THETA_NAMES[:12])
    equations = RobotEquations(di.base_parameters(di.Mechanism.from_regressor(names, columns, robot.CARTESIAN)))
    x, v, a = robot.excitation(np.arange(400) / 40.0)
    published = np.linalg.cond(columns(x, v, a).reshape(-1, 12))
    speed, push = np.abs(v).max(axis=0), np.abs(a).max(axis=0)
    box = robot.LIMITS.T
    objective = Objective(equations, Fourier(0.1, 4, rest=False, convention="position"), Criterion.parse("cond"), t)
    results = []
    for label, factor in (("no faster than it", 1.0), ("Cartesian limits only", 1e3)):
        limits = MotionLimits(robot.CARTESIAN, box[0], box[1], factor * speed, factor * push, np.full(4, np.inf))
        found = optimise(Problem(objective, limits), time_budget=0.5 * budget)
        ours = objective.value(found.x)["cond"]
        detail = f"published {published:.2f}, ours {ours:.2f} in {found.seconds:.1f} s"
        results.append(Result(f"CFT, {label}: published condition number over ours", published / ours, "x", 1.0, detail))
    return results


def _er3a(obstacle: bool = False, **changes: object) -> tuple[di.Mechanism, MotionLimits, di.BaseParameters]:
    robot = er3a_c60.mechanism()
    if obstacle:
        changes["capsule"] = [*er3a_c60.limit_settings()["capsule"], OBSTACLE]
    return robot, er3a_c60.limits(robot, **changes), di.base_parameters(robot)


def chance(budget: float = 12.0, many: int = 10_000) -> list[Result]:
    """ER3A-C60-like arm: one design against harmonic sines and the best of many random feasible motions."""
    robot, limits, base = _er3a()
    both = "cond:2,d:1"  # one motion that is good by both criteria
    found = design(robot, limits, both, budget, FAMILY, base=base, samples=SAMPLES, starts=4)
    ours = found.values()
    best = {}
    for name, x in random_motions(found.problem, many).items():
        best[name] = found.values(Trajectory.from_vector(FAMILY, x))[name]
    others = {f"best of {many} random motions": best}
    hand = by_hand(robot, limits, FAMILY.duration)
    others["harmonic sines of [Pagani2022]"] = found.values(hand["harmonic sines"])
    lowest = FAMILY.highest / max(er3a_c60.SINES)  # same band
    sines = harmonic_sines(lowest, er3a_c60.SINES, fade=0.5 * (FAMILY.duration - 1.0 / lowest))  # same length
    other = design(robot, limits, both, 0.6 * budget, sines, base=base, samples=SAMPLES, starts=4)
    others["the same optimiser on harmonic sines"] = other.values()
    results = []
    for label, value in others.items():
        detail = f"ours {ours['cond']:.1f}, theirs {value['cond']:.1f}"
        results.append(Result(f"ER3A-C60: condition number, {label}", value["cond"] / ours["cond"], "x", 1.0, detail))
        gain = float(np.exp((ours["d"] - value["d"]) / base.rank))
        detail = f"D ours {ours['d']:.1f}, theirs {value['d']:.1f}; factor per parameter, exp(difference / {base.rank})"
        results.append(Result(f"ER3A-C60: D index, {label}", gain, "x", 1.0, detail))
    return results


def _full(criterion: str = "d") -> Problem:
    """Return the problem of `six_axes`: full limits, an obstacle, 1000 samples."""
    _, limits, base = _er3a(obstacle=True, tool={"frame": "link_6", "height": 0.05, "x": [-0.62, 0.62], "y": [-0.62, 0.62]})
    eps = 0.01 * float(limits.velocity.min())
    t = np.arange(SAMPLES) / RATE
    return Problem(Objective(RobotEquations(base, eps), FAMILY, Criterion.parse(criterion), t), limits)


def six_axes(budget: float = 15.0) -> list[Result]:
    """D-optimal motion with position, velocity, acceleration, jerk, torque, power, tool box, self and obstacle collision."""
    problem = _full()
    start = feasible_start(problem, np.random.default_rng(0))
    begun = process_time()
    alone = optimise(problem, starts=1, time_budget=budget, workers=1, start=start)
    used = process_time() - begun
    found = optimise(problem, starts=4, time_budget=budget, start=start)
    b = len(problem.objective.equations.names)
    return [
        Result("6 axes, full limits, D-optimal motion, all starts", found.seconds, "s", 20.0, f"D {-b * found.cost:.1f}"),
        Result("6 axes, full limits, D-optimal motion, one start", alone.seconds, "s", 20.0,
               f"D {-b * alone.cost:.1f} from {-b * problem.objective.cost(start):.1f}; {used:.1f} s of processor time"),
    ]  # fmt: skip


def proof(budget: float = 24.0) -> list[Result]:
    """Mean relative standard deviation of base parameters: designed against hand-made motions of equal length and rate.

    Relative to the parameter values. Small parameters dominate this mean, so the detail also gives it with a lower bound of
    the sizes (`relative_sizes`), and the range over single parameters.
    """
    robot, limits, base = _er3a()
    noise = er3a_c60.assumed("noise")
    plain, floored = relative_sizes(base, 0.0), relative_sizes(base)

    def deviations(curve: Curve) -> tuple[Array, Array]:
        return expected_deviations(RobotEquations(base), sample(curve, RATE), noise), observed(robot, base, curve, noise)

    designs = {}
    for criterion, scale in (("a, relative", plain.tolist()), ("d", None)):
        found = design(robot, limits, criterion[0], 0.5 * budget, FAMILY, RATE, 500, scale, noise, base=base, starts=4)
        designs[criterion] = deviations(found.trajectory)
    results = []
    for label, curve in by_hand(robot, limits, FAMILY.duration).items():
        what = f"relative deviation, {label}"
        if not np.all(np.isfinite(expected_deviations(RobotEquations(base), sample(curve, RATE), noise))):
            results.append(Result(what, None, "x", None, "it does not show all base parameters"))
            continue
        theirs, seen = deviations(curve)
        for criterion, (ours, found_) in designs.items():
            mean, single = [(x / plain).mean() for x in (theirs, ours, seen, found_)], theirs / ours
            detail = (
                f"expected {mean[0]:.3g} against {mean[1]:.3g}; by WLS from {RUNS} logs {mean[2]:.3g} against {mean[3]:.3g}, "
                f"{mean[2] / mean[3]:.1f} x; with floor {(theirs / floored).mean() / (ours / floored).mean():.1f} x; single "
                f"parameters {single.min():.1f} to {single.max():.1f} x, median {np.median(single):.1f} x"
            )
            results.append(Result(f"{what}, over ours ({criterion})", mean[0] / mean[1], "x", 3.0, detail))
    return results


def observed(robot: di.Mechanism, base: di.BaseParameters, curve: Curve, noise: Array) -> Array:
    """Return the root mean square error of base parameters identified from simulated logs with noise."""
    motion = sample(curve, RATE)
    clean, truth = di.inverse_dynamics(robot, motion), base.values(robot.parameters.values)
    generator = np.random.default_rng(0)
    errors = []
    for _ in range(RUNS):
        evidence = di.Regression.from_motion(robot, motion, clean + generator.normal(size=clean.shape) * noise, base)
        errors.append(di.WLS().fit(evidence).result_.values - truth)
    return np.asarray(np.sqrt(np.mean(np.square(errors), axis=0)))


CASES = {
    "gradient": gradient,
    "prr2": prr2,
    "replalink": replalink,
    "cft": cft,
    "chance": chance,
    "arm": six_axes,
    "proof": proof,
}


def excitation(quick: bool = False) -> list[Result]:
    """All cases, for the list of all benchmarks."""
    if quick:
        return [*gradient(), *cft(2.0)]
    return [result for case in CASES.values() for result in case()]


def main() -> None:
    """Run the named cases, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.excitation", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="which; all when none is named")
    options = parser.parse_args()
    for case in options.cases or CASES:
        for result in CASES[case]():
            mark = {True: "pass", False: "MISS", None: ""}[result.passed]
            value = "-" if result.value is None else f"{result.value:.4g} {result.unit}"
            print(f"{result.what}: {value} {mark} ({result.detail})", flush=True)


if __name__ == "__main__":
    main()
