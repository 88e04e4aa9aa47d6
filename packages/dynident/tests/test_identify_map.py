"""The default estimator: a belief that helps where data are poor and vanishes where they are good."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from benchmarks.population import move, population, record
from identify_cases import DOWN_Y, PLANAR, RRR, arm, check_estimator, doubts_of, evidence, simulated_log, smooth, truth

import dynident as di
from dynident.errors import DynidentWarning, IdentificationError
from dynident.friction import TERMS
from dynident.identify import MAP, WLS, Fit, Knowledge, Regression, base_parameters
from dynident.identify.figures import Undetermined
from dynident.identify.posterior.posterior import FRICTION, _pair, _says_nothing, at_least_jackknife, jackknife
from dynident.identify.prediction import _held, model_errors
from dynident.mechanics import inverse_dynamics
from dynident.mechanism import apply_sidecar


def wrong(robot, scale=1.3):
    """Return the robot as described: masses too large, no joint terms."""
    inertial = robot.tree.inertias.size
    values = np.where(np.arange(len(robot.parameters)) < inertial, scale * robot.parameters.values, 0.0)
    return robot.with_parameters(robot.parameters.replace(values))


def told(robot, samples=1500, noise=0.1, seed=0, speed=1.0, description=None, size=1.0):
    """Return evidence about `robot` for someone who has `description`."""
    motion = smooth(robot.dof, samples, seed)
    moved = di.Motion(motion.t, size * motion.q, size * speed * motion.v, size * speed**2 * motion.a)
    rng = np.random.default_rng(seed + 50)
    tau = inverse_dynamics(robot, moved)
    described = wrong(robot) if description is None else description
    return Regression.from_motion(described, moved, tau + noise * rng.normal(size=tau.shape))


def test_it_keeps_the_protocol():
    check_estimator(MAP)


def test_with_good_data_the_belief_vanishes():
    regression = told(arm(RRR), samples=20000, noise=0.02)
    free, fit = WLS().fit(regression).result_, MAP().fit(regression).result_
    assert np.max(np.abs(fit.values - free.values) / free.std) < 0.3
    assert all(c.ok for c in fit.consistency())
    assert fit.solved.all()


def test_with_poor_data_it_is_better_than_least_squares_and_than_the_description():
    better_than_free, better_than_described = [], []
    for seed in range(4):
        robot = arm(RRR, prior=seed + 1)
        regression = told(robot, samples=300, noise=0.3, seed=seed, speed=0.3, size=0.3)
        fast = smooth(3, 600, seed=seed + 90)
        tau = inverse_dynamics(robot, fast)
        fits = WLS().fit(regression).result_, MAP().fit(regression).result_
        free, default = (float(np.linalg.norm(fit.predict(fast).effort - tau)) for fit in fits)
        described = float(np.linalg.norm(inverse_dynamics(regression.mechanism, fast) - tau))
        better_than_free.append(default / free)
        better_than_described.append(default / described)
    assert np.exp(np.mean(np.log(better_than_free))) < 0.5
    assert max(better_than_described) < 1.0


@pytest.mark.parametrize("encoder", [1e-6, 1e-4])
def test_a_joint_that_stands_keeps_its_description_however_noisy_its_encoder_is(encoder):
    """Accelerations of noise alone must not become a rotor of a hundred times the described one."""
    robot, rng = arm(RRR), np.random.default_rng(4)
    described = robot.with_parameters(robot.parameters.replace(1.1 * robot.parameters.values))
    moved = smooth(3, 4000, seed=2)
    stands = np.array([1.0, 1.0, 0.0])
    motion = di.Motion(moved.t, moved.q * stands + [0.0, 0.0, 0.4], moved.v * stands, moved.a * stands)
    tau = inverse_dynamics(robot, motion)
    q = motion.q + encoder * rng.normal(size=tau.shape)
    log = di.Log(motion.t, robot.coordinate_names, q, tau + 0.1 * rng.normal(size=tau.shape), "joint_torque")
    evidence = Regression.from_logs(described, [log])
    fit, without = (MAP(recovery=rule).fit(evidence).result_ for rule in ("physical", "prior"))
    for name in ("ia_joint_3", "fv_joint_3", "fc_joint_3"):
        assert without.standard[name] == pytest.approx(described.parameters[name], rel=1e-9)
        # The barrier of the inequalities moves what no data hold, by some millionths of a term's unit.
        assert fit.standard[name] == pytest.approx(described.parameters[name], rel=1e-4)
    fast = smooth(3, 300, seed=9)  # now the third joint moves too
    wanted = inverse_dynamics(robot, fast)
    ours, theirs = (np.linalg.norm(x - wanted) for x in (fit.predict(fast).effort, inverse_dynamics(described, fast)))
    assert ours < theirs


@pytest.mark.parametrize("law", ["coulomb + viscous", "tanh + viscous"])
def test_bands_at_rest_are_as_wide_with_a_friction_law_as_with_terms(law):
    """A standing joint carries anything up to its Coulomb friction, however that is written down."""
    robot = arm(PLANAR, gravity=DOWN_Y)
    log = simulated_log(robot, noise=0.02)
    standing = di.Motion([0.0], [[0.3, 0.2]], [[0.0, 0.0]], [[0.0, 0.0]])
    terms = MAP().fit(Regression.from_logs(wrong(robot), [log])).result_.predict(standing).std
    fit = di.fit_friction(wrong(robot), [log], law)
    np.testing.assert_allclose(terms[0], [robot.parameters[f"fc_{joint}"] / np.sqrt(3.0) for joint in log.joints], rtol=0.1)
    share = fit.predict(standing).std / terms
    assert np.all((share > 0.95) & (share < 1.3))  # the step of a smooth law about standstill has some of the viscous friction


def test_what_is_scored_is_what_is_exported(tmp_path):
    robot = arm(RRR)
    train, other = (simulated_log(robot, noise=0.3, seed=seed) for seed in (0, 1))
    fit = MAP().fit(Regression.from_logs(wrong(robot), [train])).result_
    np.testing.assert_allclose(fit.values, fit.exported().values, rtol=1e-12, atol=1e-12)
    motion = smooth(3, 200, seed=8)
    np.testing.assert_allclose(fit.predict(motion).effort, inverse_dynamics(fit.model, motion), rtol=1e-9, atol=1e-9)
    score = fit.score(other)
    assert score.metrics.relative < score.description
    assert f"before: {100 * score.description:.2f} % (description)" in score.summary()
    again = Fit.load(fit.save(tmp_path / "fit.json"), wrong(robot))
    assert again.score(other).coverage == score.coverage
    one, other = again.posterior, fit.posterior
    assert (one.free_relative, one.description_relative) == (other.free_relative, other.description_relative)
    np.testing.assert_array_equal(one.determined, other.determined)
    row = fit.undetermined()[0]
    assert isinstance(row, Undetermined)
    assert row.description == wrong(robot).parameters[row.name]
    assert row.name in fit.summary()


def test_the_belief_has_the_size_of_the_robot():
    """A robot of a tonne is not held at toy size, with or without a description."""
    for scale in (1.0, 1000.0):
        robot = arm(PLANAR, gravity=DOWN_Y)
        robot = robot.with_parameters(robot.parameters.replace(scale * robot.parameters.values))
        silent = robot.with_parameters(robot.parameters.replace(np.zeros(len(robot.parameters))))
        for described in (wrong(robot), silent):
            fit = MAP().fit(told(robot, noise=0.01 * scale, description=described)).result_
            motion = smooth(2, 100, seed=7)
            error = fit.predict(motion).effort - inverse_dynamics(robot, motion)
            assert np.max(np.abs(error)) < 0.05 * scale


def test_a_rotor_is_preferred_where_the_description_says_nothing():
    robot = arm([(0.0, 0.0, 0.0, 0.0)], ("ia", "fv"), (0.0, 0.0, 0.0))  # Izz and ia are seen only as a sum
    silent = robot.with_parameters(robot.parameters.replace(np.zeros(len(robot.parameters))))
    fit = MAP().fit(told(robot, noise=0.001, description=silent)).result_
    assert fit.standard["ia_joint_1"] > fit.standard["Izz_link_1"]
    described = MAP().fit(told(robot, noise=0.001, description=robot)).result_
    assert described.standard["Izz_link_1"] == pytest.approx(robot.parameters["Izz_link_1"], rel=0.5)


@pytest.mark.parametrize("estimator", [MAP(), WLS(recovery="physical")])
def test_what_no_torque_shows_is_zero_and_not_round_off(estimator):
    silent = arm(prior=None)
    fit = estimator.fit(told(arm(), noise=0.05, description=silent)).result_
    sizes = np.abs(fit.standard.values)
    assert fit.standard["mx_link_1"] == fit.standard["my_link_1"] == fit.standard["mz_link_1"] == 0.0
    assert np.all((sizes == 0.0) | (sizes > 1e-9))


def test_known_masses_and_centres(tmp_path):
    robot = arm(RRR)
    regression = told(robot)
    mass = robot.parameters["m_link_2"]
    com = [robot.parameters[f"m{axis}_link_2"] / mass for axis in "xyz"]
    total = float(sum(robot.parameters[f"m_link_{i}"] for i in (1, 2, 3)))
    known = Knowledge({"link_2": (mass, 0.001)}, total, {"link_2": com}, ())
    fit = MAP(known=known).fit(regression).result_
    assert fit.standard["m_link_2"] == pytest.approx(mass, rel=0.01)
    assert sum(fit.standard[f"m_link_{i}"] for i in (1, 2, 3)) == pytest.approx(total, rel=1e-3)
    assert fit.standard["mx_link_2"] / fit.standard["m_link_2"] == pytest.approx(com[0], abs=0.01)
    free = MAP().fit(regression).result_
    assert abs(free.standard["m_link_2"] - mass) > 0.05  # torques alone do not know it
    none = MAP(known=Knowledge(without=("link_1",))).fit(regression).result_
    assert not np.any([none.standard[f"{s}_link_1"] for s in ("m", "mx", "my", "mz", "Izz")])
    sidecar = tmp_path / "known.toml"
    sidecar.write_text('[known]\nmasses = { link_2 = [2.0, 0.1] }\ntotal_mass = 5\nwithout = ["link_1"]\n')
    assert Knowledge.from_sidecar(sidecar) == Knowledge({"link_2": [2.0, 0.1]}, 5, {}, ["link_1"])
    assert apply_sidecar(robot, sidecar).dof == 3
    for bad, words in (
        (Knowledge({"nobody": 1.0}), "no body 'nobody'"),
        (Knowledge(centres={"link_1": (1.0, 2.0)}), "three numbers"),
    ):
        with pytest.raises(IdentificationError, match=words):
            MAP(known=bad).fit(regression)
    sidecar.write_text("[known]\nweights = 3\n")
    with pytest.raises(IdentificationError, match=r"the mass of 'link_1' is -1\.0"):
        Knowledge({"link_1": -1.0})
    with pytest.raises(IdentificationError, match="total mass"):
        Knowledge(total_mass=float("nan"))
    with pytest.raises(IdentificationError, match="unknown key 'weights'"):
        Knowledge.from_sidecar(sidecar)


def test_deviations_allow_for_residuals_that_are_not_independent():
    """Noise that is correlated over many rows makes estimates scatter more than a count of rows says."""
    robot = arm(PLANAR, gravity=DOWN_Y)
    base = base_parameters(robot)
    beta, z, naive = base.values(robot.parameters.values), [], []
    motion = smooth(2, 1500, seed=1)
    tau = inverse_dynamics(robot, motion)
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=(1540, 2))
        slow = np.stack([np.convolve(noise[:, j], np.ones(40) / 40**0.5, mode="valid")[:1500] for j in range(2)], axis=1)
        regression = Regression.from_motion(wrong(robot), motion, tau + 0.1 * slow)
        fit, free = MAP().fit(regression).result_, WLS().fit(regression).result_
        assert np.all(fit.posterior.inflation > 3.0)
        z.append((fit.values - beta) / fit.std)
        naive.append((free.values - beta) / free.std)
    assert np.sqrt(np.mean(np.square(naive))) > 3.0
    assert np.sqrt(np.mean(np.square(z))) < 1.5


@pytest.mark.parametrize("stretches", [4, 6, 12])
def test_two_deviations_hold_as_much_from_few_stretches_as_from_many(stretches):
    """The mean of normal numbers, where Student's distribution is exact: 95.45 % lie within two deviations."""
    x = np.random.default_rng(stretches).normal(size=(stretches, 40000))
    std = np.sqrt(jackknife((x.sum(axis=0) - x) / (stretches - 1)))
    assert np.mean(np.abs(x.mean(axis=0)) < 2.0 * std) == pytest.approx(0.9545, abs=0.005)


