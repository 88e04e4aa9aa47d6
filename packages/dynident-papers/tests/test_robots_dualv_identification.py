"""DualV: base parameters on the manifold, projections that agree, payload, noise, essential parameters."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli import run
from dynident.errors import DynidentError, DynidentWarning, IdentificationError, SignalWarning
from dynident.identify import payload_of
from dynident.mechanics import actuator_torques, rank_partitions
from dynident.trajectory import to_csv
from dynident_papers.robots import dualv

MOTORS = ("motor_1", "motor_2", "motor_3")
PROJECTIONS = ("independent", MOTORS, "gls")
PAYLOAD = {"m_payload": dualv.PAYLOAD_WEIGHED, "mx_payload": -0.127, "my_payload": 0.02, "Izz_payload": 0.0161}


@cache
def robot(parameters: str = "paper", mode: str = "inward", loaded: bool = False) -> di.Mechanism:
    bare = dualv.mechanism(working_mode=mode, parameters=parameters)
    return bare.with_payload(1.0, body="platform", name="payload", separate=True) if loaded else bare


@cache
def base(parameters: str = "paper", mode: str = "inward", loaded: bool = False) -> di.BaseParameters:
    order = (*dualv.COLUMNS, *PAYLOAD) if loaded else dualv.COLUMNS
    removable = ("payload",) if loaded else ()
    return di.base_parameters(robot(parameters, mode, loaded), order=order, removable=removable)


def truth(mechanism: di.Mechanism, seed: int = 0) -> di.Parameters:
    """Table 2 plus plausible numbers for everything else in the paper's list, and the payload as weighed."""
    rng = np.random.default_rng(seed)
    values = {name: float(rng.uniform(0.02, 0.2)) for name in dualv.COLUMNS if name.startswith("f")}
    values |= {
        f"{s}_link2_{i}": float(v * rng.uniform(0.8, 1.2))
        for i in range(1, 5)
        for s, v in (("Izz", 6e-3), ("mx", 0.04), ("my", 3e-3), ("m", 0.35))
    }
    values |= {f"ia_q1_{i}": 0.012 for i in range(1, 5)} | {"mx_platform": 0.01, "my_platform": -0.02}
    values |= {name: value for name, value in PAYLOAD.items() if name in mechanism.parameters.names}
    return mechanism.parameters.replace(values)


def torques(mechanism: di.Mechanism, motion: di.Motion, parameters: di.Parameters, mode: str = "inward") -> np.ndarray:
    """Motor torques with a preload nobody knows."""
    geometry = dualv.Geometry(working_mode=mode)
    force = di.inverse_dynamics(mechanism, motion, parameters)
    return actuator_torques(mechanism, motion.q, force) + dualv.preload(motion.t, motion.q, geometry)


def evidence(seeds: range, projection: object, noise: float = 0.0, mode: str = "inward", seed: int = 0) -> di.Regression:
    bare, rng = robot("paper", mode), np.random.default_rng(seed)
    parts = []
    for s in seeds:
        motion = dualv.excitation(s)
        tau = torques(bare, motion, truth(bare), mode)
        tau = tau + noise * rng.normal(size=tau.shape)
        parts.append(di.Regression.from_motion(bare, motion, tau, base("paper", mode), projection=projection))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# ---- base parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["inward", "outward"])
def test_counts_of_the_digest(mode: str) -> None:
    """B7.1: 40 of 52 and 57 of 88 (of 178); 44 and 61 with a payload that is not always there."""
    for parameters, visible, rank in (("paper", 52, 40), ("full", 88, 57)):
        found = base(parameters, mode)
        assert found.rank == rank
        assert len(found.mechanism.parameters) - len(found.unidentifiable) == visible
        assert found.rank_gap > 1e6
        assert base(parameters, mode, loaded=True).rank == rank + 4
    assert len(robot("full").parameters) == 178


def test_loaded_runs_alone_add_nothing() -> None:
    loaded = robot("paper", loaded=True)
    assert di.base_parameters(loaded).rank == 40


