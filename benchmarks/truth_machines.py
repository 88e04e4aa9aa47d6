"""Rows of `benchmarks.truth` other than the population: pairs of runs, robots without masses, machines of papers, time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.population import description, motion, population, record
from benchmarks.shared_logs import ROBOTS
from dynident.examples import arm6
from dynident.friction import Friction
from dynident.identify import fit_friction
from dynident.trajectory import random_motion
from dynident_papers.robots import cft, mast, prr2

Array = NDArray[np.float64]
SPEED, SPEEDS = 0.2, (-1.5, -1.0, -0.5, 0.5, 1.0, 1.5)  # m/s, rad/s of joints without a viscous term; in units of the speed
CHANGES = (0.0, 0.05, 0.15)  # of the friction of a joint, from run to run
WITHIN = 0.9545  # of a normal distribution within two deviations
SECONDS, SIZE, BASE = 20.0, 0.5, 0.15  # of a run, amplitude [rad], lowest frequency [Hz]
KNOWN = 0.1  # largest relative deviation of parameters with a stated relative error
RUNS = (
    ((1,), 2, "in regime"),
    ((2,), 1, "in regime"),
    ((1,), 3, "faster"),
    ((2,), 3, "faster"),
    ((3,), 2, "slower"),
    ((3,), 1, "slower"),
    ((1, 3), 2, "in regime"),
    ((2, 3), 1, "in regime"),
)


def lwr4_pairs(data: Path) -> None:
    """Print errors and coverage between the three runs of the LWR4+; run 3 is twice as fast as the others."""
    folder = data / "kuka_lwr4_flobaroid"
    robot = di.Mechanism.from_urdf(folder / "kuka_lwr4.urdf")
    logs = {i: di.Log.read(folder / f"measurements_{i}.npz", "joint_torque", joints=robot.joint_names) for i in (1, 2, 3)}
    print("\n8. LWR4+ between runs: error; coverage, of the worst joint; half width of the band over the rms error")
    for train, test, kind in RUNS:
        fit = di.MAP().fit(di.Regression.from_logs(robot, [logs[i] for i in train])).result_
        show(f"{' + '.join(map(str, train))} -> {test} ({kind})", fit.score(logs[test]))


def show(name: str, score: di.Score) -> None:
    """Print one line of errors and coverage."""
    error = np.abs(score.measured - score.predicted)
    worst = float(np.min(np.mean(error <= 2.0 * score.std, axis=0)))
    width = float(np.mean(2.0 * score.std) / np.sqrt(np.mean(error**2)))
    line = f"{100 * score.metrics.relative:6.2f} %; {100 * score.coverage:5.1f} %, {100 * worst:3.0f} %; {width:.1f}"
    print(f"  {name:28s} {line}", flush=True)


def without_masses(data: Path) -> None:
    """Print the same for robots whose description has a geometry and no masses, as a DH table."""
    print("\n9. geometry alone, no masses: error; coverage, of the worst joint; half width of the band over the rms error")
    for name in ("LWR4+", "UR10", "TX40", "LBR Med 7", "double pendulum"):
        shared = ROBOTS[name](data)
        bare = shared.robot.with_parameters(shared.robot.parameters.replace(np.zeros(len(shared.robot.parameters))))
        fit = di.MAP().fit(di.Regression.from_logs(bare, shared.train)).result_
        for log in shared.test:
            show(name, fit.score(log))


def between_runs(count: int) -> None:
    """Print coverage of another run of the same kind if the friction of every joint changes from run to run.

    "Known" bands are multiplied, joint by joint, by the factor that one more run needs for 95 %: calibration with the training
    runs alone cannot know more. A run that repeats the training motion repeats the errors of the model that the fit absorbed.
    """
    heads = "friction changes, runs fitted: coverage, robots between 92 and 98 %, above 98 %"
    print(f"\n14. what the runs of a fit show; {heads}; with known factors; the training motion again")
    for change in CHANGES:
        for runs in (1, 4):
            found = list[list[float]]()
            for k, case in enumerate(population(count, seed=17)):
                rng = np.random.default_rng([17, k])
                motions = [motion(case.true.dof, SECONDS, rng, SIZE, BASE) for _ in range(runs + 2)]
                logs = [
                    record(_rubbing(case.true, change, rng), each, case.world, rng, str(i))
                    for i, each in enumerate([*motions, motions[0]])
                ]
                fit = di.MAP().fit(di.Regression.from_logs(case.described, logs[:runs])).result_
                scores = [fit.score(log, allow_training=True) for log in logs[runs:]]  # ideal tracking looks like a copy
                more, test, again = (np.abs(s.measured - s.predicted) / (2.0 * s.std) for s in scores)
                limits = (1.0, np.quantile(more, WITHIN, axis=0), 1.0)
                found.append([float(np.mean(e <= most)) for e, most in zip((test, test, again), limits, strict=True)])
            print(f"  {100 * change:2.0f} %, {runs}: {'; '.join(map(_shares, zip(*found, strict=True)))}", flush=True)


def _rubbing(robot: di.Mechanism, change: float, rng: np.random.Generator) -> di.Mechanism:
    """Return a robot whose friction is that of another day."""
    values = robot.parameters.values.copy()
    for joint in robot.coordinate_names:
        values[[robot.parameters.names.index(f"{term}_{joint}") for term in ("fv", "fc")]] *= rng.lognormal(0.0, change)
    return robot.with_parameters(robot.parameters.replace(values))


def _shares(coverage: Sequence[float]) -> str:
    """Return the mean, and the shares of robots between 92 and 98 % and above."""
    c = np.array(coverage)
    return f"{100 * c.mean():.1f} %, {100 * np.mean((c >= 0.92) & (c <= 0.98)):.0f} %, {100 * np.mean(c > 0.98):.0f} %"


def stepping_drives(seeds: int) -> None:
    """Print the errors of masses of two parallel robots with drives stepping every 5 ms in standard deviations.

    Default settings. The descriptions are wrong by some tens of percent: a true prior mean would hide undetermined parameters.
    """
    cases = (("prr2", prr2.machine(), prr2.START, (0.03, 0.03)), ("mast", mast.machine(), mast.TRIPOD.home, (0.01, 0.02, 0.02)))
    print("\n10. drives that step: rms z and largest |z| of masses and rotors, largest error of those known to 10 %; cut-off")
    for name, machine, home, size in cases:
        z, errors, cutoffs = list[Array](), list[Array](), list[float]()
        known = machine.model.parameters.values
        for seed in range(seeds):
            log = machine.simulate(_harmonics(np.array(home), size, seed), seed=seed).log
            robot = description(machine.model, known, "described", np.random.default_rng([seed, 1]))
            data = di.Regression.from_logs(robot, [log])
            fit = di.MAP().fit(data).result_
            true = data.base.values(known)
            heavy = [k for k, leader in enumerate(data.base.leaders) if leader.startswith(("m_", "ia_")) and fit.solved[k]]
            z.append(((fit.values - true) / fit.std)[heavy])
            errors.append(np.abs(fit.values / true - 1.0)[[k for k in heavy if fit.std[k] < KNOWN * fit.values[k]]])
            cutoffs.append(data.sources[0]["cutoff"])
        both, off = np.concatenate(z), np.concatenate(errors)
        print(
            f"  {name:6s} {np.sqrt(np.mean(both**2)):.2f}, {np.abs(both).max():.1f}, {100 * off.max():.2f} %; "
            f"{min(cutoffs):.0f} to {max(cutoffs):.0f} Hz",
            flush=True,
        )


def _harmonics(home: Array, size: Sequence[float], seed: int) -> di.Motion:
    """Return ten seconds of five harmonics about a pose."""
    rng, t = np.random.default_rng(seed), np.arange(10_000) / 1000.0
    w = 2.0 * np.pi * 0.4 * np.arange(1, 6)
    amplitude = rng.normal(size=(home.size, 5)) * np.array(size)[:, None] / np.sqrt(np.arange(1, 6))
    angle = t[:, None, None] * w + rng.uniform(0.0, 2.0 * np.pi, amplitude.shape)
    begin = (1.0 - np.exp(-((t / 0.5) ** 3)))[:, None]
    q = home + begin * np.sum(amplitude * (np.sin(angle) - np.sin(angle[:1])), axis=2)
    v = np.gradient(q, t, axis=0)
    return di.Motion(t, q, v, np.gradient(v, t, axis=0))


def two_tanh(seeds: int) -> None:
    """Print deviations of bodies and friction of the CFT robot from one log, two tanh terms per joint.

    The published bodies are impossible, so the fit has no physical consistency; the default reports the contradiction. The
    only noise of the machine is encoder quantisation: runs differ in the start of the periodic motion.
    """
    machine, t = cft.machine(added_inertia=0.2), np.linspace(0.0, 10.0, 2001)
    bodies, frictions = list[Array](), list[Array]()
    for seed in range(seeds):
        log = machine.simulate(cft.cartesian_reference(t, *cft.excitation(t + seed / seeds * t[-1]))).log
        laws = dict.fromkeys(cft.JOINTS, "viscous + tanh + tanh")
        fit = fit_friction(machine.model, log, laws, estimator=di.MAP(recovery="prior"))
        known = dict(zip(machine.model.parameters.names, machine.model.parameters.values, strict=True))
        true = fit.base.values([known.get(name, 0.0) for name in fit.mechanism.parameters.names])
        own = [k for k, leader in enumerate(fit.base.leaders) if "." not in leader]
        bodies.append(((fit.values - true) / fit.std)[own])
        frictions.append(np.concatenate([_curve_deviations(fit, joint, machine) for joint in cft.JOINTS]))
    for name, found in (("bodies", bodies), ("friction", frictions)):
        z = np.concatenate(found)
        print(
            f"\n11. CFT, two tanh terms, {name}: rms z {np.sqrt(np.mean(z**2)):.2f}, largest {np.abs(z).max():.1f}", flush=True
        )


def _curve_deviations(fit: di.Fit, joint: str, machine: di.VirtualRobot) -> Array:
    """Return z of a joint's friction curve at speeds of the motion; single values of tanh terms are not identifiable."""
    law, true = fit.friction[joint], dict(machine.friction)[joint]
    names = [f"{name}_{joint}" for name in (*law.law.linear, *law.law.shape)]
    own = [(i, fit.base.leaders.index(name)) for i, name in enumerate(names) if name in fit.base.leaders]
    v = np.array(SPEEDS) * fit.posterior.speeds.get(joint, SPEED)
    slopes = []
    for i, _ in own:
        step = 1e-6 * max(abs(law.values[i]), 1.0)
        other = np.array(law.values)
        other[i] += step
        slopes.append((Friction(law.law, other)(v) - law(v)) / step)
    at = [k for _, k in own]
    scale = fit.std[at] / np.sqrt(np.diag(fit.covariance)[at])  # contribution of held shape parameters
    C = fit.covariance[np.ix_(at, at)] * np.outer(scale, scale)
    return np.asarray((law(v) - true(v)) / np.sqrt(np.einsum("iv,ij,jv->v", slopes, C, slopes)))