def test_a_term_that_the_data_contradict_is_named_and_everything_stays_possible():
    """Viscous friction 6 deviations below zero in one joint; the others are not blamed, and the misfit widens the bands."""
    robot = arm(RRR)
    motion, phi = smooth(3, 1500, seed=4), truth(robot)
    described = robot.with_parameters(robot.parameters.replace(phi))
    noise = 0.1 * np.random.default_rng(4).normal(size=(1500, 3))
    name = f"fv_{robot.coordinate_names[1]}"

    def fitted(values, **how):
        effort = inverse_dynamics(robot, motion, robot.parameters.replace(values).values) + noise
        return MAP(**how).fit(Regression.from_motion(described, motion, effort)).result_

    start = {**dict(zip(robot.parameters.names, phi, strict=True)), name: 0.0}
    free = fitted(start, recovery="prior")
    at = free.base.names.index(name)
    turned = {**start, name: -(free.values[at] + 6.0 * free.std[at])}
    fit, unconstrained = fitted(turned), fitted(turned, recovery="prior")
    (said,) = [note for note in fit.notes if note.kind == "negative_terms"]
    assert name in said.sentence
    assert not any(f"fv_{joint}" in said.sentence for joint in robot.coordinate_names if f"fv_{joint}" != name)
    assert all(row.ok for row in fit.consistency())
    assert fit.values[at] > -1e-9
    assert unconstrained.values[at] < 0.0
    far = fitted({**start, name: -300.0 * free.std[at]})  # the error that this term causes is not that of bodies
    assert far.training_relative > 2.0 * free.training_relative
    assert {note.kind for note in far.notes if note.severity == "warning"} == {"negative_terms"}
    assert fit.sigma[1] > unconstrained.sigma[1]


