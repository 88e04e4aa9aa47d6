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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "packages/dynident/src/dynident", ROOT / "packages/dynident/tests"
OUT, EQUIVALENT = ROOT / "fuzz/out", ROOT / "fuzz/mutants_equivalent.txt"
LOOKS = ("figures.py", "pages.py", "report/", "identify/figures.py", "mechanism/drawing.py", "examples/")  # judged by eye
SHARED = ("numpy", "scipy.optimize", "scipy.interpolate", "scipy.linalg", "scipy.signal", "llvmlite.binding", "hypothesis")
QUICK, SLOW, PER_FILE = 8.0, 30.0, 15  # [s] of the tests that are tried first, and then of others; tests of one file
RECORD, SECONDS = 40, 240  # [s] of processor time for the calls of one test file, and for one mutant
SURVIVORS = 0.05  # largest share
OPERATORS = "Add Sub, Sub Add, Mult Div, Div Mult, FloorDiv Mult, Mod FloorDiv, Pow Mult, Lt GtE, LtE Lt, Gt LtE, GtE Gt"
SWAP = {
    getattr(ast, one): getattr(ast, other)
    for one, other in map(str.split, f"{OPERATORS}, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In".split(", "))
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


def walk(node: ast.AST, path: str = "") -> Iterator[tuple[ast.AST, str, ast.AST, str, int | None]]:
    """Yield every node with the qualified name of its function or class, its parent, and its field and index there."""
    for name, value in ast.iter_fields(node):
        for k, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                inside = path
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    inside = f"{path}{'.<locals>' * isinstance(node, ast.FunctionDef)}.{child.name}".lstrip(".")
                yield child, inside, node, name, k
                yield from walk(child, inside)


def mutants_of(tree: ast.Module, module: str) -> Iterator[tuple[Mutant, Callable[[], None]]]:
    """Yield every mutant of a module with the function that plants it in the tree."""
    seen: Counter[tuple[str, str, str]] = Counter()
    assigned = ""
    for node, path, parent, field, k in walk(tree):
        if isinstance(parent, ast.Module | ast.ClassDef):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            assigned = ast.unparse(targets[0]) if targets[0] is not None else ""
        if (new := changed(node)) is not None:
            before, after = (" ".join(ast.unparse(x).split())[:120] for x in (node, new))
            mutant = Mutant(module, path, assigned, getattr(node, "lineno", 0), before, after, seen[path, before, after])
            seen[path, before, after] += 1
            held = getattr(parent, field)
            yield mutant, partial(setattr, parent, field, new) if k is None else partial(held.__setitem__, k, new)


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


def record(source: Path, only: str) -> dict[str, dict[str, Any]]:
    """Return the calls of every test; test files that did not change since they were recorded are not run again."""
    calls: dict[str, dict[str, Any]] = {}
    for file in sorted(TESTS.glob("test_*.py")):
        kept = OUT / "calls" / f"{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}.jsonl"
        if not kept.exists() and only in file.name:
            part = kept.with_suffix(".part")
            kept.parent.mkdir(parents=True, exist_ok=True)
            part.write_text("")
            run([str(file.relative_to(ROOT)), "-p", "fuzz.calls", "--maxfail=1000"], source, RECORD, DYNIDENT_CALLS=str(part))
            part.replace(kept)
            sys.stderr.write(f"recorded {file.name}\n")
        if kept.exists():
            calls |= {test["test"]: test for test in map(json.loads, kept.read_text(encoding="utf-8").splitlines())}
    return calls


def users(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the functions that mention a name, for constants outside functions."""
    found: dict[str, set[str]] = {}
    for module, tree in trees.items():
        for node, path, *_ in walk(tree):
            if isinstance(node, ast.Name | ast.Attribute):
                found.setdefault(node.id if isinstance(node, ast.Name) else node.attr, set()).add(f"{module} {path}")
    return found


def related(mutant: Mutant, calls: dict[str, dict[str, Any]], mentions: dict[str, set[str]]) -> list[list[str]]:
    """Return quick tests that call the function (or use the constant) in two files, more of them, and others of their files."""
    wanted = mentions.get(mutant.assigned, set()) if mutant.assigned else {f"{mutant.module} {mutant.function}"}
    direct = {test for test, found in calls.items() if not wanted.isdisjoint(found["call"])}
    through = {test for test, found in calls.items() if not wanted.isdisjoint(found["setup"])}
    if not direct | through:  # called in another process only
        direct = {test for test, found in calls.items() if any(name.startswith(mutant.module) for name in found["call"])}
    files = [file for file, _ in Counter(test.partition("::")[0] for test in [*direct, *through]).most_common(4)]
    # Results are kept between tests of a file: a test may depend on a function that another one called.
    beside = {test for test in calls if test.partition("::")[0] in files}
    batches, chosen = list[list[str]](), set[str]()
    for tests, limit in (
        (direct & {t for t in beside if t.startswith(tuple(files[:2]))}, QUICK),
        (direct, SLOW),
        (beside, SLOW),
    ):
        batch, spent, of_file = list[str](), 0.0, Counter[str]()
        for test in sorted(tests - chosen, key=lambda test: calls[test]["seconds"]):
            file, spent = test.partition("::")[0], spent + calls[test]["seconds"]
            if spent < limit and of_file[file] < PER_FILE:
                of_file[file] += 1
                batch.append(test)
        chosen |= {*batch}
        batches += [batch] if batch else []
    return batches


def attempt(mutant: Mutant, text: str, source: Path, tests: list[list[str]]) -> str:
    """Plant one bug in the copy and run its tests; return what noticed it, or "survived"."""
    path = source / mutant.module
    path.write_text(text, encoding="utf-8")
    stamp = time.time() - 1e6 * int.from_bytes(os.urandom(2)) / 65536  # else Python may take the bytecode of another mutant
    os.utime(path, (stamp, stamp))
    try:
        for batch in tests:
            if code := run(batch, source, SECONDS):
                return f"killed ({'time' if code < 0 else 'tests'}) by one of {len(batch)}, as {batch[0]}"
        return "survived" if tests else "survived: no test calls it"
    finally:
        shutil.copy2(SOURCE / mutant.module, path)


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
    names = [p.relative_to(SOURCE).as_posix() for p in sorted(SOURCE.rglob("*.py")) if p.name != "__init__.py"]
    trees = {n: ast.parse((SOURCE / n).read_text(encoding="utf-8")) for n in names if not n.startswith(LOOKS)}
    every = [mutant for name, tree in trees.items() for mutant, _ in mutants_of(tree, name)]
    drawn = sorted(every, key=lambda mutant: mutant.rank(given.seed))[: given.count]
    kept, source = OUT / f"mutants-{given.seed}.json", OUT / "copy" / "dynident"
    results: dict[str, str] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    same = {line.partition(" | ")[0] for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()}
    wanted = [m for m in drawn if m.name not in same and not m.module.startswith(tuple(given.skip)) and not given.report]
    todo = [m for m in wanted if m.name not in results or (given.again and results[m.name].startswith("survived"))]
    calls: dict[str, dict[str, Any]] = {}
    if todo:
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
        os.chdir(ROOT)
        for module in SHARED:  # once, for all forked processes; each imports dynident itself
            importlib.import_module(module)
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        calls, mentions = record(source, given.calls), users(trees)
    for k, mutant in enumerate(todo):
        tree = ast.parse((SOURCE / mutant.module).read_text(encoding="utf-8"))
        next(plant for found, plant in mutants_of(tree, mutant.module) if found == mutant)()
        begin = time.monotonic()
        results[mutant.name] = attempt(mutant, ast.unparse(tree), source, related(mutant, calls, mentions))
        took = f"{results[mutant.name]}, {time.monotonic() - begin:.0f} s"
        sys.stderr.write(f"{k + 1}/{len(todo)} {mutant.name} (line {mutant.line}): {took}\n")
        kept.write_text(json.dumps(results, indent=1), encoding="utf-8")
    tried = [m for m in drawn if m.name in results and m.name not in same]
    alive = [m for m in tried if results[m.name].startswith("survived")]
    for m in alive:
        sys.stdout.write(f"{results[m.name]}: {m.name} (line {m.line})\n")
    counts = f"{sum(m.name in same for m in drawn)} equivalent, {len(tried)} tried, {len(alive)} survive"
    sys.stdout.write(f"{len(drawn)} mutants of {len(every)}, seed {given.seed}: {counts}\n")
    return int(len(alive) > SURVIVORS * len(drawn))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