def test_counts_of_other_parameter_lists() -> None:
    """The rest of table B7.1, by selecting columns of the full set on random closed states."""
    full = robot("full")
    motion = dualv.excitation(1, rate=100.0)
    Y = np.concatenate([di.regressor(full, m) for m in (motion, dualv.excitation(2, rate=100.0))]).reshape(-1, 178)

    def rank(names: list[str]) -> int:
        W = Y[:, [full.parameters.index(name) for name in names]]
        return int(np.linalg.matrix_rank(W / np.linalg.norm(W, axis=0), tol=1e-6))

    paper = list(dualv.COLUMNS)
    inertial = [name for name in paper if not name.startswith("f")]
    active = [f"{term}_q1_{leg}" for term in ("fv", "fc") for leg in range(1, 5)]
    offsets = [f"off_q{j}_{leg}" for j in range(1, 4) for leg in range(1, 5)]
    assert (len(inertial), rank(inertial)) == (28, 16)
    assert (len(inertial + active), rank(inertial + active)) == (36, 24)
    assert (len(paper + offsets), rank(paper + offsets)) == (64, 49)
    assert rank(paper + offsets[:4]) == 44
    assert rank(offsets) == 9


@pytest.mark.parametrize("mode", ["inward", "outward"])
def test_symmetric_regrouping(mode: str) -> None:
    """Regrouping, with what the paper leaves out."""
    d2, d3, r_p = 0.28, 0.28, 0.11
    found = base("paper", mode)
    rows = dict(zip(found.leaders, found.regrouping, strict=True))
    names = found.mechanism.parameters.names

    def combination(leader: str) -> dict[str, float]:
        return {names[j]: rows[leader][j] for j in np.flatnonzero(rows[leader])}

    legs = range(1, 5)
    for i in legs:
        expected = {f"Izz_link1_{i}": 1.0, f"ia_q1_{i}": 1.0, f"m_link2_{i}": d2**2, f"mx_link2_{i}": -(d2**2) / d3}
        assert combination(f"Izz_link1_{i}") == pytest.approx(expected, abs=1e-9)
        assert combination(f"Izz_link2_{i}") == pytest.approx({f"Izz_link2_{i}": 1.0, f"mx_link2_{i}": -d3}, abs=1e-9)
        assert combination(f"my_link2_{i}") == {f"my_link2_{i}": 1.0}
    platform = {"m_platform": [1 / d3] * 4, "Izz_platform": [r_p**2 / d3] * 4}
    platform["my_platform"] = [r_p / d3, r_p / d3, -r_p / d3, -r_p / d3]
    for leader, sizes in platform.items():
        expected = {leader: 1.0} | {f"mx_link2_{i}": s for i, s in zip(legs, sizes, strict=True)}
        assert combination(leader) == pytest.approx(expected, abs=1e-9)
    assert combination("mx_platform") == {"mx_platform": 1.0}
    assert found.names.count("m_platformR") == 1


def test_the_other_regrouping_keeps_mx2() -> None:
    order = [name for name in dualv.COLUMNS if not name.startswith("Izz_link2")]
    other = di.base_parameters(robot(), order=order)
    assert other.rank == 40
    row = dict(zip(other.mechanism.parameters.names, other.regrouping[other.leaders.index("mx_link2_3")], strict=True))
    assert row["Izz_link2_3"] == pytest.approx(-1 / 0.28, abs=1e-9)
    row = dict(zip(other.mechanism.parameters.names, other.regrouping[other.leaders.index("Izz_link1_3")], strict=True))
    assert row["Izz_link2_3"] == pytest.approx(-1.0, abs=1e-9)  # -(d2/d3)^2
    row = dict(zip(other.mechanism.parameters.names, other.regrouping[other.leaders.index("m_platform")], strict=True))
    assert row["Izz_link2_1"] == pytest.approx(1 / 0.28**2, abs=1e-9)


# ---- identification -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["inward", "outward"])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_truth_is_recovered_whatever_the_preload(mode: str, projection: object) -> None:
    singular = projection == MOTORS and mode == "outward"
    with pytest.warns(SignalWarning, match="badly conditioned") if singular else nullcontext():
        fit = di.OLS().fit(evidence(range(4), projection, mode=mode)).result_
    expected = base("paper", mode).values(truth(robot("paper", mode)).values)
    np.testing.assert_allclose(fit.values, expected, atol=1e-8 * np.max(np.abs(expected)))
    np.testing.assert_allclose(fit.values, expected, rtol=1e-8, atol=1e-10)