def test_at_rest_friction_may_be_anything():
    robot = arm(RRR)
    fit = MAP().fit(told(robot)).result_
    motion = smooth(3, 50, seed=3)
    rest = di.Motion(motion.t, motion.q, 0.0 * motion.v, 0.0 * motion.a)
    fc = np.array([fit.standard[f"fc_joint_{i}"] for i in (1, 2, 3)])
    assert np.all(fit.predict(rest).std >= fc / np.sqrt(3.0))
    assert np.median(fit.predict(motion).std) < 0.5 * np.max(fc)


def test_model_errors_grow_with_the_terms_that_make_them():
    robot = arm(PLANAR, gravity=DOWN_Y)
    fit = MAP().fit(told(robot, noise=0.5)).result_.altered(speeds={})  # without what friction at rest adds
    fit = fit.altered(covariance=0.0 * fit.covariance, calibration=None, growing=None)
    motion = smooth(robot.dof, 1500, seed=0)  # that of the training: the variances of the terms add up to sigma^2 in the mean
    a = fit.posterior.training_columns * np.abs(fit.values)
    share = fit.sigma[:, None] ** 2 / (a * a.sum(axis=1, keepdims=True) + 1e-300)
    np.testing.assert_allclose(np.sum(share * a**2, axis=1), fit.sigma**2, rtol=1e-9)
    in_training = np.sum(fit.posterior.training_columns**2 * model_errors(fit, fit.sigma**2), axis=1)
    np.testing.assert_allclose(in_training, fit.sigma**2, rtol=0.1)  # less where a term would be wrong by more than itself
    assert np.all(in_training <= fit.sigma**2 * (1.0 + 1e-9))
    np.testing.assert_allclose(fit.predict(motion).std.mean(axis=0), fit.sigma, rtol=0.3)
    fast = di.Motion(motion.t, motion.q, 4.0 * motion.v, 16.0 * motion.a)
    faster = di.Motion(motion.t, motion.q, 1e6 * motion.v, 1e12 * motion.a)
    assert np.all(fit.predict(fast).std.max(axis=0) > 4.0 * fit.sigma)
    slow = di.Motion(motion.t, motion.q, 0.1 * motion.v, 0.01 * motion.a)
    assert np.all(fit.predict(slow).std >= fit.sigma - 1e-12)  # what was left out of the fit is not known better than that
    columns = np.abs(fit.equations.equations(faster, None, fit.base.columns)[0])
    terms = np.einsum("nbt,b->tn", columns, np.abs(fit.values))
    assert np.all(fit.predict(faster).std <= np.hypot(terms, fit.sigma) + 1e-9)  # no term is wrong by more than itself


