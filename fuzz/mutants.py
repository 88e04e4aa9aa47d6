"""Mutation testing: plant small bugs in the core, one at a time, and list those that no related test notices.

``python -m fuzz.mutants`` works on a copy of the package. It records once which functions every test calls, then changes one
operator, comparison or number at a time and runs the tests that call the changed function. A run that was interrupted goes on
where it stopped. ``mutants_equivalent.txt`` lists mutants that no test can notice, each with its reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "packages/dynident/src/dynident", ROOT / "packages/dynident/tests"
OUT = ROOT / "fuzz/out"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
# Layout and wording of figures and pages are checked by looking at them.
LOOKS = ("figures.py", "drawing.py", "pages.py", "report/", "identify/figures.py", "demo.py", "examples/")
QUICK, SLOW = 8.0, 50.0  # [s] of the tests that are tried first, and then of others
RECORD, SECONDS = 40, 240  # [s] of processor time for the calls of one test file, and for one mutant
SWAP: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Mutant:
    """One changed node: where it is, what it was and what it becomes."""

    module: str
    function: str  # qualified name of the function or class, "" at module level
    assigned: str  # what the statement assigns, outside functions
    line: int
    before: str
    after: str
    occurrence: int  # among equal changes in the same function

    @property
    def name(self) -> str:
        """Identity that does not depend on the rest of the file."""
        again = f" #{self.occurrence}" if self.occurrence else ""
        return f"{self.module} {self.function or self.assigned}: {self.before} -> {self.after}{again}"

    def rank(self, seed: int) -> str:
        """Pseudo-random order: a change elsewhere does not draw other mutants here."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).hexdigest()


def changed(node: ast.AST) -> ast.AST | None:
    """Return a copy of a node with one bug, or None for a node that is not mutated."""
    new: Any = copy.copy(node)
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAP:
            new.op = SWAP[type(op)]()
        case ast.Compare(ops=[op]) if type(op) in SWAP:
            new.ops = [SWAP[type(op)]()]
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            return operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.Constant(value=float(value)):
            new.value = 2.0 * value if value else 1.0
        case _:
            return None
    return new


def mutants_of(tree: ast.Module, module: str) -> Iterator[tuple[Mutant, Callable[[], None]]]:
    """Yield every mutant of a module with the function that plants it in the tree."""
    seen: Counter[tuple[str, str, str]] = Counter()

    def visit(node: ast.AST, path: str, name: str) -> Iterator[tuple[Mutant, Callable[[], None]]]:
        for field, value in ast.iter_fields(node):
            for k, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if field in ("annotation", "returns") or not isinstance(child, ast.AST):
                    continue
                inside = path
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    scope = f"{path}.<locals>" if isinstance(node, ast.FunctionDef) else path
                    inside = f"{scope}.{child.name}".lstrip(".")
                targets = getattr(child, "targets", [getattr(child, "target", None)])
                assigned = ast.unparse(targets[0]) if isinstance(node, ast.Module | ast.ClassDef) and targets[0] else name
                if (new := changed(child)) is not None:
                    before, after = (" ".join(ast.unparse(x).split())[:120] for x in (child, new))
                    mutant = Mutant(module, inside, assigned, child.lineno, before, after, seen[inside, before, after])
                    seen[inside, before, after] += 1
                    yield mutant, partial(setattr, node, field, new) if k is None else partial(value.__setitem__, k, new)
                yield from visit(child, inside, assigned)

    yield from visit(tree, "", "")


# ---- which functions a test calls: a plug-in of pytest, loaded by -p fuzz.mutants

_calls: dict[str, dict[str, Any]] = {}


def _traced(phase: str, item: Any) -> Generator[None, Any, Any]:
    codes: set[CodeType] = set()

    def look(frame: FrameType, _: str, __: object) -> None:
        codes.add(frame.f_code)

    begin = time.process_time()
    sys.settrace(look)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        entry = _calls.setdefault(item.nodeid, {"test": item.nodeid, "seconds": 0.0, "setup": [], "call": []})
        entry["seconds"] += time.process_time() - begin
        inside = f"{os.sep}dynident{os.sep}"
        found = {(c.co_filename.rpartition(inside)[2], c.co_qualname) for c in codes if inside in c.co_filename}
        entry[phase] = sorted({f"{file} {name.partition('.<locals>.<')[0]}" for file, name in found})