def test_gls_is_what_both_cases_become_with_their_optimal_weights() -> None:
    """B3.3: with weights (P P^T)^-1 cases 1 and 2 give one estimate, that of the projection "gls"."""
    rng = np.random.default_rng(1)
    bare, motion = robot(), dualv.excitation(1)
    tau = torques(bare, motion, truth(bare)) + 0.5 * rng.normal(size=(len(motion), 4))
    columns = [dualv.COLUMNS.index(name) for name in base().leaders]
    estimates = []
    for projector, Y in (dualv.case_1(motion.q, motion.v, motion.a), dualv.case_2(motion.q, motion.v, motion.a)):
        root = np.linalg.inv(np.linalg.cholesky(projector @ np.swapaxes(projector, 1, 2)))
        W = (root @ Y[:, :, columns]).reshape(-1, 40)
        y = (root @ (projector @ tau[:, :, None])).reshape(-1)
        estimates.append(np.linalg.lstsq(W, y, rcond=None)[0])
    gls = di.OLS().fit(di.Regression.from_motion(bare, motion, tau, base(), projection="gls")).result_
    scale = np.max(np.abs(gls.values))
    np.testing.assert_allclose(estimates[0], estimates[1], atol=1e-8 * scale)
    np.testing.assert_allclose(gls.values, estimates[0], atol=1e-8 * scale)
    # Fitting the torques themselves by the model of least norm gives the same, preload and all.
    projector, Y = dualv.case_1(motion.q, motion.v, motion.a)
    W = (np.linalg.pinv(projector) @ Y[:, :, columns]).reshape(-1, 40)
    np.testing.assert_allclose(np.linalg.lstsq(W, tau.reshape(-1), rcond=None)[0], gls.values, atol=1e-8 * scale)