def test_residuals_that_scale_the_terms_are_told_from_noise():
    """Efforts whose scale changes from stretch to stretch, and noise of the same size."""
    robot = arm(PLANAR, gravity=DOWN_Y)
    motion, rng = smooth(robot.dof, 3000, seed=0), np.random.default_rng(0)
    effort = inverse_dynamics(robot, motion)
    scaled = 0.1 * effort * np.repeat(rng.normal(size=(12, robot.dof)), 250, axis=0)
    noise = np.std(scaled) * rng.normal(size=effort.shape)
    shares = [MAP().fit(Regression.from_motion(robot, motion, effort + e)).result_.posterior.growing for e in (noise, scaled)]
    assert np.max(shares[0]) < 0.2
    assert np.min(shares[1]) > 0.5


def test_joint_terms_that_do_not_act_are_not_believed_in():
    robot = arm(RRR, terms=("ia", "fv", "fc", "off"))
    values = {f"{term}_joint_{i}": size for term, size in (("ia", 0.0), ("off", 0.0), ("fc", 10.0)) for i in (1, 2, 3)}
    scales = MAP().fit(told(robot.with_parameters(robot.parameters.replace(values)), noise=0.02)).result_.posterior.scales
    assert scales[TERMS["ia"].meaning] < 0.1
    assert scales[FRICTION] > 0.2  # one in three of its parameters acts


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_move_in_one_direction_leaves_open_what_is_friction_and_what_is_an_offset(direction):
    """All axes move one way: fc sign(v) and off are one column; the way back shows which it was."""
    robot = arm(RRR, terms=("ia", "fv", "fc", "off"))
    values = {f"{name}_joint_{i}": size / i for name, size in (("fc", 4.0), ("off", 0.4), ("fv", 0.5)) for i in (1, 2, 3)}
    robot = robot.with_parameters(robot.parameters.replace(values))
    t, w = np.arange(1600)[:, None] / 200.0, 2.5
    way = direction * np.array([0.3, -0.1, 0.1])

    def move(sign):  # never at rest
        q, v, a = t - np.cos(w * t) / (2 * w), 1.0 + 0.5 * np.sin(w * t), 0.5 * w * np.cos(w * t)
        return di.Motion(t[:, 0], *(sign * way * each for each in (q, v, a)))

    rng = np.random.default_rng(3)
    there, back = (
        di.Log(m.t, robot.coordinate_names, m.q, inverse_dynamics(robot, m) + 0.05 * rng.normal(size=m.q.shape), "joint_torque")
        for m in (move(1.0), move(-1.0))
    )
    fit = MAP().fit(Regression.from_logs(wrong(robot), [there])).result_
    score = fit.score(back)
    assert np.mean(np.abs(score.measured - score.predicted)[:, 0] < 2.0 * score.std[:, 0]) > 0.9
    for name in ("fc_joint_1", "off_joint_1"):
        k = fit.base.names.index(name)
        assert abs(fit.values[k] - values[name]) < 2.0 * fit.std[k]
    assert abs(fit.standard["off_joint_1"]) < 0.5 * fit.standard["fc_joint_1"]  # what is friction or offset is friction


