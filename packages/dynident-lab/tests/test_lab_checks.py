"""Checks of the lab: good values pass, others are answered in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import DescriptionError, DynidentError
from dynident_lab.checks import finite, samples


def test_good_values_pass_and_others_are_refused() -> None:
    finite("law", a=-1.0)
    np.testing.assert_array_equal(samples("x", [1, 2], 2), [1.0, 2.0])
    with pytest.raises(DescriptionError, match="law: x = nan is not a finite number"):
        finite("law", x=np.nan)
    with pytest.raises(DynidentError, match=r"x has the shape \(1,\); give 2 values"):
        samples("x", [1.0], 2)
    with pytest.raises(DynidentError, match=r"x\[1\] is not a finite number"):
        samples("x", [1.0, np.inf])
