"""Compiled code is renewed when a kernel it calls in another file has changed, which numba alone does not notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dynident

CALLER = """
from dynident.mechanics.kernels import kernel
from dynident.mechanics.other_kernels import constant


@kernel
def call():
    return constant()
"""

CALLEE = """
from dynident.mechanics.kernels import kernel


@kernel
def constant():
    return {value}
"""


def test_a_changed_callee_renews_its_callers(tmp_path: Path) -> None:
    package = tmp_path / "dynident"
    shutil.copytree(Path(dynident.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "mechanics" / "caller_kernels.py").write_text(CALLER)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for value in (3, 7, 7):
        (package / "mechanics" / "other_kernels.py").write_text(CALLEE.format(value=value))
        code = "from dynident.mechanics.caller_kernels import call; print(call(), sum(call.stats.cache_hits.values()))"
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
        assert done.stdout.split()[0] == str(value)
    assert done.stdout.split()[1] == "1"  # nothing changed: taken from the cache