def test_stretches_add_up_and_survive_the_disc(tmp_path):
    robot = arm(PLANAR, gravity=DOWN_Y)
    one, other = told(robot, seed=1), told(robot, seed=2)
    both = one + replace(other, base=one.base)
    for group in both.groups:
        assert sum(group.counts) == group.count
        np.testing.assert_allclose(group.products.sum(axis=0), group.R.T @ group.R, rtol=1e-9, atol=1e-9)
    back = Regression.load(both.save(tmp_path / "both.npz"), both.mechanism)
    np.testing.assert_array_equal(MAP().fit(back).coef_, MAP().fit(both).coef_)
    many = both
    for _ in range(5):
        many = many + both
    assert max(len(group.counts) for group in many.groups) <= 48
    np.testing.assert_allclose(many.groups[0].products.sum(axis=0), 6 * both.groups[0].products.sum(axis=0), rtol=1e-12)


# ---- one band --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")
def test_bands_that_leave_too_few_rows_of_a_short_log_are_not_tried():
    case = next(islice(population(4, seed=5011), 3, None))
    rng = np.random.default_rng([5, 3])
    log = record(case.true, move(case.true.dof, 8.0, rng, 0.8), case.world, rng, "one move")
    found = Regression.from_logs(case.described, [log])  # the narrowest band has 24 rows for 25 parameters
    assert found.rows > found.base.rank


def test_all_logs_of_a_fit_share_one_band():
    robot = arm(RRR)
    logs = [simulated_log(robot, seconds, seed, noise=0.3) for seed, seconds in ((0, 20.0), (1, 6.0), (2, 12.0))]
    regression = Regression.from_logs(robot, logs)
    bands = {(source["cutoff"], source["bandwidth"]) for source in regression.sources}
    assert len(bands) == 1
    assert all(source["bandwidth"] <= source["cutoff"] for source in regression.sources)
    assert regression.notes[0].sentence.startswith("one band for all logs: cut-off")
    given = Regression.from_logs(robot, logs, cutoff=7.0, band=3.0)
    assert {source["cutoff"] for source in given.sources} == {7.0}
    with pytest.raises(IdentificationError, match="list of logs is empty"):
        Regression.from_logs(robot, [])


def test_noisy_positions_do_not_open_the_band():
    """Positions with 1 % noise: the band stays where the motion is, and the first moment is not biased towards zero."""
    robot = arm([(0.3, 0.0, 0.0, 0.0)], gravity=DOWN_Y)
    clean = simulated_log(robot, 40.0, noise=0.02)
    rng = np.random.default_rng(0)
    noisy = replace(clean, position=clean.position + 0.01 * rng.normal(size=clean.position.shape))
    regression = Regression.from_logs(robot, [noisy])
    assert regression.sources[0]["cutoff"] < 6.0  # the motion ends at 0.75 Hz
    fit = MAP().fit(Regression.from_logs(wrong(robot), [noisy])).result_
    beta = fit.base.values(robot.parameters.values)
    index = fit.base.leaders.index("mx_link_1")
    assert fit.values[index] == pytest.approx(beta[index], rel=0.02)


def test_causal_and_zero_phase_filters():
    robot = arm(RRR)
    log = simulated_log(robot, noise=0.05)
    zero, causal = (di.signals.prepare(log, cutoff=8.0, order=2, phase=phase) for phase in ("zero", "causal"))
    late = np.argmax([np.corrcoef(causal.motion.q[k : k + 3000, 0], zero.motion.q[:3000, 0])[0, 1] for k in range(20)])
    assert late == pytest.approx(200.0 * np.sqrt(2.0) / (2.0 * np.pi * 8.0), abs=1.5)  # delay of a second-order low-pass
    fit = WLS().fit(Regression.from_log(robot, log, cutoff=8.0, order=2, phase="causal")).result_
    best = WLS().fit(Regression.from_log(robot, log, cutoff=8.0, order=2)).result_
    assert fit.training_relative < 3.0 * best.training_relative < 0.004  # efforts are as late as the motion
    np.testing.assert_allclose(causal.velocity_noise, zero.velocity_noise)  # a delay is no noise
    for options, words in (({"phase": "linear"}, "phase is"), ({"order": 0}, "order is"), ({"band": -1.0}, "band is")):
        with pytest.raises(di.DynidentError, match=words):
            di.signals.prepare(log, **options)


