from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from identify_cases import LWR, RRR, UR10, arm, dense, evidence, simulated_log, smooth

import dynident as di
from dynident.errors import DynidentError, IdentificationError, SignalWarning
from dynident.identify import OLS, WLS, Regression, base_parameters
from dynident.identify.regression import factor
from dynident.identify.regression.rows import CompiledRows
from dynident.mechanics import Motion, inverse_dynamics
from dynident.signals import Log, prepare, split_at_gaps
from dynident.signals.filters import Decimator


def noisy(robot, samples, seed=0, noise=(0.5, 0.3, 0.1)):
    motion = smooth(robot.dof, samples, seed)
    spread = np.resize(noise, robot.dof)
    return motion, inverse_dynamics(robot, motion) + np.random.default_rng(seed).normal(size=motion.q.shape) * spread


def dense_wls(W: np.ndarray, tau: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Return the weighted solution on the stored rows (N, n, b), columns scaled."""
    rows, y = (W / sigma[:, None]).reshape(-1, W.shape[2]), (tau / sigma).reshape(-1)
    length = np.linalg.norm(rows, axis=0)
    return np.linalg.lstsq(rows / length, y, rcond=None)[0] / length


def same(one: Regression, other: Regression, tolerance: float = 1e-9) -> None:
    """Assert that two Regressions are the same evidence: R^T R, counts and what estimators make of it."""
    assert [g.name for g in one.groups] == [g.name for g in other.groups]
    for a, b in zip(one.groups, other.groups, strict=True):
        assert a.count == b.count
        assert a.independence == pytest.approx(b.independence, rel=1e-12)
        np.testing.assert_array_equal(a.columns, b.columns)
        gram = a.R.T @ a.R
        np.testing.assert_allclose(b.R.T @ b.R, gram, rtol=0, atol=tolerance * np.max(np.abs(gram)))
    for estimator in (OLS(), WLS()):
        x, y = estimator.fit(one).result_, estimator.fit(other).result_
        np.testing.assert_allclose(x.values / x.std, y.values / x.std, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(x.std, y.std, rtol=1e-7)


@pytest.mark.parametrize("rows", [RRR, UR10, LWR], ids=["RRR", "UR10", "LWR"])
def test_factors_give_the_dense_solution(rows):
    robot = arm(rows)
    base = base_parameters(robot)
    motion, tau = noisy(robot, 1500)
    W = dense(robot, motion, base)
    r = Regression.from_motion(robot, motion, tau, base)
    for i, group in enumerate(r.groups):
        stored = np.column_stack([W[:, i, group.columns], tau[:, i]])
        R = np.linalg.qr(stored, mode="r")  # unique up to signs only where the columns of this row are independent
        np.testing.assert_allclose(group.R.T @ group.R, R.T @ R, rtol=0, atol=1e-11 * np.max(R.T @ R))
        unseen = W[:, i, np.setdiff1d(np.arange(base.rank), group.columns)]
        assert np.max(np.abs(unseen)) < 1e-12
        assert group.effort_square == pytest.approx(np.sum(tau[:, i] ** 2), rel=1e-12)
    ols = OLS().fit(r)
    np.testing.assert_allclose(ols.coef_, dense_wls(W, tau, np.ones(robot.dof)), rtol=1e-9, atol=1e-10)
    rss = np.sum((tau - W @ ols.coef_) ** 2)
    flat = W.reshape(-1, base.rank)
    covariance = rss / (flat.shape[0] - base.rank) * np.linalg.inv(flat.T @ flat)
    np.testing.assert_allclose(np.diag(ols.covariance_), np.diag(covariance), rtol=1e-6)
    wls = WLS(iterations=60, convergence=1e-13).fit(r)
    np.testing.assert_allclose(wls.coef_, dense_wls(W, tau, wls.sigma_), rtol=1e-9, atol=1e-9)
    scaled = (W / wls.sigma_[:, None]).reshape(-1, base.rank)
    np.testing.assert_allclose(np.diag(wls.covariance_), np.diag(np.linalg.inv(scaled.T @ scaled)), rtol=1e-6)
    for i, group in enumerate(r.groups):
        assert group.residual(wls.coef_) == pytest.approx(np.sum((tau[:, i] - W[:, i] @ wls.coef_) ** 2), rel=1e-9)


def test_evidence_is_additive():
    robot = arm(UR10)
    base = base_parameters(robot)
    first, second = noisy(robot, 700, 1), noisy(robot, 431, 2)
    parts = [Regression.from_motion(robot, motion, tau, base) for motion, tau in (first, second)]
    t = np.concatenate([first[0].t, second[0].t + 100.0])
    q, v, a = (np.concatenate([getattr(x[0], k) for x in (first, second)]) for k in "qva")
    whole = Regression.from_motion(robot, Motion(t, q, v, a), np.concatenate([first[1], second[1]]), base)
    same(parts[0] + parts[1], whole)
    same(parts[1] + parts[0], whole)
    assert (parts[0] + parts[1]).rows == whole.rows == 6 * 1131


def test_a_joint_that_one_log_lacks_is_taken_from_the_other():
    robot = arm(RRR)
    motion, tau = noisy(robot, 300)
    base = base_parameters(robot)
    part = Regression.from_motion(robot, motion, tau, base, skip=("joint_2",))
    assert [g.name for g in part.groups] == ["joint_1", "joint_3"]
    full = Regression.from_motion(robot, motion, tau, base)
    both = part + full
    assert [(g.name, g.count) for g in both.groups] == [("joint_1", 600), ("joint_2", 300), ("joint_3", 600)]


def test_all_long_pieces_of_a_log_with_gaps_are_used():
    robot = arm(RRR)
    whole = simulated_log(robot, seconds=40.0, noise=0.2)
    kept = np.ones(len(whole), dtype=bool)
    kept[3000:3200] = kept[7700:7800] = False  # 15 s, 22.5 s, and a last second that is not worth a wider band
    signals = {name: getattr(whole, name)[kept] for name in ("t", "position", "effort")}
    log = Log(joints=whole.joints, effort_kind="joint_torque", name="torn", **signals)
    with pytest.warns(SignalWarning, match=r"'torn' has gaps: 2 pieces, 37.49 s of 39.99 s, are used"):
        found = Regression.from_logs(robot, [log])
    first, second, _ = split_at_gaps(log)
    alone = Regression.from_logs(robot, [first, second])
    same(found, alone)
    (source,) = found.sources
    assert source["samples"] == sum(each["samples"] for each in alone.sources)
    with pytest.raises(DynidentError, match="was used for the fit"):
        WLS().fit(found).result_.score(second)


def test_different_evidence_is_not_merged():
    one, _ = evidence(arm(RRR))
    with pytest.raises(IdentificationError, match="parameters differ"):
        one + evidence(arm(UR10))[0]
    with pytest.raises(IdentificationError, match="cannot be merged: geometry"):
        one + evidence(arm([RRR[0], (0.3, 0.0, 0.169, 0.0), RRR[2]]))[0]
    with pytest.raises(IdentificationError, match="cannot be merged: geometry, gravity"):
        one + evidence(arm(RRR, gravity=(0, 0, -3.7)))[0]
    other = base_parameters(arm(RRR), order=["ia_joint_1"])
    with pytest.raises(IdentificationError, match="different base parameters"):
        one + evidence(arm(RRR), base=other)[0]
    same(one + evidence(arm(RRR, prior=1))[0], one + one)  # another object of the same robot is the same robot


def test_tiles_threads_and_sample_counts_do_not_matter(monkeypatch):
    robot = arm(RRR)
    base = base_parameters(robot)
    for samples in (20, 127, 128, 129, 1000, 1025):  # below a tile, around the stretch of the kernel, not a multiple
        motion, tau = noisy(robot, samples)
        W = dense(robot, motion, base)
        for tile, threads in ((1024, 1), (1024, 2), (64, 3), (33, 2), (7, 1)):
            monkeypatch.setattr(factor, "ROWS", tile)
            monkeypatch.setattr(factor, "cores", lambda n=threads: n)
            r = Regression.from_motion(robot, motion, tau, base)
            for i, group in enumerate(r.groups):
                stored = np.column_stack([W[:, i, group.columns], tau[:, i]])
                gram = stored.T @ stored
                np.testing.assert_allclose(group.R.T @ group.R, gram, rtol=0, atol=1e-11 * np.max(np.abs(gram)))
                assert group.count == samples


@pytest.mark.parametrize(("robot", "factor_"), [(arm(RRR), 7), (arm(UR10), 3)], ids=["RRR", "UR10"])
def test_decimated_evidence_is_the_decimated_dense_regressor(monkeypatch, robot, factor_):
    base = base_parameters(robot)
    motion, tau = noisy(robot, 1210)
    decimator = Decimator(factor_, 200.0)
    W, y = decimator.apply(dense(robot, motion, base)), decimator.apply(tau)
    for tile in (1024, 50):
        monkeypatch.setattr(factor, "ROWS", tile)
        r = Regression.from_motion(robot, motion, tau, base, decimator)
        assert r.rows == y.size
        for i, group in enumerate(r.groups):
            stored = np.column_stack([W[:, i, group.columns], y[:, i]])
            gram = stored.T @ stored
            np.testing.assert_allclose(group.R.T @ group.R, gram, rtol=0, atol=1e-10 * np.max(np.abs(gram)))
            assert group.independence == decimator.independence
        np.testing.assert_allclose(OLS().fit(r).coef_, dense_wls(W, y, np.ones(robot.dof)), rtol=1e-8, atol=1e-8)


def test_a_log_is_prepared_and_then_compressed():
    robot = arm(RRR)
    log = simulated_log(robot, noise=0.05)
    prepared = prepare(log)
    direct = Regression.from_motion(robot, prepared.motion, prepared.filtered, decimator=prepared.decimator)
    r = Regression.from_log(robot, log)
    same(r, direct)
    assert any("decimation by" in note.sentence for note in r.notes)
    assert r.sources[0]["name"] == "run0"
    assert r.sources[0]["samples"] == len(prepared)
    told = Regression.from_log(robot, log, like=prepared)
    assert "like" not in told.options  # it could not be stored, and the band is in the source


@pytest.mark.parametrize("keep_rows", [False, True])
@pytest.mark.parametrize(("noise", "options"), [(0.05, {}), (1.0, {}), (0.05, {"cutoff": 20.0}), (0.05, {"standstill": 0.05})])
def test_one_log_gives_the_same_data_alone_and_as_a_list(noise, options, keep_rows):
    robot = arm(RRR)
    log = simulated_log(robot, seconds=20.0, noise=noise)
    alone = Regression.from_log(robot, log, keep_rows=keep_rows, **options)
    listed = Regression.from_logs(robot, [log], keep_rows=keep_rows, **options)
    for a, b in zip(alone.groups, listed.groups, strict=True):
        np.testing.assert_array_equal(a.R, b.R)
        np.testing.assert_array_equal(a.products, b.products)
        assert (a.name, a.count, a.counts, a.phases, a.independence) == (b.name, b.count, b.counts, b.phases, b.independence)
    assert (alone.sources, alone.options, alone.notes) == (listed.sources, listed.options, listed.notes)
    assert len(alone.stretches) == len(listed.stretches) == keep_rows
    for mine, theirs in zip(alone.stretches, listed.stretches, strict=True):
        np.testing.assert_array_equal(mine.W[0], theirs.W[0])


def test_rows_are_evaluated_once_in_a_plain_fit(monkeypatch):
    robot = arm(RRR)
    log = simulated_log(robot, seconds=20.0, noise=0.05)
    base, evaluated, over = base_parameters(robot), [], CompiledRows.over

    def counting(self, motion, effort, first=0, signals=None):
        into = over(self, motion, effort, first, signals)

        def counted(out):
            write = into(out)
            return lambda piece, start: (evaluated.append((piece.start, piece.stop)), write(piece, start))[1]

        return counted

    monkeypatch.setattr(CompiledRows, "over", counting)
    data = Regression.from_log(robot, log, base, cutoff=20.0, decimation=1)
    WLS().fit(data)
    covered = sorted(evaluated)
    assert [start for start, _ in covered[1:]] == [stop for _, stop in covered[:-1]]  # every sample once, none twice
    assert (covered[0][0], covered[-1][1]) == (0, data.sources[0]["samples"])
    assert data.sources[0]["resting"] is not None


def test_save_and_load_are_exact(tmp_path):
    robot = arm(RRR)
    r = Regression.from_log(robot, simulated_log(robot, noise=0.05), cutoff=20.0)
    path = r.save(tmp_path / "evidence.npz")
    back = di.load(path, robot)
    for a, b in zip(r.groups, back.groups, strict=True):
        np.testing.assert_array_equal(a.R, b.R)
        np.testing.assert_array_equal(a.columns, b.columns)
        assert (a.name, a.count, a.independence) == (b.name, b.count, b.independence)
    assert (back.sources, back.options, back.notes) == (r.sources, r.options, r.notes)
    np.testing.assert_array_equal(WLS().fit(back).coef_, WLS().fit(r).coef_)
    special = Regression.from_motion(robot, *noisy(robot, 100), base=base_parameters(robot, order=["ia_joint_1", "m_link_3"]))
    again = Regression.load(special.save(tmp_path / "special.npz"), robot)
    np.testing.assert_array_equal(again.base.columns, special.base.columns)


def test_a_file_of_another_robot_is_refused(tmp_path):
    path = evidence(arm(RRR))[0].save(tmp_path / "evidence.npz")
    Regression.load(path, arm(RRR, prior=None))  # other priors are the same robot
    with pytest.raises(IdentificationError, match="another robot than 'arm': parameter names"):
        Regression.load(path, arm(UR10))
    for other in (arm([RRR[0], (0.25, 0.0, 0.169, 0.0), RRR[2]]), arm(RRR, gravity=(0, 0, -3.7))):
        with pytest.raises(IdentificationError, match="geometry, gravity or terms differ"):
            Regression.load(path, other)


def test_broken_and_hostile_files_are_refused(tmp_path):
    robot = arm(RRR)
    good = evidence(robot)[0].save(tmp_path / "good.npz").read_bytes()
    bad = {"cut": good[: len(good) // 2], "empty": b"", "text": b"not a zip at all", "head": good[:10]}
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(IdentificationError, match=name):
            Regression.load(tmp_path / name, robot)
    with pytest.raises(IdentificationError, match="cannot read"):
        Regression.load(tmp_path / "absent.npz", robot)
    np.savez(tmp_path / "pickle.npz", about=np.array([{"format": 1}], dtype=object))
    with pytest.raises(IdentificationError, match="cannot read") as refused:
        Regression.load(tmp_path / "pickle.npz", robot)
    assert "allow_pickle=False" in str(refused.value.__cause__)
    np.savez(tmp_path / "other.npz", about=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    with pytest.raises(IdentificationError, match="is not a Regression file"):
        Regression.load(tmp_path / "other.npz", robot)
    np.savez(tmp_path / "list.npz", about=np.frombuffer(b"[1, 2]", dtype=np.uint8))
    with pytest.raises(IdentificationError, match="cannot read"):
        Regression.load(tmp_path / "list.npz", robot)


def test_wrong_input_is_named():
    robot = arm(RRR)
    motion, tau = noisy(robot, 50)
    with pytest.raises(IdentificationError, match=r"effort has shape \(50, 2\) but the motion has shape \(50, 3\)"):
        Regression.from_motion(robot, motion, tau[:, :2])
    tau[7, 1] = np.nan
    with pytest.raises(IdentificationError, match="effort is not finite at sample 7"):
        Regression.from_motion(robot, motion, tau)
    with pytest.raises(IdentificationError, match="another robot"):
        Regression.from_motion(robot, motion, np.ones((50, 3)), base_parameters(arm(UR10)))
    with pytest.raises(IdentificationError, match="another robot"):
        Regression.from_motion(robot, motion, np.ones((50, 3)), base_parameters(arm(RRR, gravity=(0, 0, -1))))
    with pytest.raises(IdentificationError, match="50 samples are too few for a decimation by 10"):
        Regression.from_motion(robot, motion, np.ones((50, 3)), decimator=Decimator(10, 100.0))


def test_memory_does_not_grow_with_the_samples():
    """300 000 samples of six axes: the stored regressor would need 2.6 GB."""
    robot = arm(UR10)
    base = base_parameters(robot)
    rng = np.random.default_rng(0)
    motion = Motion(np.arange(300_000.0), *(rng.normal(size=(300_000, 6)) for _ in range(3)))
    tau = rng.normal(size=(300_000, 6))
    Regression.from_motion(robot, motion[:50], tau[:50], base)  # compile first
    tracemalloc.start()
    try:
        r = Regression.from_motion(robot, motion, tau, base)
        extra = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert r.rows == 1_800_000
    assert extra < 50e6
