"""QR and SVD reports of [Pagani2022, Tables 1 to 3], and least squares joint by joint."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import check_estimator

import dynident as di
from dynident.errors import DynidentError
from dynident_papers.identify import JointReduction, PerJoint, Reduction, joint_estimates, reduction
from dynident_papers.robots import er3a_c60, five_bar

SPLIT = ("ia", "fvp", "fvn", "fcp", "fcn")  # friction by directions, as the thesis' Table 1 was made


@pytest.fixture(scope="module")
def report():
    return reduction(er3a_c60.mechanism().with_terms(SPLIT))


def test_qr_sees_what_table_2_prints(report):
    assert isinstance(report, Reduction) and all(isinstance(joint, JointReduction) for joint in report.joints)
    assert report.counts == (34, 35, 28, 21, 14, 7)
    assert np.abs(report.diagonal[~report.seen]).max() < 1e-9  # far below the threshold of 1e-4 ...
    assert np.abs(report.diagonal[report.seen]).min() > 1e-2  # ... and far above it
    seen = dict(zip(report.names, report.seen, strict=True))
    for k in range(1, 7):
        assert not any(seen[f"{p}_link_{k}"].any() for p in ("m", "mz", "Iyy"))  # these never survive
    assert [bool(x) for x in seen["Izz_link_1"]] == [True] + [False] * 5
    assert not seen["Izz_link_2"][0] and not seen["Izz_link_3"][0]  # axes 2 and 3 are parallel, and orthogonal to axis 1


def test_svd_drops_the_motor_inertia_of_link_2_as_table_1_and_3_do(report):
    second = report.joints[1]
    assert second.condition[0] > 1e12 and second.condition[1] < 100.0 and second.dropped == ("ia_joint_2",)
    assert np.sum(second.singular_values**2) == pytest.approx(12.0)  # columns of unit length
    last = dict(zip(second.names, second.V[:, -1], strict=True))
    assert abs(last["Izz_link_2"]) == pytest.approx(0.7071, abs=1e-4) == abs(last["ia_joint_2"])
    assert [len(joint.kept) for joint in report.joints] == [5, 11, 12, 12, 12, 12] and report.selected == 64
    assert [joint.dropped for joint in report.joints[2:]] == [()] * 4
    again = type(report).from_dict(report.to_dict())
    assert again.counts == report.counts and "64 parameters are selected" in report.summary()


def test_a_reduction_needs_a_tree_and_sensible_limits():
    with pytest.raises(DynidentError, match="needs a tree"):
        reduction(five_bar.mechanism())
    with pytest.raises(DynidentError, match="threshold = 0"):
        reduction(er3a_c60.mechanism(), threshold=0.0)


def test_joint_by_joint_is_exact_without_noise_and_honest_with_it():
    arm = er3a_c60.mechanism()
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 20.0, 0.01)
    w = 2.0 * np.pi * np.array([0.1, 0.2, 0.3, 0.4])
    A, phase = rng.uniform(0.2, 0.6, (6, 4)), rng.uniform(0.0, 6.0, (6, 4))
    angle = w * t[:, None, None] + phase
    q, v, a = (np.sum(A * f, axis=-1) for f in (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)))
    motion = di.Motion(t, q, v, a)
    tau = di.inverse_dynamics(arm, motion)
    base = di.base_parameters(arm)
    true = base.values(arm.parameters.values)
    clean = PerJoint().fit(di.Regression.from_motion(arm, motion, tau)).result_
    assert np.abs(clean.free - true).max() < 1e-8 * np.abs(true).max()
    noisy = di.Regression.from_motion(arm, motion, tau + 0.5 * rng.normal(size=tau.shape))
    fit = PerJoint().fit(noisy).result_
    z = (fit.free - true)[fit.solved] / np.sqrt(np.diag(fit.covariance))[fit.solved]
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5  # stated deviations are those of the errors
    stacked = di.OLS().fit(noisy).result_  # all joints together know more
    assert np.all(np.diag(stacked.covariance)[fit.solved] <= 1.3 * np.diag(fit.covariance)[fit.solved])
    own = joint_estimates(noisy)
    assert len(own["joint_6"]) < len(own["joint_3"]) and set(own) == set(arm.coordinate_names)
    for joint, found in own.items():
        for name, (value, std) in found.items():
            assert abs(value - true[base.names.index(name)]) < 6.0 * std, (joint, name)


def test_per_joint_keeps_the_protocol_of_estimators() -> None:
    check_estimator(PerJoint)
