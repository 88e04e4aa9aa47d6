"""What the benchmarks write: results of NumPy numbers are plain data."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def test_results_are_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "benchmarks", raising=False)
    from benchmarks.cases import Result

    faster = Result("a ratio", np.float64(5.2), "x", 5.0, "")
    slower = Result("a time", np.float64(2.1), "s", 2.0, "")
    assert (faster.passed, slower.passed, Result("nothing", None, "s", 1.0, "").passed) == (True, False, None)
    assert json.loads(json.dumps([{**asdict(r), "passed": r.passed} for r in (faster, slower)]))[0]["passed"] is True