# ---- suspicions ------------------------------------------------------------------------------------------------------


def suspected(change) -> str:
    robot = arm(RRR)
    return "; ".join(doubts_of(MAP().fit(Regression.from_logs(robot, [change(simulated_log(robot, noise=0.05))])).result_))


@pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")
def test_what_a_person_would_suspect():
    assert suspected(lambda log: log) == ""
    assert "opposite sign" in suspected(lambda log: replace(log, effort=-log.effort))
    assert "joint_2 have the opposite sign" in suspected(lambda log: replace(log, effort=log.effort * [1, -1, 1]))
    assert "joint_2 and joint_3 look exchanged" in suspected(lambda log: replace(log, effort=log.effort[:, [0, 2, 1]]))
    assert "all efforts are" in suspected(lambda log: replace(log, effort=np.degrees(log.effort)))
    assert "joint_2 are 5 times what" in suspected(lambda log: replace(log, effort=log.effort * [1, 5, 1]))


def _of_arm6(change):
    arm = di.examples.arm6()
    evidence = di.Regression.from_log(arm.robot, change(arm.run), cutoff=20.0)
    return "; ".join(doubts_of(di.MAP().fit(evidence).result_))


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)])
def test_exchanged_efforts_are_named_whatever_the_description(pair):
    order = np.arange(6)
    order[list(pair)] = order[list(pair)[::-1]]
    found = _of_arm6(lambda log: replace(log, effort=log.effort[:, order]))
    assert found == f"the efforts of joint{pair[0] + 1} and joint{pair[1] + 1} look exchanged; check the order of the columns"


def test_a_gain_that_contradicts_the_other_joints_is_named_with_its_number():
    found = _of_arm6(lambda log: replace(log, effort=log.effort * [1, 1, 0.5, 1, 1, 1]))
    assert found.startswith("the efforts of joint3 are 0.5 times what the other joints need")


def test_a_gear_that_is_counted_twice_leaves_the_limits_of_its_joint():
    """Joint 4 carries hardly more than its friction; its drive has a limit."""
    found = _of_arm6(lambda log: replace(log, effort=log.effort * [1, 1, 1, 100, 1, 1]))
    assert "efforts of joint4 (" in found
    assert "where the description allows 60) leave their limits by far" in found


@pytest.mark.filterwarnings("ignore:log:dynident.errors.SignalWarning")
def test_units_that_are_not_marked_are_suspected_by_the_limits_of_the_robot():
    """Degrees of a small motion stay within a few radians; a note says where they leave the range of a joint."""
    arm = di.examples.arm6()
    q, t = arm.run.position, arm.run.t

    def notes(**change):
        found = di.inspect(replace(arm.run, velocity=None, **change), arm.robot).findings
        return "; ".join(f"{finding.severity}: {finding.sentence}" for finding in found)

    assert "degrees taken for radians (position=deg)?" in notes(position=np.degrees(q))
    assert "encoder counts taken for radians (position=counts)?" in notes(position=1303.8 * q)
    assert "error: speeds of joint1 (" in notes(t=t / 10)
    little = notes(position=np.degrees(0.03 * q))
    assert "positions are outside of the description's limits: joint2 (-3.11 to 1.62, limits -2.2 to 1.2)" in little
    assert "outside" not in notes(position=q)


def test_faults_of_positions_and_several_faults_at_once_are_told_apart():
    turned = _of_arm6(lambda log: replace(log, position=log.position * [1, -1, 1, 1, 1, 1], velocity=None))
    assert turned == "the positions of joint2 look inverted; check their sign"
    swapped = _of_arm6(lambda log: replace(log, position=log.position[:, [0, 2, 1, 3, 4, 5]], velocity=None))
    assert swapped == "the positions of joint2 and joint3 look exchanged; check the order of the columns"
    two = _of_arm6(lambda log: replace(log, effort=log.effort * [1, -1, 1, -1, 1, 1]))
    assert two.startswith("the efforts of joint2, joint4 have the opposite sign")


def test_a_turned_joint_without_a_description_is_known_by_its_friction():
    """Nothing but friction tells the sign of the efforts of one axis without a description."""
    robot = di.Mechanism.from_dh([{"a": 0, "alpha": 0, "d": 0, "theta": 0, "kind": "prismatic"}], gravity=(0, 0, 0))
    t = np.arange(4000) / 200
    motion = di.Motion(t, np.sin(2 * t)[:, None], 2 * np.cos(2 * t)[:, None], -4 * np.sin(2 * t)[:, None])
    effort = 3 * motion.a + 5 * motion.v + 2 * np.sign(motion.v) + 0.1 * np.random.default_rng(0).normal(size=(4000, 1))
    for sign, count in ((1.0, 0), (-1.0, 1)):
        log = di.Log(
            t=t, joints=robot.coordinate_names, position=motion.q, effort=sign * effort, effort_kind="joint_torque", name="x"
        )
        assert len(doubts_of(di.MAP().fit(di.Regression.from_log(robot, log)).result_)) == count