@cache
def _noisy(projection: object, runs: int = 200, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Estimates (runs, 40) and squared lengths in their predicted covariance (runs,)."""
    bare, motion = robot(), dualv.excitation(2)
    clean, expected = torques(bare, motion, truth(bare)), base().values(truth(bare).values)
    rng = np.random.default_rng(3)
    values, lengths = [], []
    for _ in range(runs):
        tau = clean + noise * rng.normal(size=clean.shape)
        fit = di.OLS().fit(di.Regression.from_motion(bare, motion, tau, base(), projection=projection)).result_
        error = fit.values - expected
        values.append(error)
        lengths.append(error @ np.linalg.solve(fit.covariance, error))
    return np.array(values), np.array(lengths)


def test_noise_stays_inside_the_predicted_covariance() -> None:
    """Squared errors in the predicted covariance are chi-square with 40 degrees of freedom, 200 runs."""
    errors, lengths = _noisy("gls")
    free = 3 * 250 - 40
    spread = np.sqrt(2.0 * 40 / 200) * free / (free - 2)
    assert abs(np.mean(lengths) - 40 * free / (free - 2)) < 4.0 * spread
    assert 0.7 < np.var(lengths) / 80.0 < 1.5
    t = np.mean(errors, axis=0) / (np.std(errors, axis=0, ddof=1) / np.sqrt(200))
    assert np.max(np.abs(t)) < 4.5  # unbiased in spite of the preload


def test_gls_has_the_smallest_variance() -> None:
    """The true covariances of the three estimators, from their regressors and the noise they project."""
    motion = dualv.excitation(2)
    columns = [dualv.COLUMNS.index(name) for name in base().leaders]
    P1, Y1 = dualv.case_1(motion.q, motion.v, motion.a)
    P2, Y2 = dualv.case_2(motion.q, motion.v, motion.a)
    root = np.linalg.inv(np.linalg.cholesky(P1 @ np.swapaxes(P1, 1, 2)))
    variances = []
    for P, Y in ((P1, Y1), (P2, Y2), (root @ P1, root @ Y1)):
        W = Y[:, :, columns]
        inverse = np.linalg.pinv(W.reshape(-1, 40)).reshape(40, len(motion), 3)
        noise = np.einsum("btn,tnk->btk", inverse, P)
        variances.append(np.sum(noise**2, axis=(1, 2)))
    assert np.all(variances[2] <= variances[0] * (1 + 1e-9))
    assert np.all(variances[2] <= variances[1] * (1 + 1e-9))
    assert np.max(variances[0] / variances[2]) > 1.05
    assert np.max(variances[1] / variances[2]) > 1.05
    measured = np.var(_noisy("gls")[0], axis=0, ddof=1) / 0.5**2
    assert np.min(measured / variances[2]) > 0.6
    assert np.max(measured / variances[2]) < 1.6


def _payload_evidence(projection: object, noise: float) -> di.Regression:
    loaded, bare, rng = robot(loaded=True), robot(), np.random.default_rng(4)
    total = None
    for seed in range(8):
        motion, absent = dualv.excitation(seed), ("payload",) if seed < 4 else ()
        carrier = bare if absent else loaded
        tau = torques(carrier, motion, truth(carrier))
        tau = tau + noise * rng.normal(size=tau.shape)
        part = di.Regression.from_motion(loaded, motion, tau, base(loaded=True), projection=projection, absent=absent)
        total = part if total is None else total + part
    assert total is not None
    return total


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_payload_of_5_37_kg(projection: object) -> None:
    """Runs without and with the load in one fit (49): exact without noise, within its deviation with noise."""
    load = payload_of(di.WLS().fit(_payload_evidence(projection, 0.0)).result_)
    assert load.mass == pytest.approx(5.37, rel=1e-8)
    assert dict(zip(load.names, load.values, strict=True)) == pytest.approx(PAYLOAD, rel=1e-7)
    load = payload_of(di.WLS().fit(_payload_evidence(projection, 0.5)).result_)
    assert abs(load.mass - 5.37) < 4.0 * load.mass_std
    assert load.mass_std < 0.03 * 5.37


def test_essential_parameters_are_printed_like_table_2() -> None:
    bare = robot(loaded=True)
    fits = {}
    for label, projection in (("case 1", "independent"), ("case 2", MOTORS)):
        with pytest.warns(DynidentWarning, match="would make the residuals grow"):
            fits[label] = di.essential_parameters(_payload_evidence(projection, 1.0), di.WLS())
    text = dualv.essential_table(fits)
    lines = text.splitlines()
    assert lines[0].split() == ["param.", "case", "1", "%sigma", "case", "2", "%sigma"]
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:]}
    assert {"zz_11R", "zz_12R", "zz_13R", "zz_14R", "zz_4R", "m_4R", "m_5", "mx_5"} <= set(rows)
    assert len(rows) < 44
    expected = dict(zip(base(loaded=True).names, base(loaded=True).values(truth(bare).values), strict=True))
    for column in (0, 2):
        assert float(rows["m_5"][column]) == pytest.approx(5.37, rel=0.03)
        assert float(rows["m_4R"][column]) == pytest.approx(expected["m_platformR"], rel=0.1)


# ---- bad input ----------------------------------------------------------------------------------------------------------


def test_a_redundant_robot_cannot_be_fitted_without_projection() -> None:
    bare, motion = robot(), dualv.excitation(0)
    with pytest.raises(IdentificationError, match="has 4 motors"):
        di.Regression.from_motion(bare, motion, np.zeros((len(motion), 3)), base())
    tau = np.zeros((len(motion), 4))
    with pytest.raises(IdentificationError, match="projection is 'none'"):
        di.Regression.from_motion(bare, motion, tau, base(), projection="none")
    with pytest.raises(IdentificationError, match="name 3 different ones"):
        di.Regression.from_motion(bare, motion, tau, base(), projection=("motor_1", "motor_2"))


def test_deviations_of_named_motors_hold_near_a_singularity() -> None:
    """Motors that pass near a singularity make noise large in a few stretches only; the stated deviations allow for it."""
    mode, z = "outward", []
    true = base("paper", mode).values(truth(robot("paper", mode)).values)
    for seed in range(4):
        with pytest.warns(SignalWarning, match="badly conditioned"):
            fit = di.WLS().fit(evidence(range(1), MOTORS, 0.1, mode, seed)).result_
        z.append(((fit.values - true) / fit.std)[fit.solved])
    assert np.sqrt(np.mean(np.square(z))) < 1.4


def test_the_payload_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    motion = tmp_path / "motion.csv"
    to_csv(motion, dualv.excitation(5, rate=500.0), dualv.mechanism().coordinate_names)
    empty, full, load = (str(tmp_path / name) for name in ("empty.csv", "full.csv", "load.json"))
    simulate = ["simulate", str(motion), "--robot", "dualv", "--noise", "0.1", "-q"]
    assert run([*simulate, "-o", empty]) == 0
    where = ["--payload", "5.37", "--payload-link", "platform", "--payload-com=-0.02,0,0", "--payload-inertia", "0,0,0.01"]
    assert run([*simulate, "--seed", "3", *where, "-o", full]) == 0
    runs = ["--unloaded", empty, "--loaded", full, "--link", "platform", "--order", "symmetric"]
    assert run(["payload", "dualv", *runs, "-o", load]) == 0
    found = json.loads(Path(load).read_text(encoding="utf-8"))
    assert found["mass"] == pytest.approx(5.37, rel=0.02)
    assert run(["partitions", "dualv", str(motion), "--json"]) == 0
    ranked = json.loads(capsys.readouterr().out.split("\n{", 1)[-1].join(["{", ""]))
    best = rank_partitions(dualv.mechanism(), dualv.excitation(5, rate=500.0)).best
    assert tuple(ranked["choices"][0]["motors"]) == best.motors
    with pytest.raises(DynidentError, match="describe a load; give its mass with --payload"):
        run([*simulate, "--payload-link", "platform"])
