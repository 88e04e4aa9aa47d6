"""Whether a load and drive gains can be true, and how gains go into what follows: against arms whose truth is known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.signal import lfilter
from small_robots import ARM3
from test_identify_payload import COM, INERTIA, MASS, arm, by_nominal_gains, record, wrist

import dynident as di
from dynident.errors import DynidentError, IdentificationError, LogError
from dynident.identify import (
    DriveGains,
    Payload,
    estimate_gains,
    payload_from_wrench,
    payload_of,
    payload_regression,
    read_wrench,
    with_gain_uncertainty,
)
from dynident.mechanism import from_com

KNOWN = (4.0, COM, INERTIA)


def with_memory(log: di.Log, seed: int, size: float) -> di.Log:
    """Return a log with noise that is correlated over 0.5 s."""
    keep = np.exp(-0.004 / 0.5)
    white = np.random.default_rng(seed).normal(size=log.effort.shape)
    slow = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white, axis=0)
    return di.Log(log.t, log.joints, log.position, log.effort + size * slow, "joint_torque", name=log.name)


def known_load(factors: np.ndarray, seed: int, memory: float = 0.0) -> DriveGains:
    robot = arm()
    loaded = robot.with_payload(*KNOWN)
    runs = [with_memory(record(r, seed + i, 0.1), seed + i, memory) for i, r in enumerate((robot, robot, loaded))]
    logs = [by_nominal_gains(log, factors) for log in runs]
    return estimate_gains(payload_regression(robot, logs[:2], logs[2:]), *KNOWN)


def test_deviations_of_gains_are_honest_where_noise_has_a_memory() -> None:
    """They were those of white noise: 2.2 times too small here."""
    factors = np.array([1.1, 0.93, 1.05])
    found = [known_load(factors, 10 * k, 0.5) for k in range(12)]
    z = np.array([(each.factors - factors) / each.std for each in found])
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.3


def test_gains_that_the_load_does_not_show_are_told() -> None:
    robot = arm()
    logs = [record(robot, seed, 0.1) for seed in (1, 2)]
    none = estimate_gains(payload_regression(robot, logs[:1], logs[1:]), *KNOWN)  # the load was never there
    assert not none.plausible
    assert none.findings == ("no gain is determined: the efforts do not show the load; give runs that lift and turn it",)
    some = DriveGains(("a", "b"), np.array([1.0, 3.3]), np.diag([1e-4, 9.0]), np.zeros(2), np.ones(2))
    assert some.findings == ("the gain of 'b' is not determined: give runs in which it lifts or turns the load",)
    assert "doubtful: the gain of 'b'" in some.summary()
    assert known_load(np.ones(3), 1).plausible


def test_estimated_gains_are_carried_into_a_load_with_their_covariance() -> None:
    robot, factors = arm(), np.array([1.08, 0.94, 1.05])
    loaded = robot.with_payload(MASS, COM, INERTIA)
    gains = known_load(factors, 40)
    empty, full = (by_nominal_gains(record(r, seed, 0.1), factors) for r, seed in ((robot, 1), (loaded, 3)))
    blind = payload_of(di.WLS().fit(payload_regression(robot, [empty], [full])).result_)
    evidence = payload_regression(robot, [gains.correct(empty)], [gains.correct(full)])
    load, plain = payload_of(with_gain_uncertainty(di.WLS(), evidence, gains)), payload_of(di.WLS().fit(evidence).result_)
    assert abs(blind.mass - MASS) > 4.0 * blind.mass_std
    assert abs(load.mass - MASS) < 3.0 * load.mass_std
    assert plain.mass == load.mass
    assert plain.mass_std < load.mass_std < 0.05 * MASS
    apart = {joint: s / k for joint, s, k in zip(gains.joints, gains.std, gains.factors, strict=True)}
    assert payload_of(with_gain_uncertainty(di.WLS(), evidence, apart)).mass_std != load.mass_std  # gains err together
    one = DriveGains(("elbow",), np.ones(1), np.eye(1), np.zeros(1), np.ones(1))
    with pytest.raises(IdentificationError, match="'elbow' is not a joint"):
        with_gain_uncertainty(di.WLS(), evidence, one)


def test_gains_go_from_command_to_command(tmp_path, capsys, monkeypatch) -> None:
    from dynident.cli import run

    monkeypatch.chdir(tmp_path)
    robot, factors = di.Mechanism.from_urdf(ARM3), np.array([1.1, 0.9, 1.1])
    tool = robot.tree.bodies[-1]
    loaded = robot.with_payload(*KNOWN, body=tool)
    for name, r, seed in (("empty", robot, 1), ("full", loaded, 3), ("none", robot, 5)):
        by_nominal_gains(record(r, seed, 0.1), factors).save(f"{name}.csv")
    runs = ["--unloaded", "empty.csv", "--link", tool, "--loaded"]
    load = ["--mass", "4", "--com", "0.04,-0.02,0.08", "--inertia", "0.02,0.015,0.01", "--strict"]
    assert run(["gains", str(ARM3), *runs, "full.csv", *load, "-o", "gains.json"]) == 0
    assert run(["gains", str(ARM3), *runs, "none.csv", *load]) == 3
    assert "no gain is determined" in capsys.readouterr().out
    found = di.load("gains.json")
    assert isinstance(found, DriveGains)
    seen = found.std < 0.05 * found.factors
    assert seen.any()
    assert np.all(np.abs(found.factors - factors) < 4.0 * found.std)
    assert run(["payload", str(ARM3), *runs, "full.csv", "--gains", "gains.json", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert abs(data["mass"] - 4.0) < 3.0 * data["mass_std"]
    assert run(["payload", str(ARM3), *runs, "full.csv", "--gains", "gains.json", "--heaviest", "3", "--strict"]) == 3
    assert "above the 3 kg that are plausible (--heaviest)" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(DynidentError, match="--gain-std and --gains exclude each other"):
        run(["payload", str(ARM3), *runs, "full.csv", "--gains", "gains.json", "--gain-std", "0.1"])
    with pytest.raises(DynidentError, match="--gains is for runs without and with the load"):
        run(["payload", str(ARM3), "--fit", "fit.json", "--loaded", "full.csv", "--gains", "gains.json"])


# ---- loads -----------------------------------------------------------------------------------------------------------------


def test_what_speaks_against_a_load_is_said_in_plain_words() -> None:
    sure = np.diag([1e-4, *[1e-8] * 9])

    def told(mass: float, covariance: np.ndarray = sure, **limits: float) -> tuple[str, ...]:
        return Payload(from_com(mass, COM, INERTIA), covariance, frame="flange", **{"reach": 1.0, **limits}).findings

    assert not told(2.0)
    assert told(0.01)[0].startswith("no load is detected: its mass of 0.01 +- 0.01 kg")
    assert told(-0.01)[0].startswith("no load is detected")  # zero within its deviation is no negative mass
    assert "loaded and unloaded runs are not exchanged" in told(-2.0)[0]
    assert "above the 5 kg that are plausible" in told(6.0, heaviest=5.0)[0]
    assert not told(5.01, heaviest=5.0)  # not clearly
    loose = np.diag([1e-4, 1e-8, 1e-8, 0.04, *[1e-8] * 6])
    assert told(2.0, loose) == ("its centre of mass is known to only +- 0.1 m (z); rotate and accelerate the load more",)


def test_a_load_that_outweighs_its_arm_is_doubted() -> None:
    robot = wrist()
    values = {f"m_{body}": 5.0 for body in robot.tree.bodies}
    heavy = robot.with_parameters(robot.parameters.replace(values))
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 3))
    weight = di.forward_kinematics(robot, q, "link_3")[0].transpose(0, 2, 1) @ [0.0, 0.0, -80.0 * 9.81]
    wrench = np.hstack([weight, np.cross(COM, weight)])
    assert payload_from_wrench(robot, q, wrench, "link_3").plausible  # described without masses: nothing to compare with
    assert "above the 30 kg that are plausible" in payload_from_wrench(heavy, q, wrench, "link_3").findings[0]
    assert payload_from_wrench(heavy, q, wrench, "link_3", heaviest=100.0).plausible
    with pytest.raises(DynidentError, match="heaviest is -1"):
        payload_from_wrench(heavy, q, wrench, "link_3", heaviest=-1.0)


def test_a_bias_that_poses_do_not_tell_from_the_load_is_not_told() -> None:
    """One pose, measured twenty times: bias and weight came out as a mixture, with a deviation."""
    robot = wrist()
    q = np.tile([0.3, -0.5, 0.7], (20, 1))
    wrench = np.tile([1.0, -3.0, 5.0, 0.1, 0.2, 0.3], (20, 1)) + 0.01 * np.random.default_rng(0).normal(size=(20, 6))
    load = payload_from_wrench(robot, q, wrench, "link_3")
    assert load.bias is not None
    assert load.bias_std is not None
    assert np.isnan(load.bias).all()
    assert np.isnan(load.bias_std).all()
    assert "sensor bias: these poses do not separate it" in load.summary()


def test_tables_of_poses_with_a_clock_and_lost_numbers_are_explained(tmp_path) -> None:
    robot = wrist()
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (80, 3))
    wrench = np.ones((80, 6))
    head = ",".join(["t", *robot.coordinate_names, "fx", "fy", "fz", "tx", "ty", "tz"])
    table = np.column_stack([10.0 * np.arange(80), q, wrench])
    np.savetxt(tmp_path / "poses.csv", table, delimiter=",", header=head, comments="")
    with pytest.raises(LogError, match="samples 10 s apart, too slow for a motion; omit the time column"):
        read_wrench(robot, tmp_path / "poses.csv")
    wrench[3, 2] = np.nan
    with pytest.raises(IdentificationError, match="fz of sample 3 is nan"):
        payload_from_wrench(robot, q, wrench, "link_3")
