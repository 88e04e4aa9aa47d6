"""The same input, seed, date and number of iterations give the same bytes, in another process with other hashes and threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.samples import good_files

VERBS = (
    ("identify", "robot.urdf", "run.csv", "--effort", "joint_torque", "-o", "fit"),
    ("simulate", "motion.csv", "--robot", "robot.urdf", "--seed", "3", "-o", "made/run.csv", "--truth", "made/truth.npz"),
    ("excite", "robot.urdf", "--limits", "limits.toml", "--iterations", "2", "--starts", "2", "-o", "plan"),
)
PROGRAM = f"from dynident.cli import run\nassert [run(verb) for verb in {VERBS!r}] == [0, 0, 0]"


def _made(folder: Path, hashes: str, threads: str) -> dict[str, bytes]:
    """Run the verbs in a folder of their own; return every file they made."""
    folder.mkdir()
    good_files(folder, every=False)
    given = {path.relative_to(folder) for path in folder.rglob("*")}
    settings = {
        "SOURCE_DATE_EPOCH": "1700000000",
        "PYTHONHASHSEED": hashes,
        "OPENBLAS_NUM_THREADS": threads,
        "OMP_NUM_THREADS": threads,
    }
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, env={**os.environ, **settings}, check=True, capture_output=True)
    made = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in made.items() if name not in given}


def test_same_input_same_bytes(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "first", "1", "1"), _made(tmp_path / "second", "2", "2")
    assert {Path(name).parts[0] for name in first} == {"fit", "made", "plan"}
    assert first.keys() == second.keys()
    assert b"2023-11-14 22:13 UTC" in first["fit/report.html"]
    assert [name for name, data in first.items() if data != second[name]] == []
