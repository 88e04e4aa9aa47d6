"""Mittag-Leffler function against values computed separately, closed forms and arbitrary precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erfcx, gamma

from dynident.errors import DescriptionError
from dynident_papers.thermal import mittag_leffler, mittag_leffler_derivatives


@pytest.mark.parametrize(
    ("x", "value"),
    [  # computed separately, nu = 0.6121 of [Pagani2022, section 4.4]
        (0.01, 0.9889149893),
        (0.1, 0.8966678062),
        (0.5, 0.6088455552),
        (1.0, 0.4116308400),
        (2.0, 0.2330448769),
        (5.0, 0.0931061096),
        (10.0, 0.0453752096),
        (20.0, 0.0222904948),
        (100.0, 0.0043869410),
    ],
)
def test_golden_values(x: float, value: float) -> None:
    assert mittag_leffler(-x, 0.6121) == pytest.approx(value, abs=1e-10)


def test_closed_forms() -> None:
    z = np.linspace(-40.0, 3.0, 200)
    np.testing.assert_allclose(mittag_leffler(z, 1.0), np.exp(z))
    x = np.concatenate([np.geomspace(1e-12, 1e12, 200), [0.0]])
    np.testing.assert_allclose(mittag_leffler(-x, 0.5), erfcx(x), atol=1e-14, rtol=1e-12)
    positive = np.linspace(0.0, 20.0, 50)
    np.testing.assert_allclose(mittag_leffler(positive, 0.5), erfcx(-positive), rtol=1e-11)
    assert mittag_leffler(-1.0, 0.5) == pytest.approx(0.4275835762, abs=5e-11)
    assert mittag_leffler(0.0, 0.3) == 1.0


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.6121, 0.9, 0.999])
def test_against_arbitrary_precision(nu: float) -> None:
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    order = mpmath.mpf(nu)
    with mpmath.workdps(70):
        for x in (1e-6, 0.02, 0.4, 1.1, 2.3):
            terms = ((-mpmath.mpf(x)) ** k / mpmath.gamma(order * k + 1) for k in range(int(60 / nu)))
            if x ** (1.0 / nu) < 10.0:
                assert mittag_leffler(-x, nu) == pytest.approx(float(mpmath.fsum(terms)), abs=3e-14)
    with mpmath.workdps(25):
        for x in (8.0, 300.0):
            t = mpmath.mpf(x) ** (1 / order)

            def spectrum(s: object, t: object = t) -> object:
                return mpmath.exp(-t * mpmath.exp(s / order)) / (mpmath.cosh(s) + mpmath.cos(order * mpmath.pi))

            cuts = [-60, -30, -15, *np.linspace(-8.0, 1.0, 19).tolist(), 5]
            value = mpmath.sin(order * mpmath.pi) / (2 * mpmath.pi * order) * mpmath.quad(spectrum, cuts)
            assert mittag_leffler(-x, nu) == pytest.approx(float(value), abs=3e-14)


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.6121, 0.95])
def test_shape_of_the_function(nu: float) -> None:
    x = np.concatenate([[0.0], np.geomspace(1e-9, 1e9, 400)])
    E = mittag_leffler(-x, nu)
    assert (np.diff(E) <= 0.0).all()
    assert ((E > 0.0) & (E <= 1.0)).all()
    assert E[-1] * x[-1] * gamma(1.0 - nu) == pytest.approx(1.0, rel=1e-6)
    assert mittag_leffler(-x.reshape(1, -1), nu).shape == (1, 401)


@pytest.mark.parametrize("nu", [0.3, 0.6121, 0.98])
def test_derivatives(nu: float) -> None:
    z, h = -np.geomspace(1e-3, 1e3, 50), 1e-6
    dz, dnu = mittag_leffler_derivatives(z, nu)
    scale = 1e-4 * np.abs(z)
    numeric = (mittag_leffler(z + scale, nu) - mittag_leffler(z - scale, nu)) / (2 * scale)
    np.testing.assert_allclose(dz, numeric, rtol=1e-6, atol=1e-12)
    numeric = (mittag_leffler(z, nu + h) - mittag_leffler(z, nu - h)) / (2 * h)
    np.testing.assert_allclose(dnu, numeric, rtol=1e-5, atol=1e-8)
    at_zero = mittag_leffler_derivatives(0.0, nu)
    np.testing.assert_allclose(at_zero, [1.0 / gamma(1.0 + nu), 0.0], atol=1e-13)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mittag_leffler(-1.0, 0.0), "nu = 0.0"),
        (lambda: mittag_leffler(-1.0, 1.2), "nu = 1.2"),
        (lambda: mittag_leffler(np.nan, 0.5), "not a number"),
        (lambda: mittag_leffler(1e3, 0.5), "overflow"),
        (lambda: mittag_leffler_derivatives(1.0, 0.5), "zero or below"),
    ],
)
def test_bad_input_gets_one_sentence(call, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DescriptionError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
