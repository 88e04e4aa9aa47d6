"""Training data in twelve disguises are no validation, another run shows repeatability only, another motion validates."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from identify_cases import RRR, arm
from scipy.signal import butter, sosfiltfilt
from small_robots import circle, five_bar_machine

import dynident as di
from dynident.errors import IdentificationError
from dynident.mechanics import inverse_dynamics
from dynident.signals import prepare
from dynident.signals.held_out import _listed, another_run, is_copy, unpacked
from dynident.signals.preparation import MOST_PIECES, PIECE, Options, Preparation, both, fingerprint
from dynident.signals.quality import Segment
from dynident.simulate import with_noise
from dynident.trajectory import random_motion
from dynident.validate import judge, split

RATE = 200.0


@dataclass(frozen=True)
class Case:
    """A fit, read back from its file, the log it was made from, another run of its plan and a log of another motion."""

    fit: di.Fit
    log: di.Log
    again: di.Log
    other: di.Log


def through_file(fit: di.Fit, folder: Path) -> di.Fit:
    return di.Fit.load(fit.save(folder / "fit.json"))


# ---- a serial arm with friction that its model does not have --------------------------------------------------------


def arm_log(robot: di.Mechanism, motion: di.Motion, seed: int, name: str = "run", warm: float = 1.0) -> di.Log:
    """Return a log of a motion: rigid body, Stribeck friction, noise of encoders and torques."""
    rng = np.random.default_rng(seed)
    tau = inverse_dynamics(robot, motion)
    friction = 0.04 * warm * np.std(tau, axis=0) * np.tanh(20.0 * motion.v) * (1.0 + np.exp(-((motion.v / 0.1) ** 2)))
    noise = 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    q = motion.q + 2e-5 * rng.normal(size=motion.q.shape)
    return di.Log(motion.t, robot.joint_names, q, tau + friction + noise, effort_kind="joint_torque", name=name)


def sines(seed: int, seconds: float = 30.0, speed: float = 1.0, size: float = 1.0, phases: int = 0) -> di.Motion:
    """Return five harmonics with a period of 10 s / speed; `phases` draws others for the same amplitudes."""
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * speed * np.arange(1, 6)
    amplitude, phase = size * rng.normal(size=(3, 5)) * 0.4, rng.uniform(0.0, 2.0 * np.pi, (3, 5))
    if phases:
        phase = np.random.default_rng(phases).uniform(0.0, 2.0 * np.pi, (3, 5))
    t = np.arange(int(seconds * RATE)) / RATE
    angle = t[:, None, None] * w + phase
    q, v, a = (
        np.sum(y, axis=2)
        for y in (amplitude * np.sin(angle), amplitude * w * np.cos(angle), -w * w * amplitude * np.sin(angle))
    )
    return di.Motion(t, q, v, a)


def backwards(motion: di.Motion) -> di.Motion:
    """Return a motion that takes the same path from its end to its start."""
    return di.Motion(motion.t, motion.q[::-1].copy(), -motion.v[::-1], motion.a[::-1].copy())


def pick_and_place(*targets: tuple[float, float, float], move: float = 1.0, rest: float = 0.4) -> di.Motion:
    """Return moves from home to every target and back, with rests in between."""
    home = np.zeros(3)
    poses = [home] + [pose for target in targets for pose in (np.array(target), home)]
    u, still = np.arange(int(move * RATE)) / (move * RATE), np.zeros(int(rest * RATE))
    s = [
        10 * u**3 - 15 * u**4 + 6 * u**5,
        (30 * u**2 - 60 * u**3 + 30 * u**4) / move,
        (60 * u - 180 * u**2 + 120 * u**3) / move**2,
    ]
    q, v, a = [], [], []
    for start, end in pairwise(poses):
        way = end - start
        q += [start + np.outer(s[0], way), np.outer(still + 1.0, end)]
        v += [np.outer(s[1], way), np.outer(still, way)]
        a += [np.outer(s[2], way), np.outer(still, way)]
    q, v, a = (np.vstack(parts) for parts in (q, v, a))
    return di.Motion(np.arange(len(q)) / RATE, q, v, a)


@pytest.fixture(scope="module")
def serial(tmp_path_factory) -> Case:
    robot = arm(RRR)
    log = arm_log(robot, sines(1), 1)
    fit = through_file(di.identify(robot, log, validate=0).fit, tmp_path_factory.mktemp("serial"))
    return Case(fit, log, arm_log(robot, sines(1), 2, "again"), arm_log(robot, sines(2), 3, "other"))


# ---- a robot with loops ----------------------------------------------------------------------------------------------


def five_bar_log(seed: int, duration: float = 12.0, size: float = 1.0, noise: int = 0) -> di.Log:
    machine = five_bar_machine()
    home = [machine.mechanism.home[name] for name in machine.mechanism.coordinate_names]
    noisy = with_noise(machine, random_motion(home, [0.15, 0.15], seed=1, duration=12.0), 0.01)
    motion = random_motion(home, [0.15 * size, 0.15 * size], seed=seed, duration=duration)
    return replace(noisy.simulate(motion, seed=noise).log, name=f"run{seed}")


@pytest.fixture(scope="module")
def looped(tmp_path_factory) -> Case:
    log = five_bar_log(1)
    fit = through_file(di.identify(five_bar_machine().model, log, validate=0).fit, tmp_path_factory.mktemp("looped"))
    return Case(fit, log, five_bar_log(1, noise=5), five_bar_log(2, noise=6))


@pytest.fixture(params=["serial", "looped"])
def case(request) -> Case:
    return request.getfixturevalue(request.param)


# ---- disguises -------------------------------------------------------------------------------------------------------


def samples(log: di.Log, rows, t=None) -> di.Log:
    """Return a log of some rows, with new times if they are given, that shares no checksum with the first."""
    beside = dict.fromkeys(("velocity", "acceleration", "temperature", "reference"))
    t = log.t[rows] if t is None else t
    effort = log.effort[rows] * (1.0 + 1e-12)  # another checksum
    return replace(log, t=t, position=log.position[rows], effort=effort, provenance={}, name="held", **beside)


def treated(log: di.Log, position: Callable, effort: Callable | None = None) -> di.Log:
    """Return a log whose positions and efforts went through functions."""
    return replace(samples(log, slice(None)), position=position(log.position), effort=(effort or position)(log.effort))


def rounded(log: di.Log) -> di.Log:
    def to(share: float) -> Callable:
        return lambda x: np.round(x / (share * np.std(x, axis=0))) * share * np.std(x, axis=0)

    return treated(log, to(1e-4), to(1e-3))


def resampled(log: di.Log) -> di.Log:
    t = np.arange(log.t[0], log.t[-1], 1.3 / log.rate)
    q, tau = (np.stack([np.interp(t, log.t, y) for y in x.T], axis=1) for x in (log.position, log.effort))
    return replace(samples(log, slice(0, t.size), t), position=q, effort=tau)


def filtered(log: di.Log) -> di.Log:
    low_pass = butter(2, 15.0, output="sos", fs=log.rate)
    return treated(log, lambda x: sosfiltfilt(low_pass, x, axis=0))


def noisy(log: di.Log) -> di.Log:
    rng = np.random.default_rng(9)
    return treated(
        log,
        lambda x: x + 2e-4 * np.std(x, axis=0) * rng.normal(size=x.shape),
        lambda x: x + 0.02 * np.std(x, axis=0) * rng.normal(size=x.shape),
    )


def other_units(log: di.Log, folder: Path) -> di.Log:
    """Return the log after another program wrote it in milliseconds, degrees and thousandths, five digits each."""
    n = len(log.joints)
    names = ["ms", *(f"a{i}" for i in range(n)), *(f"b{i}" for i in range(n))]
    path = folder / "units.csv"
    table = np.column_stack([1e3 * log.t, np.degrees(log.position), 1e3 * log.effort])
    np.savetxt(path, table, fmt="%.5f", delimiter=",", header=",".join(names), comments="")
    schema = {"time": "ms", "position": names[1 : n + 1], "effort": names[n + 1 :], "joints": list(log.joints)}
    unit = {"time": "ms", "position": "deg", "effort": "mA" if log.effort_kind == "motor_current" else "mNm"}
    options = {"effort_kind": log.effort_kind, "position_side": log.position_side, "unit": unit}
    return replace(di.Log.read(path, schema={**schema, **options}), gain=log.gain, name="held")


def reordered(log: di.Log) -> di.Log:
    order = list(reversed(range(len(log.joints))))
    gain = None if log.gain is None else np.broadcast_to(log.gain, len(order))[order]
    turned = replace(
        log, joints=tuple(log.joints[i] for i in order), gain=gain, velocity=None, acceleration=None, reference=None
    )
    return replace(
        turned, temperature=None, position=log.position[:, order], effort=log.effort[:, order], provenance={}, name="held"
    )


def mixed(log: di.Log, other: di.Log, parts: int = 2) -> di.Log:
    some, n = len(log) // parts, len(other)
    position, effort = (np.vstack([x[:some], y]) for x, y in ((log.position, other.position), (log.effort, other.effort)))
    return replace(samples(other, slice(0, n)), t=np.arange(some + n) / log.rate, position=position, effort=effort)


def exchanged(log: di.Log, parts: int = 3) -> di.Log:
    return samples(log, np.concatenate(np.array_split(np.arange(len(log)), parts)[::-1]), log.t)


DISGUISES: dict[str, Callable[[Case, Path], di.Log]] = {
    "fewer digits": lambda case, _: rounded(case.log),
    "clock shifted": lambda case, _: samples(case.log, slice(None), case.log.t + 100.0),
    "clock scaled": lambda case, _: samples(case.log, slice(None), 1.1 * case.log.t),
    "a part": lambda case, _: samples(case.log, slice(len(case.log) // 3, 5 * len(case.log) // 6)),
    "decimated": lambda case, _: samples(case.log, slice(None, None, 2)),
    "resampled": lambda case, _: resampled(case.log),
    "filtered": lambda case, _: filtered(case.log),
    "noise added": lambda case, _: noisy(case.log),
    "units changed": lambda case, folder: other_units(case.log, folder),
    "columns reordered": lambda case, _: reordered(case.log),
    "mixed with new data": lambda case, _: mixed(case.log, case.other),
    "a quarter mixed in": lambda case, _: mixed(case.log, case.other, 4),
    "periods exchanged": lambda case, _: exchanged(case.log),
    "seven pieces exchanged": lambda case, _: exchanged(case.log, 7),
    "played backwards": lambda case, _: samples(case.log, slice(None, None, -1), case.log.t),
}


@pytest.mark.filterwarnings("ignore::dynident.errors.SignalWarning")
@pytest.mark.parametrize("disguise", DISGUISES)
def test_training_data_in_disguise_are_no_validation(case, disguise, tmp_path):
    log = DISGUISES[disguise](case, tmp_path)
    with pytest.raises(
        IdentificationError, match=r"holds training data: \d+ % of its motion has the positions and the noise of"
    ):
        case.fit.score(log)
    score = case.fit.score(log, allow_training=True)
    assert score.training
    assert not judge(case.fit, [score]).validated


@pytest.mark.filterwarnings("ignore::dynident.errors.SignalWarning")
def test_a_copy_of_a_slow_log_is_recognised():
    """A motion of a quarter of an hour at 6.7 Hz: speeds are a thirtieth."""
    robot, fast = arm(RRR), sines(1)
    slow = di.Motion(30.0 * fast.t, fast.q, fast.v / 30.0, fast.a / 30.0**2)
    log = arm_log(robot, slow, 1)
    fit = di.identify(robot, log, validate=0).fit
    with pytest.raises(IdentificationError, match="holds training data"):
        fit.score(noisy(log))


def test_the_message_names_the_log_and_the_time(serial):
    part = samples(serial.log, slice(2000, 5000), serial.log.t[2000:5000] + 100.0)
    with pytest.raises(IdentificationError, match="'run' from ") as refused:
        serial.fit.score(part)
    start, end = (float(text.split(" s")[0]) for text in str(refused.value).split("'run' from ")[1].split(" to ")[:2])
    assert 10.0 <= start < 11.0
    assert 23.5 < end <= 25.0


# ---- another run of the plan -----------------------------------------------------------------------------------------


def assert_repeatability_only(fit: di.Fit, log: di.Log) -> None:
    score = fit.score(log)
    assert not score.training
    assert score.repeated > 0.9
    verdict = judge(fit, [score])
    assert (verdict.validated, verdict.ok, verdict.headline) == (False, False, "REPEATABILITY ONLY")
    check = next(check for check in verdict.checks if check.name == "new_motion")
    assert "repeatability only" in check.sentence
    assert "another motion" in check.next_step
    assert "REPEATABILITY ONLY" in verdict.summary()


def test_another_run_of_the_plan_shows_repeatability_only(case):
    assert_repeatability_only(case.fit, case.again)


def test_a_run_with_other_friction_shows_repeatability_only(serial):
    assert_repeatability_only(serial.fit, arm_log(serial.fit.mechanism, sines(1), 4, "warm", warm=0.7))


def test_a_copy_without_noise_at_another_speed_shows_repeatability_only(case):
    """The low-pass removed what distinguishes a copy from another run; its efforts are not those of the new speed."""
    smooth = filtered(filtered(case.log))
    for log in (replace(smooth, t=1.1 * smooth.t), samples(smooth, slice(None, None, -1), case.log.t)):
        score = case.fit.score(noisy(log), allow_training=True)
        assert score.training or score.repeated > 0.5


def test_a_later_period_of_the_same_log_shows_repeatability_only(serial):
    first, last = split(serial.log, 0.5)
    fit = di.MAP().fit(di.Regression.from_logs(arm(RRR), [first])).result_
    score = fit.score(last)
    assert not score.training
    assert judge(fit, [score]).headline == "REPEATABILITY ONLY"


def test_a_new_motion_beside_a_repeated_one_validates(serial):
    scores = [serial.fit.score(log) for log in (serial.again, serial.other)]
    verdict = judge(serial.fit, scores)
    assert verdict.validated
    check = next(check for check in verdict.checks if check.name == "new_motion")
    assert check.ok
    assert "'again' repeats 'run'" in check.sentence


# ---- other motions ---------------------------------------------------------------------------------------------------


OTHER_MOTIONS = {
    "other sines": lambda: sines(2),
    "same amplitudes, other phases": lambda: sines(1, phases=7),
    "same frequencies, amplitudes 5 % smaller": lambda: sines(1, size=0.95),
    "same frequencies, amplitudes 10 % larger": lambda: sines(1, size=1.1),
    "the same path, twice as fast": lambda: sines(1, speed=2.0),
    "the same path, half as fast": lambda: sines(1, speed=0.5, seconds=40.0),
    "the same path, backwards": lambda: backwards(sines(1)),
    "the same path, 5 % faster": lambda: sines(1, speed=1.05),
    "pick and place": lambda: pick_and_place((0.6, 0.4, -0.8), (-0.5, 0.7, 0.3), (0.2, -0.6, 0.9)),
    "one joint after the other": lambda: pick_and_place((0.8, 0.0, 0.0), (0.0, 0.8, 0.0), (0.0, 0.0, 0.8)),
}


@pytest.mark.parametrize("motion", OTHER_MOTIONS)
def test_a_run_of_another_motion_is_held_out(serial, motion):
    score = serial.fit.score(arm_log(serial.fit.mechanism, OTHER_MOTIONS[motion](), 11, "other"))
    assert (score.training, score.repeated) == (False, 0.0)


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"seed": 1, "duration": 16.0}, {"seed": 1, "duration": 9.0}, {"seed": 1, "size": 0.9}]
)
def test_a_robot_with_loops_is_validated_on_other_motions(looped, change):
    score = looped.fit.score(five_bar_log(noise=7, **change))
    assert (score.training, score.repeated) == (False, 0.0)


def test_circles_are_other_motions(looped):
    machine = five_bar_machine()
    log = machine.simulate(circle(1.0)).log
    assert looped.fit.score(log).repeated == 0.0


def test_pick_and_place_cycles_differ_by_their_targets():
    robot = arm(RRR)
    first = pick_and_place((0.6, 0.4, -0.8), (-0.5, 0.7, 0.3), (0.2, -0.6, 0.9), (-0.7, -0.3, -0.4))
    second = pick_and_place((0.5, 0.5, -0.7), (-0.6, 0.6, 0.4), (0.3, -0.5, 0.8), (-0.6, -0.4, -0.5))
    fit = di.identify(robot, arm_log(robot, first, 1), validate=0).fit
    assert fit.score(arm_log(robot, second, 2, "other")).repeated == 0.0


# ---- copy or another run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shared", "added", "phi"), [(1.0, 0.0, 0.0), (1.0, 0.3, 0.09), (0.0, 1.0, 2.0)])
def test_noise_of_a_copy_and_of_another_run(shared, added, phi):
    """phi = |x2 - x1|^2 / |x1|^2; the likelihood ratio is about as large as expected, and negative for a copy."""
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 4000, 3))
    ratio, expected, found = another_run([(one, shared * one + added * other, one)], 1.0, np.zeros(3))
    assert found == pytest.approx(phi, rel=0.1, abs=1e-9)
    assert ratio == pytest.approx((1.0 - 2.0 * shared) * expected, rel=0.3, abs=1e-9)


# ---- the fingerprint -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("copied", [True, False])
def test_motion_that_is_faster_than_the_model_is_no_noise_of_a_copy(copied, seed):
    """Efforts of both runs hold the same fast motion; the validation run is noisier, and the prediction is noisiest."""
    rng = np.random.default_rng(seed)

    def pair(size: int, noise: float, louder: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        phase = np.arange(size)[:, None] / 40.0 + rng.uniform(size=(1, 2))  # one oscillation in 40 samples
        motion = 10.0 * np.sin(2.0 * np.pi * phase)
        one = motion + noise * rng.normal(size=phase.shape)
        other = one + 0.5 * noise * rng.normal(size=one.shape) if copied else motion + louder * rng.normal(size=one.shape)
        return one, other, motion + 15.0 * rng.normal(size=one.shape)

    rows, snippets = [pair(20, 5.0, 5.0) for _ in range(10)], [pair(64, 0.01, 12.0) for _ in range(20)]
    assert is_copy(rows, snippets, np.full(2, 1e-9)) == copied


def test_a_fingerprint_is_small_and_exact(serial):
    prepared = prepare(serial.log)
    found = fingerprint(Preparation(Segment(serial.log), Options()))
    t, rows = unpacked(found["samples"][3])
    i = int(np.argmin(np.abs(prepared.motion.t - t[0])))
    np.testing.assert_allclose(rows, prepared.effort[i : i + len(t)], atol=1e-4 * np.ptp(prepared.effort))
    t, rows = (np.concatenate(parts) for parts in zip(*map(unpacked, found["rows"]), strict=True))
    assert found["total"] == len(rows)
    smooth = np.stack([np.interp(t, prepared.motion.t, q) for q in prepared.motion.q.T], axis=1)
    np.testing.assert_allclose(rows[:, :3], smooth, atol=0.02)
    assert len(json.dumps(found)) < 60_000


def test_long_logs_keep_a_limited_number_of_pieces(serial):
    found = fingerprint(Preparation(Segment(serial.log), Options()))
    whole = found
    for _ in range(20):
        whole = both(whole, found)
    assert len(whole["rows"]) <= MOST_PIECES
    assert len(whole["samples"]) <= 32
    assert PIECE * MOST_PIECES > 10_000


def test_a_damaged_fingerprint_is_refused(serial):
    content = serial.fit.to_dict()
    content["sources"][0]["motion"]["rows"][0]["levels"] = "no base64!"
    with pytest.raises(IdentificationError, match="fingerprint of one of its sources is damaged"):
        di.Fit.from_dict(content)


def test_stretches_that_are_close_are_named_as_one():
    spans = [("run", 2.5, 4.0), ("run", 0.0, 2.0), ("run", 5.1, 6.0), ("other", 1.0, 3.0)]
    assert _listed(spans, 1.0) == "'other' from 1 s to 3 s, 'run' from 0 s to 4 s, 'run' from 5.1 s to 6 s"
