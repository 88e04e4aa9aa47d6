"""Choosing excitations: by the speeds that they reach, and by a limit of the condition number."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident.excitation import design
from dynident.trajectory import Fourier
from dynident_papers.identify.excitations import design_within, reached_speeds
from dynident_papers.robots import prr2

LIMITS = {"default": {"acceleration": prr2.ACCELERATION_LIMIT}, "margin": 0.0}
SEARCH = {"family": Fourier(prr2.FUNDAMENTAL, 4, rest=False), "starts": 1, "iterations": 15, "workers": 1}


def test_the_rank_of_a_robot_with_loops_is_lowered_until_the_condition_number_keeps_its_limit() -> None:
    """The condition number is taken again on the closed-form regressor of the thesis, columns of what is left."""
    robot = prr2.mechanism()
    found = design_within(robot, LIMITS, 12.0, **SEARCH)
    assert found.conditions[0] > 12.0 >= found.conditions[-1]
    assert found.base.rank == 8 - len(found.left_out) < 8
    motion = found.design.motion()
    names = {standard: name for name, standard in prr2.STANDARD_NAMES.items()}
    columns = [prr2.PARAMETER_NAMES.index(names[leader]) for leader in found.base.leaders]
    W = prr2.regressor(motion.q, motion.v, motion.a)[:, :, columns].reshape(-1, len(columns))
    assert np.linalg.cond(W) == pytest.approx(found.conditions[-1], rel=0.05)


def test_of_the_designs_that_keep_the_condition_number_the_fastest_is_taken() -> None:
    limits = {**LIMITS, "default": {**LIMITS["default"], "velocity": 1.0}}
    search = {**SEARCH, "iterations": 3}
    single = [design(prr2.mechanism(), limits, "cond", seed=seed, **search) for seed in range(3)]
    chosen = design_within(prr2.mechanism(), limits, 1e4, seeds=3, **search).design
    paces = [reached_speeds(each).mean() for each in single]
    assert reached_speeds(chosen).mean() == max(paces) > min(paces)


def test_a_limit_that_no_motion_keeps_is_said() -> None:
    with pytest.raises(DynidentError, match="one parameter alone has a condition number above"):
        design_within(prr2.mechanism(), LIMITS, 0.5, **{**SEARCH, "iterations": 1})
