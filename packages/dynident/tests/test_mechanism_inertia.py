"""The ten inertial parameters: conversions round trip, transforms follow the parallel-axis formula, traps stay caught."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_oracles import from_pseudo_inertia, possible_body

from dynident.errors import DescriptionError
from dynident.mechanism import Placement, check_consistency, from_com, from_principal
from dynident.mechanism.parameters import inertia_matrix, principal, pseudo_inertia, skew, to_com, transform

seeds = st.integers(0, 2**32 - 1)


def possible(seed: int) -> np.ndarray:
    return possible_body(np.random.default_rng(seed).normal(scale=0.7, size=10))


@given(seeds)
@settings(max_examples=50, deadline=None)
def test_conversions_round_trip(seed):
    phi = possible(seed)
    scale = np.max(np.abs(phi))
    for there_and_back in (
        from_com(*to_com(phi)),
        from_principal(*principal(phi)),
        from_pseudo_inertia(pseudo_inertia(phi)),
    ):
        assert np.allclose(there_and_back, phi, rtol=1e-10, atol=1e-10 * scale)


@given(seeds)
@settings(max_examples=50, deadline=None)
def test_pseudo_inertia_is_the_integral_of_the_mass(seed):
    """P = integral of (x, 1)(x, 1)^T dm: compare with a cloud of point masses."""
    rng = np.random.default_rng(seed)
    masses, points = rng.uniform(0.1, 1.0, 12), rng.normal(size=(12, 3))
    phi = sum(from_com(m, x, np.zeros((3, 3))) for m, x in zip(masses, points, strict=True))
    homogeneous = np.column_stack([points, np.ones(12)])
    assert np.allclose(pseudo_inertia(phi), homogeneous.T @ (masses[:, None] * homogeneous))
    direct = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
    assert np.allclose(inertia_matrix(phi), direct)


@given(seeds)
@settings(max_examples=50, deadline=None)
def test_transform_follows_the_parallel_axis_theorem(seed):
    rng = np.random.default_rng(seed)
    phi = possible(seed)
    pose = Placement.from_rpy(rng.normal(size=3), rng.normal(size=3))
    R, p = pose.rotation, pose.translation
    mass, com, inertia = to_com(phi)
    c = R @ com + p
    direct = np.concatenate([[mass], mass * c, (R @ inertia @ R.T - mass * skew(c) @ skew(c))[np.triu_indices(3)]])
    moved = transform(phi, R, p)
    assert np.allclose(moved, direct, rtol=1e-9, atol=1e-9 * np.max(np.abs(direct)))
    inverse = pose.inverse()
    assert np.allclose(transform(moved, inverse.rotation, inverse.translation), phi, atol=1e-9 * np.max(np.abs(moved)))


def test_triangle_inequality_is_caught():
    """FIGAROH #21: a positive definite I is not enough, Sigma = tr(I)/2 1 - I must be positive semi-definite too."""
    phi = from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.5]))
    assert np.all(np.linalg.eigvalsh(inertia_matrix(phi)) > 0.0)
    verdict = check_consistency(phi, "wrong")
    assert not verdict.ok
    assert "triangle inequality" in verdict.sentence and "'wrong'" in verdict.sentence
    assert check_consistency(from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, 1.9]))).ok


@pytest.mark.parametrize(
    ("phi", "word"),
    [
        (from_com(-1.0, np.zeros(3), np.eye(3)), "mass"),
        (np.zeros(10), "mass"),
        (from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, -0.1])), "negative"),
    ],
)
def test_impossible_bodies_are_named(phi, word):
    verdict = check_consistency(phi, "b")
    assert not verdict.ok
    assert word in verdict.sentence


def test_point_masses_and_rods_are_possible():
    assert check_consistency(from_com(2.0, [0.1, 0.2, 0.3], np.zeros((3, 3)))).ok
    assert check_consistency(from_com(2.0, [0.1, 0.2, 0.3], np.diag([1.0, 1.0, 0.0]))).ok


def test_bad_shapes_and_centreless_bodies_are_refused():
    with pytest.raises(DescriptionError, match="10 numbers"):
        to_com(np.zeros(9))
    with pytest.raises(DescriptionError, match="zero mass but a first moment"):
        to_com([0.0, 1.0, *[0.0] * 8])


@pytest.mark.parametrize("mass", [0.01, 0.3, 5.0])
def test_the_triangle_inequality_is_judged_alike_for_light_bodies(mass):
    """A solid box: I = m/12 (b^2 + c^2), ...; then the third moment 10 % of their sum above the sum of the two others."""
    a, b, c = 0.3, 0.2, 0.1
    moments = mass / 12.0 * np.array([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    assert check_consistency(from_com(mass, np.zeros(3), np.diag(moments))).ok
    moments[2] = 1.1 / 0.9 * (moments[0] + moments[1])
    assert "by 0.1 of their sum" in check_consistency(from_com(mass, np.zeros(3), np.diag(moments))).sentence
