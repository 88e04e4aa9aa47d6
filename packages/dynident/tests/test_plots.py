"""What holds curves can be drawn, and the figure holds its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from identify_cases import arm, simulated_log

import dynident as di
from dynident.errors import DynidentError
from dynident.friction import Tanh, Viscous
from dynident.identify import Axis, Prediction, fit_friction
from dynident.trajectory import Fourier, Trajectory
from dynident.validate import CrossValidation

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
T = np.linspace(0.0, 2.0, 50)
WAVES = np.column_stack([np.sin(T), np.cos(T)])


def drawn(figure, panel: int = 0) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata()) for line in figure.axes[panel].lines]


def test_motions_and_curves_show_every_coordinate():
    motion = di.Motion(T, WAVES, 2.0 * WAVES, 3.0 * WAVES)
    figure = motion.plot(("a", "b"))
    for k, values in enumerate((motion.q, motion.v, motion.a)):
        np.testing.assert_array_equal(drawn(figure, k), values.T)
        assert "[" in figure.axes[k].get_ylabel()
    assert [text.get_text() for text in figure.legends[0].texts] == ["a", "b"]
    with pytest.raises(DynidentError, match="3 names for 2 coordinates"):
        motion.plot(("a", "b", "c"))
    curve = Trajectory(Fourier(0.5, 2), np.ones((3, Fourier(0.5, 2).size)))
    assert len(drawn(curve.plot(), 2)) == 3


def test_predictions_show_their_band():
    shown = Prediction(T, WAVES, 0.1 + 0.0 * WAVES).plot(("shoulder", "elbow"))
    np.testing.assert_array_equal([drawn(shown, j)[0] for j in (0, 1)], WAVES.T)
    assert [axes.get_title(loc="left") for axes in shown.axes] == ["shoulder", "elbow"]
    band = shown.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(WAVES[:, 0].max() + 0.2) and band.min() == pytest.approx(-0.2)


def test_studies_show_their_numbers():
    folds = CrossValidation(("a",), np.array([0.1, 0.2]), np.ones((2, 1)), 0.15).plot()
    assert [bar.get_height() for bar in folds.axes[0].patches] == pytest.approx([10.0, 20.0])


def test_preparation_is_drawn():
    prepared = di.prepare(simulated_log(arm(), seed=1))
    assert [len(drawn(prepared.plot(), k)) for k in range(4)] == [len(prepared.joints)] * 4


def test_fits_show_their_curves():
    v = 2.0 * np.sin(3.0 * T)
    fit = fit_friction(None, Axis(2.0 * v + 3.0 * np.tanh(8.0 * v), v), Viscous() + Tanh())
    measured, *law = fit.plot().axes[0].lines
    np.testing.assert_allclose(measured.get_ydata(), 2.0 * v + 3.0 * np.tanh(8.0 * v), atol=1e-9)
    for side in law:
        np.testing.assert_allclose(side.get_ydata(), 2.0 * side.get_xdata() + 3.0 * np.tanh(8.0 * side.get_xdata()), rtol=1e-4)
