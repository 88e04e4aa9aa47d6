"""The compiled streaming QR, which only long logs reach, against LAPACK on the stored rows."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.identify.factor import FEW, _fold, accumulate
from dynident.identify.kernels import fold

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("samples", [1, 7, 128, 300])
@pytest.mark.parametrize("width", [1, 4, 9])
def test_folded_rows_have_the_gram_matrix_of_the_stored_rows(samples: int, width: int) -> None:
    W, y = RNG.normal(size=(width + 2, samples)), RNG.normal(size=samples)
    columns = np.arange(2, width + 2)
    R = np.zeros((width + 1, width + 4))
    for piece in (slice(0, samples // 2), slice(samples // 2, samples)):  # in two calls, one of them possibly empty
        fold(R, np.ascontiguousarray(W[:, piece]), columns, np.ascontiguousarray(y[piece]))
    rows = np.column_stack([W[columns].T, y])
    triangle = R[:, : width + 1]
    np.testing.assert_allclose(triangle, np.triu(triangle), atol=0.0)
    np.testing.assert_allclose(triangle.T @ triangle, rows.T @ rows, rtol=1e-12, atol=1e-12)


def test_long_and_short_logs_give_the_same_evidence() -> None:
    """One tile more than FEW goes through the compiled code, the same samples in fewer tiles through LAPACK."""
    count = 20 * (FEW + 1)
    W, tau = RNG.normal(size=(2, 5, count)), RNG.normal(size=(2, count))
    columns = [np.array([0, 1, 2, 3, 4]), np.array([1, 3])]

    def tiles(size: int):
        return [lambda i=i: (W[:, :, i : i + size], tau[:, i : i + size]) for i in range(0, count, size)]

    assert _fold(len(tiles(20))) is fold
    assert _fold(len(tiles(40))) is not fold
    long, short = accumulate("ab", columns, tiles(20)), accumulate("ab", columns, tiles(40))
    for one, two in zip(long, short, strict=True):
        assert one.count == two.count == count
        np.testing.assert_allclose(one.R.T @ one.R, two.R.T @ two.R, rtol=1e-12, atol=1e-10)
