"""Bad input on the command line: one clear sentence, the right exit code, nothing written, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import bad_input_calls as calls
import bad_input_corpus as corpus
import numpy as np
import pytest
from bad_input_corpus import BAD_INPUT, Case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dynident as di
from dynident.__main__ import main

SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
GROUPS: dict[str, Callable[[dict[str, str]], dict[str, Case]]] = {
    "urdf": lambda _: corpus.urdf_cases(),
    "mjcf": lambda _: corpus.mjcf_cases(),
    "log": lambda good: corpus.log_cases(good["run.csv"]),
    "option": lambda _: calls.option_cases(),
    "toml": lambda _: calls.toml_cases(),
    "fit": lambda good: calls.fit_cases(good["fit.json"]),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A good robot (URDF and MJCF), two logs, a schema, a sidecar and a fit, as texts by file name."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "robot.urdf").write_text(corpus.URDF, encoding="utf-8")
    robot = di.Mechanism.from_urdf(folder / "robot.urdf")
    files = {"robot.urdf": corpus.URDF, "arm.xml": corpus.MJCF, "schema.toml": corpus.SCHEMA, "sidecar.toml": corpus.SIDECAR}
    files |= {"run.csv": corpus.table(robot, 1), "other.csv": corpus.table(robot, 2)}
    (folder / "run.csv").write_text(files["run.csv"], encoding="utf-8")
    log = di.Log.read(folder / "run.csv", effort="joint_torque")
    fit = di.WLS().fit(di.Regression.from_log(robot, log)).result_
    files["fit.json"] = fit.save(folder / "fit.json").read_text(encoding="utf-8")
    return files


class Bench:
    """A folder of good files in which bad calls are run."""

    def __init__(self, folder: Path, good: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.good, self.capsys = folder, good, capsys
        for name in ("folder", "folder.urdf", "folder.csv"):
            (folder / name).mkdir()
        self._restore(good)

    def _restore(self, names: object) -> None:
        for name in names:
            if name in self.good:
                (self.folder / name).write_text(self.good[name], encoding="utf-8")
            else:
                (self.folder / name).unlink(missing_ok=True)

    def _content(self) -> dict[str, bytes | None]:
        paths = sorted(self.folder.rglob("*"))
        return {str(p.relative_to(self.folder)): p.read_bytes() if p.is_file() else None for p in paths}

    def run(self, case: Case) -> tuple[int, str, list[str]]:
        """Run one call; return its exit code, its standard error and what it changed on disk."""
        for name, content in case.files.items():
            assert content is not None
            (self.folder / name).write_bytes(content)
        before = self._content()
        self.capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as exit_:
            patch.setattr(sys, "argv", ["dynident", *case.args])
            patch.chdir(self.folder)
            main()
        after = self._content()
        self._restore(case.files)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name, 0) != after.get(name, 0))
        for name in changed:
            if name not in self.good:
                path = self.folder / name
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.output, errors = self.capsys.readouterr()
        return int(exit_.value.code or 0), errors, changed

    def problems(self, case: Case) -> list[str]:
        """Run one bad call and return what is wrong with the answer; warnings (notes) may precede the sentence."""
        code, text, changed = self.run(case)
        lines = text.splitlines()
        sentences = [line for line in lines if not line.startswith("note: ")]
        found = []
        if code != case.code:
            found.append(f"exit code {code}")
        if len(sentences) != 1 or not sentences[0].startswith("dynident: ") or lines[-1] != sentences[0]:
            found.append("not one sentence at the end")
        if case.word not in text:
            found.append(f"does not name '{case.word}'")
        if any(sign in text for sign in ("Traceback", "internal error", 'File "')) or not 25 < len(text) < 2500:
            found.append("not a sentence for people")
        if self.output or changed:
            found.append(f"wrote {changed or 'to standard output'}")
        return [*found, text] if found else []


@pytest.fixture
def bench(tmp_path: Path, good: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, good, capsys)


@pytest.mark.parametrize("group", GROUPS)
def test_every_bad_call_gives_one_sentence(group: str, bench: Bench) -> None:
    cases = GROUPS[group](bench.good)
    wrong = {}
    for name, case in cases.items():
        problems = bench.problems(case)
        if problems:
            wrong[name] = problems
    assert not wrong, "\n".join(f"{name}: {', '.join(problems)}" for name, problems in wrong.items())
    assert len(cases) >= 15


def test_there_are_more_than_200_different_bad_calls(good: dict[str, str]) -> None:
    cases = [case for group in GROUPS.values() for case in group(good).values()]
    different = {(case.args, tuple(sorted(case.files.items()))) for case in cases}
    assert len(different) == len(cases)
    assert len(different) >= 300


def test_the_good_files_are_good(bench: Bench) -> None:
    """The corpus is about what was broken: unbroken, the same calls succeed."""
    for args in (
        corpus.DESCRIBE,
        ("describe", "arm.xml"),
        corpus.VALIDATE,
        ("export", "robot.urdf", "fit.json", "-o", "x.json"),
    ):
        code, text, _ = bench.run(Case(args))
        assert code == 0, args
        assert all(line.startswith("note: ") for line in text.splitlines())
    for option in (("--schema", "schema.toml"), ("--gain", "1"), ("--joints", "joint1,joint2")):
        code, text, _ = bench.run(Case((*corpus.VALIDATE, *option)))
        assert (code, text) == (0, ""), option


@pytest.mark.parametrize("what", ["inertial", "impossible"])
def test_doubtful_robots_are_read_with_a_note(what: str, bench: Bench) -> None:
    text = corpus.URDF
    if what == "inertial":
        text = text[: text.index("<inertial>")] + text[text.index("</inertial>") + 11 :]
    else:
        text = text.replace('iyy="0.05" izz="0.05"', 'iyy="0.5" izz="0.05"')
    code, said, changed = bench.run(Case(corpus.DESCRIBE, {"robot.urdf": text.encode()}))
    assert code == 0
    assert not changed
    assert said.startswith("note: ")
    assert said.count("\n") == 1
    assert "link1" in said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to this user")
def test_files_and_folders_that_are_forbidden(bench: Bench) -> None:
    for name, args in (("robot.urdf", corpus.DESCRIBE), ("run.csv", corpus.IDENTIFY), ("fit.json", corpus.VALIDATE)):
        (bench.folder / name).chmod(0)
        code, text, changed = bench.run(Case(args))
        (bench.folder / name).chmod(0o644)
        assert (code, changed) == (BAD_INPUT, [])
        assert name in text
    (bench.folder / "folder").chmod(0o500)
    assert not bench.problems(Case((*corpus.IDENTIFY, "-o", "folder"), {}, "read-only"))
    (bench.folder / "folder").chmod(0o700)


@pytest.mark.parametrize("place", [0.0, 0.5, 1e3])
@pytest.mark.parametrize("spacings", [0, 1])
def test_a_robot_that_stands_still_is_not_identified(bench: Bench, place: float, spacings: int) -> None:
    """Rounding of the last bit, which every processor does in its own way, is no motion."""
    head, *rows = bench.good["run.csv"].splitlines()
    times, rng = [row.split(",")[0] for row in rows], np.random.default_rng(0)
    q = place + np.spacing(place) * rng.integers(-spacings, spacings + 1, (len(rows), 2))
    effort = rng.normal([1.0, 2.0], 0.1, (len(rows), 2))
    lines = [",".join([t, *(repr(float(x)) for x in (*p, *e))]) for t, p, e in zip(times, q, effort, strict=True)]
    still = "\n".join([head, *lines]) + "\n"
    assert not bench.problems(Case(corpus.IDENTIFY, {"run.csv": still.encode()}, "no joint moves"))


def answers(bench: Bench, case: Case) -> None:
    """Assert that a call that may be good or bad either succeeds or fails with one sentence."""
    code, text, changed = bench.run(case)
    sentences = [line for line in text.splitlines() if not line.startswith("note: ")]
    assert code in (0, BAD_INPUT), text
    assert len(sentences) == (code == BAD_INPUT), text
    assert code == 0 or not changed


JUNK = st.sampled_from(
    ["", " ", "nan", "inf", "-1", "0", "1e308", "1e-320", "x", "é", "\0", "'", ",", "[", "{}", "null", "true", '"']
)


@st.composite
def mutated(draw: st.DrawFn, text: str, separators: str) -> str:
    """Return a text with a few pieces between separators replaced, doubled, exchanged, removed or cut."""
    mark = draw(st.sampled_from(separators))
    pieces = text.split(mark)
    for _ in range(draw(st.integers(1, 3))):
        i, j = (draw(st.integers(0, len(pieces) - 1)) for _ in range(2))
        kind = draw(st.integers(0, 4))
        if kind <= 1:
            pieces[i] = draw(JUNK)
        elif kind == 2:
            pieces[i], pieces[j] = pieces[j], pieces[i]
        elif kind == 3 and len(pieces) > 1:
            del pieces[i]
        elif kind == 4:
            pieces = pieces[: i + 1]
    return mark.join(pieces)


@given(data=st.data())
@SETTINGS
def test_mutated_robots(data: st.DataObject, bench: Bench) -> None:
    for name, text in (("robot.urdf", corpus.URDF), ("arm.xml", corpus.MJCF)):
        content = data.draw(mutated(text, '"<> ')).encode()
        answers(bench, Case(("describe", name, "--json"), {name: content}))


@given(data=st.data())
@SETTINGS
def test_mutated_logs(data: st.DataObject, bench: Bench) -> None:
    content = data.draw(mutated(bench.good["other.csv"], ",\n.")).encode()
    answers(bench, Case(corpus.VALIDATE, {"other.csv": content}))


@given(data=st.data())
@SETTINGS
def test_mutated_fits(data: st.DataObject, bench: Bench) -> None:
    content = data.draw(mutated(bench.good["fit.json"], '",: ')).encode()
    answers(bench, Case(corpus.VALIDATE, {"fit.json": content}))


@given(data=st.data())
@SETTINGS
def test_fits_with_exchanged_values(data: st.DataObject, bench: Bench) -> None:
    values = st.sampled_from([None, 0, -1.5, 1e308, "x", [], {}, [[]], True, [None], {"a": 1}, ["joint1"], [1.0, 2.0]])
    fit = json.loads(bench.good["fit.json"])
    for key in data.draw(st.lists(st.sampled_from(sorted(fit)), min_size=1, max_size=2)):
        fit[key] = data.draw(values)
    answers(bench, Case(corpus.VALIDATE, {"fit.json": json.dumps(fit).encode()}))


@given(data=st.data())
@SETTINGS
def test_mutated_schemas_and_sidecars(data: st.DataObject, bench: Bench) -> None:
    schema = data.draw(mutated(corpus.SCHEMA, '"=\n')).encode()
    answers(bench, Case((*corpus.VALIDATE, "--schema", "schema.toml"), {"schema.toml": schema}))
    sidecar = data.draw(mutated(corpus.SIDECAR, '"=\n ')).encode()
    answers(bench, Case((*corpus.DESCRIBE, "--sidecar", "sidecar.toml"), {"sidecar.toml": sidecar}))


@given(
    st.binary(max_size=300), st.sampled_from(["x.urdf", "x.xml", "x.csv", "x.npz", "x.mat", "x.csv.gz", "x.h5", "x.parquet"])
)
@SETTINGS
def test_junk(bench: Bench, junk: bytes, name: str) -> None:
    robot = name.endswith((".urdf", ".xml"))
    args = ("describe", name) if robot else (*corpus.VALIDATE[:2], name, *corpus.VALIDATE[3:])
    assert not bench.problems(Case(args, {name: junk}))