def test_a_flipped_sign_is_reported_and_bodies_stay_possible(tmp_path):
    robot = arm(RRR)
    log = simulated_log(robot, noise=0.05)
    fit = MAP().fit(Regression.from_logs(robot, [replace(log, effort=-log.effort)])).result_
    assert any("contradict physically consistent bodies" in note.sentence for note in fit.notes)
    assert all(c.ok for c in fit.consistency())
    right = MAP().fit(Regression.from_logs(robot, [log])).result_
    assert not any(note.kind == "impossible_bodies" for note in right.notes)
    fit.save(tmp_path / "fit.json")
    np.testing.assert_allclose(di.load(tmp_path / "fit.json").posterior.unconstrained, fit.posterior.unconstrained)


def test_contributing_parameters():
    regression = evidence(arm(RRR), noise=0.05)[0]
    from dynident.identify import contributing_parameters

    few = contributing_parameters(regression, share=0.02, level=0.0)
    assert 0 < np.count_nonzero(~few.active) < few.base.rank
    with pytest.warns(DynidentWarning, match="residuals grow"):
        careful = contributing_parameters(regression, share=0.2)
    assert np.count_nonzero(careful.active) > np.count_nonzero(contributing_parameters(regression, share=0.2, level=0.0).active)
    assert careful.training_relative < 1.1 * WLS().fit(regression).result_.training_relative
    with pytest.raises(IdentificationError, match="share is 2"):
        contributing_parameters(regression, share=2.0)


def test_truth_helper_makes_possible_bodies():
    robot = arm(RRR)
    assert all(c.ok for c in robot.check_consistency(robot.parameters.replace(truth(robot, 5))))


