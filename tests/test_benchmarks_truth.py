"""A small, deterministic part of ``python -m benchmarks.truth``: the default on robots that it has not been made for."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.population import population
from benchmarks.truth import judged, slow_to_fast


@pytest.mark.filterwarnings("ignore::dynident.DynidentWarning")
def test_the_default_is_right_on_virtual_robots():
    rows = {False: [], True: []}
    for case in population(4, only=("planar 2",)):
        rows[case.poor] += judged(case.described, [case.train], [case.like, case.fast, case.slow])[1]
    for poor, found in rows.items():
        ratio = np.array([row.default / row.free for row in found])
        assert np.exp(np.mean(np.log(ratio))) < (0.95 if poor else 1.02)
        assert sum(row.default > row.description for row in found) <= 1
        assert np.mean([row.coverage for row in found]) > 0.9


def test_slow_stretches_come_first():
    case = next(iter(population(1, only=("planar 2",))))
    train, test = slow_to_fast([case.train])
    assert (len(train), len(test)) == (4, 2)
    speed = [[float(np.sqrt(np.mean(np.diff(log.position, axis=0) ** 2))) for log in part] for part in (train, test)]
    assert max(speed[0]) <= min(speed[1])
