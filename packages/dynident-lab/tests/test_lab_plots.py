"""Plots of servo studies, thermal models and closures show the numbers that they are given."""

from __future__ import annotations

import numpy as np
import pytest
from small_robots import five_bar

from dynident.errors import DynidentError
from dynident.friction import Coulomb
from dynident_lab.figures import figure
from dynident_lab.joint_reactions import closure_conditioning
from dynident_lab.servo import Bode, MotorLoad, Sizing
from dynident_lab.thermal import SecondOrder, Thermal

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")


def drawn(figure, panel: int = 0) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata()) for line in figure.axes[panel].lines]


T = np.linspace(0.0, 2.0, 50)


def test_studies_show_their_numbers():
    load = MotorLoad("m1", *[1.0] * 10, 2.0, {"current": 0.5, "speed": 1.2})
    heights = [bar.get_height() for bar in Sizing((load,), 2.0).plot().axes[0].patches]
    assert heights == pytest.approx([50.0, 120.0])
    with pytest.raises(DynidentError, match="no motor limit"):
        Sizing((MotorLoad("m1", *[1.0] * 10, 2.0, {}),), 2.0).plot()
    assert len(drawn(Bode(np.array([1.0, 10.0]), np.array([1.0, 0.1 + 0.0j])).plot())) == 3  # curve, corner, -3 dB


def test_heat_is_drawn():
    model = SecondOrder(alpha=-0.01, beta=1.0, K1=4.0, K2=5.0, C1=700.0, C2=9000.0)
    warm = Thermal(Coulomb().using(fc=2.0), model).simulate(60.0 * T, np.ones(T.size))
    np.testing.assert_array_equal(drawn(warm.plot()), [warm.cold, warm.torque])


def test_conditioning_of_loops_is_drawn():
    near = closure_conditioning(five_bar(), np.zeros((3, 2)))
    np.testing.assert_array_equal(drawn(near.plot()), [near.constraint, near.serial, near.parallel])


def test_a_picture_in_a_page_is_inline_and_its_texts_are_escaped():
    assert "<script" not in figure("data:image/png;base64,AAAA", "<script>", "<script>")
    with pytest.raises(ValueError, match="inline"):
        figure("https://example.org/x.png", "picture")