def test_the_exported_description_makes_the_printed_error_in_pinocchio(tmp_path):
    """Somebody else's dynamics of the written URDF, plus the joint terms of the report, has the error that the score prints."""
    pin = pytest.importorskip("pinocchio")
    demo = Path(__file__).parents[3] / "examples" / "demo"
    robot = di.Mechanism.from_urdf(demo / "robot.urdf")
    train, held = (di.Log.read(demo / f"{name}.csv.gz") for name in ("train", "validate"))
    fit = MAP().fit(Regression.from_logs(robot, [train])).result_
    score = fit.score(held)
    di.mechanism.write_urdf(demo / "robot.urdf", robot, fit.standard, tmp_path / "identified.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "identified.urdf"))
    data = model.createData()
    source = fit.sources[0]
    prepared = di.signals.prepare(held, cutoff=source["cutoff"], band=source["bandwidth"])
    q, v, a = prepared.motion.q, prepared.motion.v, prepared.motion.a
    model.armature[:] = model.friction[:] = model.damping[:] = 0.0  # what is in the file must not count twice
    rigid = np.array([pin.rnea(model, data, *each) for each in zip(q, v, a, strict=True)])
    ia, fv, fc, off = (np.array([fit.standard[f"{s}_{j}"] for j in robot.coordinate_names]) for s in ("ia", "fv", "fc", "off"))
    predicted = prepared.decimator.apply(rigid + ia * a + fv * v + fc * np.sign(v) + off)
    measured = prepared.decimator.apply(prepared.filtered)
    error = np.linalg.norm(predicted - measured) / np.linalg.norm(measured)
    assert error == pytest.approx(score.metrics.relative, rel=1e-6)


def test_a_turned_effort_is_suspected_where_the_rotor_hides_the_description():
    """The CAD model of the example has no rotors, which make most of the torque of its third joint."""
    arm = di.examples.arm6()
    for signs, expected in (([1, 1, 1, 1, 1, 1], ()), ([1, 1, -1, 1, 1, 1], ("the efforts of joint3 have the opposite sign",))):
        log = replace(arm.run, effort=arm.run.effort * signs)
        found = doubts_of(di.MAP().fit(di.Regression.from_log(arm.robot, log, cutoff=20.0)).result_)
        assert len(found) == len(expected)
        assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


@pytest.mark.parametrize("known", [{"masses": {"link1": -1.0}}, {"masses": {"link1": (2.0, -0.1)}}, {"total_mass": -3.0}])
def test_knowledge_refuses_negative_masses(known):
    with pytest.raises(IdentificationError, match=r"mass.* is .*; give a number from 0"):
        Knowledge(**known)


@pytest.mark.parametrize("name", ["result_", "coef_", "covariance_"])
def test_results_before_fit_say_what_to_do(name):
    with pytest.raises(AttributeError, match=f"MAP has no attribute '{name}'; call fit first"):
        getattr(MAP(), name)
    assert not hasattr(MAP(), name)
    with pytest.raises(AttributeError, match="no attribute 'resutl'; there is none"):
        MAP().resutl  # noqa: B018


def test_two_calibrated_deviations_hold_95_percent_of_stretches_that_differ():
    """Stretches of 4000 rows whose noise differs four times, beside a stated deviation that is too small or too large."""
    rng, sizes = np.random.default_rng(5), np.array([0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 2.0])
    rows = [s * rng.normal(size=4000) for s in sizes]
    for stated in (0.4, 4.0):
        q = _held(np.array([np.full(8, 4000.0), [np.sqrt(np.mean(y**2)) / stated for y in rows]]))
        assert np.mean(np.abs(np.concatenate(rows)) <= 2.0 * stated * q) == pytest.approx(0.9545, abs=0.003)


def test_bands_hold_95_percent_of_another_run_in_the_same_regime():
    """The calibrated factor makes up for deviations of parameters that are stated too small."""
    robot, held = arm(RRR), []
    for seed in range(20):
        fit = MAP().fit(told(robot, samples=3000, noise=0.3, seed=seed)).result_
        motion = smooth(robot.dof, 1500, seed + 20)
        noise = 0.3 * np.random.default_rng(seed + 90).normal(size=(1500, robot.dof))
        error = inverse_dynamics(robot, motion) + noise - fit.predict(motion).effort
        held.append(np.mean(np.abs(error) <= 2.0 * fit.predict(motion).std))
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_a_simulation_without_noise_contradicts_nothing_and_alarms_nobody() -> None:
    robot = di.examples.arm6().robot
    curve = di.trajectory.random_motion(np.zeros(6), np.full(6, 0.6), 3, 8.0)
    motion = di.trajectory.sample(curve, 250.0)
    log = di.Log(motion.t, robot.coordinate_names, motion.q, di.inverse_dynamics(robot, motion), "joint_torque", name="exact")
    fit = di.MAP().fit(di.Regression.from_log(robot, log)).result_
    assert fit.training_relative < 1e-3
    assert {"negative_terms", "impossible_bodies"} & {note.kind for note in fit.notes} == set()
    assert di.monitor.Monitor(fit).run(log).events == ()


@pytest.mark.parametrize(("scale", "doubted"), [(8.0, True), (-1.0, True), (0.05, True), (1.3, False), (0.0, False)])
def test_a_description_that_is_worse_than_none_is_named(scale, doubted):
    """Bodies eight times too heavy, efforts of the other sign, bodies far too light; one without masses claims nothing."""
    robot = arm(RRR)
    described = wrong(robot, abs(scale))
    motion = smooth(robot.dof, 1500, 0)
    effort = inverse_dynamics(robot, motion) * (-1.0 if scale < 0.0 else 1.0)
    fit = MAP().fit(
        Regression.from_motion(described, motion, effort + 0.1 * np.random.default_rng(2).normal(size=effort.shape))
    )
    assert any(note.kind == "description" for note in fit.result_.notes) == doubted


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e-3])
def test_no_deviation_is_below_that_of_the_jackknife_in_any_unit(unit):
    """Only what the jackknife doubts becomes less certain; correlations stay."""
    left_out = unit * np.random.default_rng(0).normal(size=(20, 3)) * [1.0, 0.1, 0.01]
    std = np.sqrt(jackknife(left_out)) * [0.1, 1.0, 10.0]
    R = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, -0.3], [0.2, -0.3, 1.0]])
    found = at_least_jackknife(np.outer(std, std) * R, left_out)
    wanted = std * [10.0, 1.0, 1.0]
    np.testing.assert_allclose(np.sqrt(np.diag(found)), wanted, rtol=1e-12)
    np.testing.assert_allclose(found / np.outer(wanted, wanted), R, rtol=1e-12)


def test_a_value_that_is_known_without_a_deviation_is_known_to_a_tenth_of_a_per_mille():
    assert _pair(2.5, "the mass", 0.0) == pytest.approx((2.5, 2.5e-4), rel=1e-12)
    assert _pair((2.5, 0.1), "the mass", 0.0) == (2.5, 0.1)
    assert _pair(0.0, "the mass", 1e-6) == (0.0, 1e-6)


def test_bodies_that_are_far_too_light_for_the_efforts_are_no_description():
    """`largest` are the parameters that would make all of a joint's torque; what moves no joint says nothing."""
    largest = np.array([5.0, 2.0, 2.0, 2.0, *[1.0] * 6, *[0.0] * 10])
    light, heavy = (np.array([1.0, m, m, m, *[1.0] * 6, *[1.0] * 10]) for m in (1e-4, 1e-3))
    assert _says_nothing(light, largest)
    assert not _says_nothing(heavy, largest)
    assert not _says_nothing(light, np.zeros(20))
