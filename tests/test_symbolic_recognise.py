"""Base parameters of a robot with loops: numbers found on closed configurations are recognised as 2/L^2 and the like."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.robots import prr2
from dynident.symbolic import recognise


def test_the_scissor_has_its_factors_of_the_bar_length() -> None:
    robot = prr2.mechanism()
    base = di.base_parameters(robot)
    grouping = recognise(base.regrouping, base.columns.tolist(), robot.parameters.names, {"L": prr2.BAR})
    lines = dict(line.split(" = ") for line in grouping.expressions)
    assert grouping.exact
    assert grouping.rank == 8
    turning = " + ".join(f"2/L^2 Iz_alpha{i}" for i in (3, 4, 5))
    assert lines["m_slider1R"] == f"m_slider1 - 1/2 m_bar5 + {turning}"
    assert lines["m_platformR"] == f"m_platform + {turning}"
    assert lines["m_slider2R"] == "m_slider2 + 1/2 m_bar5"
    assert "- 4/L^2 Iz_alpha3" in lines["m_bar3R"]


def test_other_lengths_give_other_powers_and_odd_numbers_stay_numbers() -> None:
    a, b = 0.317, 0.83
    K = [[1.0, 0.0, 3.0 * a * b, a / b, 0.1234567]]
    grouping = recognise(K, [0], ["p", "q", "r", "s", "t"], {"a": a, "b": b})
    assert grouping.expressions == ("pR = p + 3 a b r + a/b s + 0.123457 t",)
    assert not grouping.exact
    assert [entry.exact for entry in grouping.coefficients[0].values()] == [True, True, True, False]


def test_bad_input() -> None:
    with pytest.raises(di.DynidentError, match=r"regrouping has shape \(1, 2\)"):
        recognise(np.zeros((1, 2)), [0], ["p"], {"a": 1.0})
    with pytest.raises(di.DynidentError, match="lengths above zero"):
        recognise(np.zeros((1, 1)), [0], ["p"], {"a": 0.0})
