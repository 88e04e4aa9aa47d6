"""What a caller gave: good values pass unchanged, bad ones get one sentence with the field, the value and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

from dynident import checks
from dynident.errors import DescriptionError, DynidentError, LogError


def test_good_values_pass() -> None:
    assert checks.number("x", np.int64(3), least=3) == 3.0
    assert checks.number("limit", np.inf, above=0, infinite=True) == np.inf
    assert checks.row("x", 2) == (2.0,)
    assert checks.row("x", [1, 2.5], above=0) == (1.0, 2.5)
    assert checks.gain("PID", "kp", [1, 2]) == (1.0, 2.0)
    assert checks.gain("PID", "preload", -1.0, signed=True) == -1.0
    assert checks.gain("PID", "limit", np.inf, infinite=True) == np.inf
    assert checks.whole("x", np.int64(2), least=1) == 2
    assert checks.choice("mode", "a", ("a", "b")) == "a"
    checks.flag("PID", "project", np.True_)
    checks.positive("law", a=1.0, b=2.0)
    checks.not_negative("law", a=0.0)
    assert checks.step_length(0.5) == 0.5
    np.testing.assert_array_equal(checks.per_actuator(2.0, 3, "x"), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(checks.time_axis([0, 1, 3]), [0.0, 1.0, 3.0])
    np.testing.assert_array_equal(checks.signal("v", 2.0, 3), [2.0, 2.0, 2.0])


def test_bad_values_get_one_sentence(subtests: pytest.Subtests) -> None:
    for call, error, words in [
        (lambda: checks.number("mass", "3"), DescriptionError, "mass is '3'; give a number"),
        (lambda: checks.number("mass", True), DescriptionError, "mass is True"),
        (
            lambda: checks.number("mass", -1.0, least=0, unit="kg"),
            DescriptionError,
            r"mass is -1; give a number \[kg\] of at least 0",
        ),
        (lambda: checks.number("mass", np.inf, above=0), DescriptionError, "mass is inf; give a number above 0"),
        (lambda: checks.row("x", [1.0, np.nan]), DescriptionError, r"x\[1\] is nan"),
        (lambda: checks.gain("PID", "kp", -1.0), DescriptionError, "PID: kp = -1.0 must be zero or a number above it"),
        (lambda: checks.gain("PID", "kp", [1.0, 0.0], above=True), DescriptionError, "kp = 0.0 must be a number above zero"),
        (lambda: checks.gain("PID", "kp", [[1.0]]), DescriptionError, r"kp has shape \(1, 1\)"),
        (lambda: checks.gain("PID", "kp", True), DescriptionError, "kp is True"),
        (lambda: checks.positive("law", fc=0.0), DescriptionError, "law: fc = 0.0 must be a number above zero"),
        (lambda: checks.not_negative("law", fv=-1.0), DescriptionError, "law: fv = -1.0 must be zero or"),
        (lambda: checks.number("x", [1.0]), DescriptionError, r"x is \[1.0\]; give a number"),
        (lambda: checks.number("x", 10**5000), DescriptionError, "x is a int that cannot be shown; give a number"),
        (lambda: checks.whole("runs", 2.0, least=1), DynidentError, "runs is 2.0; give a whole number, 1 or more"),
        (
            lambda: checks.whole("runs", 9, least=1, most=8, kind=LogError),
            LogError,
            "runs is 9; give a whole number from 1 to 8",
        ),
        (lambda: checks.choice("mode", 3, ("a", "b"), LogError), LogError, "mode is 3; it is one of a, b"),
        (lambda: checks.flag("PID", "project", 1), DescriptionError, "project = 1 must be True or False"),
        (lambda: checks.choice("mode", "c", ("a", "b")), DescriptionError, "mode is 'c'; it is one of a, b"),
        (lambda: checks.numbers("abc", "q"), DynidentError, "q is not an array of real numbers"),
        (lambda: checks.numbers([1j], "q"), DynidentError, "q is not an array of real numbers"),
        (lambda: checks.numbers([[1.0], [1.0, 2.0]], "q"), DynidentError, "q is not an array of real numbers"),
        (lambda: checks.per_actuator([1.0, 2.0], 3, "kp"), DynidentError, r"kp has shape \(2,\); give one number, or 3"),
        (lambda: checks.time_axis([0.0, 2.0, 2.0]), LogError, r"at sample 2 .2.0 s then 2.0 s, 1 time"),
        (lambda: checks.time_axis([]), LogError, "at least one time"),
        (lambda: checks.signal("v", [1.0, 2.0], 3), LogError, r"v has the shape \(2,\), but there are 3 times"),
        (lambda: checks.signal("v", np.nan, 3), LogError, "v is not a finite number"),
        (lambda: checks.step_length(0.0), LogError, "dt = 0.0 s must be above zero"),
    ]:
        with subtests.test(str(words)):
            with pytest.raises(error, match=words) as caught:
                call()
            assert "\n" not in str(caught.value)
