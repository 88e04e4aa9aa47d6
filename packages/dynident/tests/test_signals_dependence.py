"""Correlation of errors, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.signals.dependence import autocovariance


def test_the_autocovariance_is_the_sum_over_pairs_of_used_rows_over_their_number_and_the_lag():
    """All rows used: the sum of N - k products over N, as in any textbook; a hole leaves out both of its pairs."""
    rng = np.random.default_rng(1)
    parts = [(rng.normal(size=n), np.ones(n, dtype=bool)) for n in (30, 11)]
    parts[1][1][4] = False
    for lag, found in enumerate(autocovariance(parts, 3)):
        pairs = [(e[i], e[i + lag]) for e, used in parts for i in range(e.size - lag) if used[i] and used[i + lag]]
        assert found == pytest.approx(sum(x * y for x, y in pairs) / (len(pairs) + lag))
