"""Known motions for the tests of the signals room."""

from __future__ import annotations

import numpy as np

from dynident.signals import Log


def multisine(rate: float, duration: float, joints: int = 3, fundamental: float = 0.1, harmonics: int = 5, seed: int = 0):
    """t, q, v, a of a random Fourier series, the same motion at any rate."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(rate * duration)) / rate
    w = 2 * np.pi * fundamental * np.arange(1, harmonics + 1)
    a, b = rng.uniform(-0.6, 0.6, (2, harmonics, joints)) / np.arange(1, harmonics + 1)[:, None]
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return t, s @ a + c @ b, c @ (a * w[:, None]) - s @ (b * w[:, None]), -s @ (a * w[:, None] ** 2) - c @ (b * w[:, None] ** 2)


#: Inertia, viscous and Coulomb friction, offset of every joint of the test plant.
PLANT = np.array([2.0, 5.0, 3.0, 0.5])


def columns(v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Regressor of independent joints: shape (N, n, 4)."""
    return np.stack([a, v, np.sign(v), np.ones_like(v)], axis=2)


def clean_log(
    rate: float = 500.0, duration: float = 20.0, noise: float = 0.0, torque_noise: float = 0.0, **changes: object
) -> Log:
    """Log of the test plant with white noise on positions and efforts."""
    rng = np.random.default_rng(7)
    t, q, v, a = multisine(rate, duration)
    tau = columns(v, a) @ PLANT
    fields: dict[str, object] = {
        "t": t,
        "joints": ["a", "b", "c"],
        "position": q + noise * rng.standard_normal(q.shape),
        "effort": tau + torque_noise * rng.standard_normal(tau.shape),
        "effort_kind": "joint_torque",
        "velocity": v + noise * rng.standard_normal(q.shape),
        "name": "clean",
    }
    return Log(**{**fields, **changes})  # type: ignore[arg-type]


def test_motion_is_its_own_derivative():
    t, q, v, a = multisine(1000.0, 5.0)
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[5:-5], v[5:-5], atol=1e-4)
    np.testing.assert_allclose(np.gradient(v, t, axis=0)[5:-5], a[5:-5], atol=1e-3)