if os.environ.get("DYNIDENT_CALLS"):

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(item: Any) -> Generator[None, Any, Any]:
        """Note what the fixtures of a test call."""
        return (yield from _traced("setup", item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
        """Note what a test calls."""
        return (yield from _traced("call", item))

    def pytest_runtest_logreport(report: Any) -> None:
        """Write the calls of a test that did not fail, at once: a slow file may run out of its time."""
        if report.failed or report.skipped:
            _calls.pop(report.nodeid, None)
        elif report.when == "teardown" and report.nodeid in _calls:
            with Path(os.environ["DYNIDENT_CALLS"]).open("a", encoding="utf-8") as file:
                file.write(json.dumps(_calls.pop(report.nodeid)) + "\n")


# ---- running tests on the copy


def run(tests: list[str], source: Path, seconds: int, **env: str) -> int:
    """Run tests on a copy of the package in a forked process, within a limit of processor time; return pytest's exit code."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        os.environ |= {**env, "PYTHONPATH": os.pathsep.join([str(source.parent), str(ROOT)])}
        sys.path[:0] = [str(source.parent), str(ROOT)]
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *tests]))
    end = time.monotonic() + 60 * seconds
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:  # it waits and computes nothing
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    return os.waitstatus_to_exitcode(found[1])


def prepare_environment() -> None:
    """Import what all tests need once, for the forked processes; dynident itself is imported by each of them."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.chdir(ROOT)
    for module in (
        "numpy",
        "scipy.optimize",
        "scipy.interpolate",
        "scipy.linalg",
        "scipy.signal",
        "llvmlite.binding",
        "hypothesis",
    ):
        importlib.import_module(module)


def record(source: Path, only: str) -> dict[str, dict[str, Any]]:
    """Return the calls of every test; test files that did not change since they were recorded are not run again."""
    calls: dict[str, dict[str, Any]] = {}
    for file in sorted(TESTS.glob("test_*.py")):
        kept = OUT / "calls" / f"{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}.jsonl"
        if not kept.exists() and only in file.name:
            begin, being = time.monotonic(), kept.with_suffix(".part")
            kept.parent.mkdir(parents=True, exist_ok=True)
            being.write_text("")
            run(
                [str(file.relative_to(ROOT)), "-p", "fuzz.mutants", "--maxfail=1000"], source, RECORD, DYNIDENT_CALLS=str(being)
            )
            being.replace(kept)
            sys.stderr.write(f"calls of {file.name}: {time.monotonic() - begin:.0f} s\n")
        if kept.exists():
            calls |= {test["test"]: test for test in map(json.loads, kept.read_text(encoding="utf-8").splitlines())}
    return calls


def users(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the functions that mention a name, for constants outside functions."""
    found: dict[str, set[str]] = {}

    def visit(node: ast.AST, module: str, path: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = path
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = (
                    f"{path}.<locals>.{child.name}" if isinstance(node, ast.FunctionDef) else f"{path}.{child.name}".lstrip(".")
                )
            if isinstance(child, ast.Name | ast.Attribute):
                found.setdefault(child.id if isinstance(child, ast.Name) else child.attr, set()).add(f"{module} {path}")
            visit(child, module, inside)

    for module, tree in trees.items():
        visit(tree, module, "")
    return found


def related(mutant: Mutant, calls: dict[str, dict[str, Any]], mentions: dict[str, set[str]]) -> list[list[str]]:
    """Return the quickest tests that call the function (or use the constant), then others in files that do so."""
    wanted = mentions.get(mutant.assigned, set()) if mutant.assigned else {f"{mutant.module} {mutant.function}"}
    direct = {test for test, found in calls.items() if not wanted.isdisjoint(found.get("call", []))}
    files = Counter(
        test.partition("::")[0]
        for test, found in calls.items()
        if not wanted.isdisjoint({*found.get("call", []), *found.get("setup", [])})
    )
    # Results are kept between tests of a file: a test may depend on a function that another one called.
    beside = {test for test in calls if test.partition("::")[0] in dict(files.most_common(4))} - direct
    batches, chosen = [], set[str]()
    for tests, limit in ((direct, QUICK), (direct, SLOW), (beside, SLOW)):
        batch, spent, per_file = [], 0.0, Counter[str]()
        for test in sorted(tests - chosen, key=lambda test: calls[test]["seconds"]):
            file = test.partition("::")[0]
            if spent + calls[test]["seconds"] < limit and per_file[file] < 12:
                per_file[file] += 1
                batch.append(test)
                spent += calls[test]["seconds"]
        chosen |= {*batch}
        batches.append(batch)
    return [batch for batch in batches if batch]


def attempt(mutant: Mutant, plant: Callable[[], None], tree: ast.Module, source: Path, tests: list[list[str]]) -> str:
    """Plant one bug in the copy and run its tests; return what noticed it, or "survived"."""
    path, original = source / mutant.module, (SOURCE / mutant.module).read_bytes()
    plant()
    path.write_text(ast.unparse(tree), encoding="utf-8")
    stamp = time.time() - 1e6 * int.from_bytes(os.urandom(2)) / 65536  # else Python may take the bytecode of another mutant
    os.utime(path, (stamp, stamp))
    try:
        for selected in tests:
            if code := run(selected, source, SECONDS):
                return f"killed ({'time' if code < 0 else 'tests'}) by {selected[0]}" + (
                    f" and {len(selected) - 1} more" if selected[1:] else ""
                )
        return "survived" if tests else "survived: no test calls it"
    finally:
        path.write_bytes(original)


def main(arguments: list[str]) -> int:
    """Try the mutants that have no result yet; print the survivors. Exit code 1 if more than 5 % survive."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", nargs="*", default=[], help="leave out modules whose path begins so")
    parser.add_argument("--again", action="store_true", help="try survivors again, after new tests")
    parser.add_argument("--calls", default="", help="record only test files whose name contains this")
    parser.add_argument("--report", action="store_true", help="print what is known; run nothing")
    given = parser.parse_args(arguments)
    files = {p.relative_to(SOURCE).as_posix(): p for p in sorted(SOURCE.rglob("*.py")) if p.name != "__init__.py"}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in files.items() if not name.startswith(LOOKS)}
    every = [mutant for name, tree in trees.items() for mutant, _ in mutants_of(tree, name)]
    drawn = sorted(every, key=lambda mutant: mutant.rank(given.seed))[: given.count]
    kept = OUT / f"mutants-{given.seed}.json"
    results: dict[str, str] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    equivalent = {line.partition(" | ")[0] for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if " | " in line}
    todo = [m for m in drawn if m.name not in equivalent and not m.module.startswith(tuple(given.skip)) and not given.report
            and (m.name not in results or (given.again and results[m.name].startswith("survived")))]  # fmt: skip
    OUT.mkdir(parents=True, exist_ok=True)
    source = OUT / "copy" / "dynident"  # keeps its bytecode
    if todo:
        prepare_environment()
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    calls = record(source, given.calls) if todo else {}
    mentions = users(trees)
    for k, wanted in enumerate(todo):
        tree = ast.parse(files[wanted.module].read_text(encoding="utf-8"))
        mutant, plant = next(pair for pair in mutants_of(tree, wanted.module) if pair[0] == wanted)
        begin = time.monotonic()
        results[mutant.name] = attempt(mutant, plant, tree, source, related(mutant, calls, mentions))
        took = f"{results[mutant.name]}, {time.monotonic() - begin:.0f} s"
        sys.stderr.write(f"{k + 1}/{len(todo)} {mutant.name} (line {mutant.line}): {took}\n")
        kept.write_text(json.dumps(results, indent=1), encoding="utf-8")
    tried = [m for m in drawn if m.name in results and m.name not in equivalent]
    alive = [m for m in tried if results[m.name].startswith("survived")]
    for m in alive:
        sys.stdout.write(f"{results[m.name]}: {m.name} (line {m.line})\n")
    same = sum(m.name in equivalent for m in drawn)
    counts = f"{same} equivalent, {len(tried)} tried, {len(alive)} survive"
    sys.stdout.write(f"{len(drawn)} mutants of {len(every)}, seed {given.seed}: {counts}\n")
    return int(len(alive) > 0.05 * len(drawn))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
