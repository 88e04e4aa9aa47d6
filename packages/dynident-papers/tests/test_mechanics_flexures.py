"""Flexures: beams against closed forms, forces against the slope of the energy, and [Ruiz2016] beside all of it."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident_papers.flexures import FlexureHinge, flexure_requirements
from dynident_papers.flexures.solid import solid_stiffness
from dynident_papers.robots import five_bar, prs3

E, NU = 70e9, 0.3
ARC = np.deg2rad(1.0 / 3600.0)


def test_a_long_neck_is_a_prismatic_beam() -> None:
    """Fillets of 1 um do not count: EI/l, GJ/l, EA/l and 1 / (l^3 / 12 EI + l / kGA)."""
    t, l_ = 2e-3, 20e-3
    G = E / (2.0 * (1.0 + NU))
    second, area = np.pi * t**4 / 64.0, 0.25 * np.pi * t**2
    round_ = FlexureHinge(t, 1e-6, t + 1e-6, None, l_, E, NU)
    assert round_.bending == pytest.approx(E * second / l_, rel=1e-3)
    assert round_.torsion == pytest.approx(G * 2.0 * second / l_, rel=1e-3)
    assert round_.axial == pytest.approx(E * area / l_, rel=1e-3)
    assert round_.shear == pytest.approx(1.0 / (l_**3 / (12.0 * E * second) + l_ / (0.9 * G * area)), rel=1e-3)
    assert round_.stress(0.1) == pytest.approx(32.0 * 0.1 / (np.pi * t**3))
    flat = FlexureHinge(t, 1e-6, t + 1e-6, 8e-3, l_, E, NU)
    assert flat.lateral / flat.bending == pytest.approx(16.0, rel=2e-3)  # (w / t)^2


def test_a_solid_prismatic_bar_has_the_stiffness_of_a_beam() -> None:
    bar = FlexureHinge(9.9999e-3, 4e-3, 10e-3, 10e-3, 30e-3, E, NU)
    for turning, expected in (("bending", bar.bending), ("torsion", bar.torsion)):
        assert solid_stiffness(bar, turning)[0] == pytest.approx(expected, rel=2e-3)


def test_a_thin_circular_notch_has_the_stiffness_of_the_textbooks() -> None:
    """K = 2 E w t^(5/2) / (9 pi R^(1/2)) for t << R."""
    w, R, t = 10e-3, 8e-3, 0.05e-3
    hinge = FlexureHinge(t, R, 10e-3, w, young=E)
    assert hinge.bending == pytest.approx(2.0 * E * w * t**2.5 / (9.0 * np.pi * np.sqrt(R)), rel=5e-3)


def test_forces_are_the_slope_of_the_energy() -> None:
    robot = prs3.mechanism("actuators")
    s, h = np.array([[1.2e-3, -0.4e-3, 0.7e-3]]), 1e-7
    found = flexure_requirements(robot, s)
    for i in range(3):
        shift = h * np.eye(3)[i]
        energy = [flexure_requirements(robot, s + way * shift).energy[0] for way in (1.0, -1.0)]
        assert found.forces[0, i] == pytest.approx((energy[0] - energy[1]) / (2.0 * h), rel=1e-6)


def test_ranges_are_those_of_the_paper_s_spherical_angles() -> None:
    rng = np.random.default_rng(0)
    x = np.array([prs3.HEIGHT, 0.0, 0.0]) + np.cumsum(rng.uniform(-2e-4, 2e-4, (30, 3)), axis=0)
    found = flexure_requirements(prs3.mechanism(), x)
    printed = prs3.spherical_angles(x)
    for leg in range(3):
        for k, name in enumerate(("beta_m", "beta_n", "beta_l")):
            ours = found.angles[:, found.joints.index(f"{name}_{leg + 1}")]
            np.testing.assert_allclose(ours, printed[:, leg, k], atol=1e-12)
    assert found.plot().axes
    assert "alpha_1" in found.summary()


def test_table_2_of_the_paper() -> None:
    s = np.array([[row[1]] * 3 for row in prs3.TABLE_2])
    rigid = flexure_requirements(prs3.mechanism("actuators"), s)
    np.testing.assert_allclose(rigid.forces, np.array([[20.0, 40.0, 60.0]]).T * np.ones(3), rtol=0.01)
    soft = prs3.compliant_pose(s, linear=True)
    np.testing.assert_allclose(soft.forces[:, 0], [20.0, 40.0, 60.0], rtol=0.02)
    np.testing.assert_allclose(soft.x[:, 2], [row[2] for row in prs3.TABLE_2], rtol=0.002)
    stress = [prs3.REVOLUTE_HINGE.stress(m) for m in soft.moments[:, 0, 0]]
    np.testing.assert_allclose(stress, [169.25e6, 344.01e6, 518.78e6], rtol=0.015)


def test_the_compliant_stage_explains_the_finite_elements_of_the_paper() -> None:
    """z to 2 um by the linear analysis; four fifths of the difference in tilt between rigid bodies and finite elements."""
    s = np.array([row.s for row in prs3.TABLE_4])
    fem = np.array([row.fem for row in prs3.TABLE_4])
    rigid = prs3.forward_kinematics(s) - [prs3.HEIGHT, 0.0, 0.0]
    soft = prs3.compliant_pose(s, linear=True).x[:, 2:5]
    np.testing.assert_allclose(soft[:, 0], fem[:, 0], atol=2e-6)
    before, after = (np.abs(x[:, 1:] - fem[:, 1:]).sum() for x in (rigid, soft))
    assert before > 1500 * ARC
    assert after < 0.25 * before


def test_small_motions_are_linear_and_forces_hold_the_energy() -> None:
    s = 1e-6 * np.array([[1.0, -0.5, 0.3]])
    exact, linear = prs3.compliant_pose(s), prs3.compliant_pose(s, linear=True)
    np.testing.assert_allclose(exact.x, linear.x, atol=1e-10)
    twice, double = prs3.compliant_pose(2.0 * s), prs3.compliant_pose(2.0 * s, linear=True)
    bent, more = (np.abs(a.x - b.x).max() for a, b in ((exact, linear), (twice, double)))
    assert more / bent == pytest.approx(4.0, rel=0.05)  # what the linear analysis leaves out is of second order
    np.testing.assert_allclose(exact.forces, linear.forces, rtol=1e-3)
    turned = prs3.compliant_pose(s[:, [2, 0, 1]], linear=True)  # legs are alike: forces go round with the sliders
    np.testing.assert_allclose(turned.forces, linear.forces[:, [2, 0, 1]], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: flexure_requirements(five_bar.mechanism(), [[2.0, 1.0]]), "no joint with a spring term"),
        (lambda: flexure_requirements(prs3.mechanism(), [[0.077, 0, 0]], {"q": 1.0}), "not a joint coordinate"),
        (lambda: FlexureHinge(2e-3, 1e-3, 9e-3), "at most 0.004"),
        (lambda: FlexureHinge(-1.0, 1e-3, 9e-3), "thickness"),
    ],
)
def test_bad_input_is_one_sentence(call, words: str) -> None:
    with pytest.raises(DynidentError, match=words):
        call()
