"""Rows over which a joint reverses are shortened until enough of them hold; robots without loops keep averages."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.mechanism import Mechanism


def test_rows_with_a_standing_joint_are_shortened_not_cut_into_samples():
    slider = Mechanism.from_dh([(0, 0, 0, 0, "prismatic")], gravity=(0, 0, 0)).with_terms(("fv", "fc"))
    rate, noise = 250.0, np.random.default_rng(1)
    t = np.arange(0.0, 20.0, 1.0 / rate)
    w = 2.0 * np.pi * np.array([0.35, 0.5])
    q, v = (sum(x**n * f(x * t + k) for k, x in enumerate(w)) for n, f in enumerate((np.sin, np.cos)))
    a = -sum(x**2 * np.sin(x * t + k) for k, x in enumerate(w))
    force = 2.0 * a + 3.0 * v + 5.0 * np.sign(v)
    log = di.Log(
        t,
        slider.coordinate_names,
        (q + 2e-4 * noise.normal(size=t.size))[:, None],
        (force + 0.5 * noise.normal(size=t.size))[:, None],
        "joint_force",
    )
    evidence = di.Regression.from_log(slider, log, standstill=0.1)
    assert any("rows average over" in text.sentence for text in evidence.notes)
    fit = di.WLS().fit(evidence).result_
    found = dict(zip(fit.base.names, fit.values, strict=True))
    truth = {"m": 2.0, "fv": 3.0, "fc": 5.0}
    for name, value in found.items():
        assert abs(value / truth[name.split("_")[0]] - 1.0) < 0.02, (name, value)