def cost() -> None:
    """Print the CPU time of the default fit over that of weighted least squares on 100 000 samples of six axes."""
    robot = arm6().robot
    motion = random_motion([0.0] * 6, [0.8] * 6, seed=1, duration=100.0)
    t = np.arange(100_000) / 1000.0
    q, v, a = motion.at(t)
    log = di.Log(
        t=t,
        joints=robot.coordinate_names,
        position=q,
        effort=di.inverse_dynamics(robot, di.Motion(t, q, v, a)),
        effort_kind="joint_torque",
    )
    spent = {}
    for name, fit in (("wls", lambda: _wls(robot, log)), ("map", lambda: di.MAP().fit(di.Regression.from_logs(robot, [log])))):
        times = []
        for _ in range(4):
            start = time.process_time()
            fit()
            times.append(time.process_time() - start)
        spent[name] = min(times[1:])
    print(f"\n12. 100 000 samples: default {spent['map']:.2f} s, {spent['map'] / spent['wls']:.1f} times least squares")


def _wls(robot: di.Mechanism, log: di.Log) -> None:
    """Fit by least squares in the band of the spectra."""
    di.WLS().fit(di.Regression.from_logs(robot, [log]))


def automatic_friction(data: Path) -> None:
    """Print held-out errors and CPU time of the default and of friction laws chosen per joint."""
    print("\n13. held-out error of the default, of automatic friction; CPU time over that of least squares")
    for name in ("EMPS", "LWR4+", "UR10", "TX40", "LBR Med 7", "double pendulum"):
        shared = ROBOTS[name](data)
        spent, errors = [], []
        di.WLS().fit(di.Regression.from_logs(shared.robot, shared.train))  # code is compiled once per robot, not once per fit
        for fit in (
            lambda robot, logs: di.WLS().fit(di.Regression.from_logs(robot, logs)).result_,
            lambda robot, logs: di.MAP().fit(di.Regression.from_logs(robot, logs)).result_,
            lambda robot, logs: fit_friction(robot, logs, "auto", estimator=di.MAP()),
        ):
            start = time.process_time()
            found = fit(shared.robot, shared.train)
            spent.append(time.process_time() - start)
            errors.append(" / ".join(f"{100 * found.score(log).metrics.relative:.2f}" for log in shared.test))
        print(f"  {name:16s} {errors[1]} %; {errors[2]} %; {spent[2] / spent[0]:.0f} times", flush=True)
