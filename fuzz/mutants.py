"""Mutation testing: plant small bugs in the core, one at a time, and list those that no related test notices.

``python -m fuzz.mutants`` changes one operator, comparison or number at a time, in a forked process, and runs the tests that
call the changed function; a change outside functions is made in a copy of the package. Which functions a test calls is
recorded, a test file at a time, when a mutant needs it: first the test file that mentions most of the names of the changed
module, then three more, and all of them for mutants that survive these. A test that fails counts if it passes without the
change. A run that was interrupted goes on where it stopped. ``mutants_equivalent.txt`` lists mutants that no test can notice,
each with its reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import hashlib
import importlib
import io
import json
import os
import re
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
from types import CodeType, FunctionType
from typing import Any

import pytest

from dynident.files import write_atomic
from fuzz.calls import kept, record, recorded

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "packages/dynident/src/dynident", ROOT / "packages/dynident/tests"
OUT, EQUIVALENT = ROOT / "fuzz/out", ROOT / "fuzz/mutants_equivalent.txt"
FAILED, COPY = (
    OUT / f"failed-{os.getpid()}",
    OUT / f"copy-{os.getpid()}" / "dynident",
)  # of this process
LOOKED_AT = ("figure", "plot", "draw")  # in names of functions whose result is judged by eye
LOOKS = ("figures.py", "pages.py", "report/", "identify/figures.py", "mechanism/describe.py", "examples/")  # judged by eye
QUICK, SLOW, PER_FILE = 8.0, 12.0, 15  # [s] of the tests that are tried first, and then of others; tests of one file
SECONDS, ELSEWHERE = 40, 99  # [s] of processor time of one run; exit code
SURVIVORS = 0.05  # largest share
# Numbers of the nearest test files, and of batches of their tests, that are tried in turn; [s] of the first batch.
NEAR = ((1, 1, 2.0), (4, 1, QUICK), (10_000, 3, QUICK))
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


# ---- running tests


class Watch:
    """A plug-in of pytest that knows all tests, and writes the first that fails into a file that the parent reads."""

    def __init__(self) -> None:
        self.tests: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember all tests."""
        self.tests = {item.nodeid for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the name of a test that failed."""
        if report.failed and not FAILED.exists():
            FAILED.write_text(report.nodeid, encoding="utf-8")


def run(tests: list[str], plant: Callable[[], bool] = bool, source: Path = SOURCE, seconds: int = SECONDS) -> tuple[int, str]:
    """Run tests in a forked process within a limit of processor time; return pytest's exit code and the first that failed.

    `plant` changes functions in that process; its code is `ELSEWHERE` where there was nothing to change.
    """
    FAILED.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        if plant is not bool and not plant():
            os._exit(ELSEWHERE)
        if source is not SOURCE:  # everything is imported anew, from the copy
            sys.path.insert(0, str(source.parent))
            os.environ["PYTHONPATH"] = str(source.parent)
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "")).startswith(str(ROOT / "packages")):
                    del sys.modules[name]
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *tests], plugins=[Watch()]))
    end = time.monotonic() + 60 * seconds
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:  # it waits and computes nothing
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(found[1]), FAILED.read_text(encoding="utf-8") if FAILED.exists() else ""


loaded: list[FunctionType] = []  # functions of the core, in this process and those that it forks


def planted(mutant: Mutant, tree: ast.Module) -> bool:
    """Give functions that are loaded the code of a changed module; False for a change outside functions, as of a default."""
    file, outer = str(SOURCE / mutant.module), mutant.function.partition(".<locals>")[0]
    codes: list[Any] = [compile(tree, file, "exec")]
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    new = [code for code in codes if code.co_qualname == outer]
    own = [f for f in loaded if f.__code__.co_filename == file and f.__code__.co_qualname == outer]
    if len(new) != 1 or not own or own[0].__code__ == new[0]:
        return False
    for function in own:
        function.__code__ = new[0]
    return True


def prepare_parent(names: list[str]) -> set[str]:
    """Import what all tests need once, for the forked processes; return the names of all tests."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in names:
        with contextlib.suppress(ImportError):  # modules that moved to another package say so
            importlib.import_module(f"dynident.{name.removesuffix('.py').replace('/', '.')}")
    watch = Watch()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", str(TESTS)], plugins=[watch])
    core = str(SOURCE)
    loaded.extend(f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__code__.co_filename.startswith(core))
    gc.collect()
    gc.freeze()  # collecting the garbage of a forked process would copy the whole memory: 1.3 s of processor time
    return watch.tests


def users(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the functions that mention a name, for constants outside functions."""
    found: dict[str, set[str]] = {}
    for module, tree in trees.items():
        for node, path, *_ in walk(tree):
            if isinstance(node, ast.Name | ast.Attribute):
                found.setdefault(node.id if isinstance(node, ast.Name) else node.attr, set()).add(f"{module} {path}")
    return found


def related(
    mutant: Mutant,
    calls: dict[str, dict[str, Any]],
    mentions: dict[str, set[str]],
    named: set[str],
    quick: float,
    every: bool = False,
) -> list[list[str]]:
    """Return quick tests that call the function (or use the constant) in two files, more of them, and others of their files.

    Tests in the files `named` use the constant themselves. With `every`, all other tests that call the function follow.
    """
    wanted = mentions.get(mutant.assigned, set()) if mutant.assigned else {f"{mutant.module} {mutant.function}"}
    direct = {test for test, found in calls.items() if not wanted.isdisjoint(found["call"])}
    direct |= {test for test in calls if Path(test.partition("::")[0]).name in named}
    through = {test for test, found in calls.items() if not wanted.isdisjoint(found["setup"])}
    if not direct | through:  # called in another process only
        direct = {test for test, found in calls.items() if any(name.startswith(mutant.module) for name in found["call"])}
    files = [file for file, _ in Counter(test.partition("::")[0] for test in [*direct, *through]).most_common(4)]
    # Results are kept between tests of a file: a test may depend on a function that another one called.
    beside = {test for test in calls if test.partition("::")[0] in files}
    batches, chosen = list[list[str]](), set[str]()
    for tests, limit in (
        (direct & {t for t in beside if t.startswith(tuple(files[:2]))}, quick),
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
    spent = SLOW
    for test in sorted(direct - chosen, key=lambda test: calls[test]["seconds"]) if every else ():
        if spent + calls[test]["seconds"] > SLOW:
            batches.append([])
            spent = 0.0
        batches[-1].append(test)
        spent += calls[test]["seconds"]
    return batches


def nearness(mutant: Mutant, tree: ast.Module, words: Counter[str]) -> float:
    """Return how much a test file has to do with a mutant: the share of its words that are names of the module."""
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own = [*mutant.function.split("."), mutant.assigned, Path(mutant.module).stem]
    return (sum(words[name] for name in names) + 3 * sum(words[name] for name in own)) / (100 + words.total())


def attempt(mutant: Mutant, tree: ast.Module, batches: list[list[str]], unusable: set[str]) -> str:
    """Plant one bug and run its tests; return what noticed it, or "survived"."""
    for batch in batches:
        while tests := [test for test in batch if test not in unusable]:
            code, failed = run(tests, partial(planted, mutant, tree))
            if code == ELSEWHERE:
                shutil.copytree(SOURCE, COPY, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
                (COPY / mutant.module).write_text(ast.unparse(tree), encoding="utf-8")
                code, failed = run(tests, source=COPY)
            if code == 0:
                break
            if code < 0 or not failed:
                return f"killed ({'time' if code < 0 else 'import'}), as by {tests[0]}"
            if run([failed])[0] == 0:
                return f"killed by {failed}"
            unusable.add(failed)  # it does not pass alone without the bug either
    return "survived" if batches else "survived: no test calls it"


def results_of(seed: int, **new: str) -> dict[str, str]:
    """Return what became of the mutants of a seed so far, after adding to it."""
    file = OUT / f"mutants-{seed}.json"
    results: dict[str, str] = {**(json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}), **new}
    if new:
        write_atomic(file, json.dumps(results, indent=1))
    return results


def try_all(todo: list[Mutant], trees: dict[str, ast.Module], present: set[str], seed: int, every: bool = False) -> None:
    """Try mutants with the nearest test files, and those that survive with more of them; with `every`, all that call them."""
    words = {file: Counter(re.findall(r"\w+", file.read_text(encoding="utf-8"))) for file in sorted(TESTS.glob("test_*.py"))}
    mentions, unusable = users(trees), set[str]()
    passed: dict[Mutant, set[str]] = {mutant: set() for mutant in todo}
    near: dict[Mutant, list[Path]] = {}
    for mutant in todo:
        value = {file: nearness(mutant, trees[mutant.module], found) for file, found in words.items()}
        near[mutant] = sorted(words, key=value.__getitem__, reverse=True)
    for count, most, quick in NEAR:
        waiting = {m: sum(not kept(file).exists() for file in near[m][:count]) for m in todo}
        for k, mutant in enumerate(sorted(todo, key=waiting.__getitem__)):
            for file in near[mutant][:count]:
                if not kept(file).exists():
                    record(file)
            calls = {test: found for test, found in recorded(words).items() if test in present}
            last = every and count == NEAR[-1][0]
            named = {file.name for file, found in words.items() if mutant.assigned and found[mutant.assigned]}
            batches = related(mutant, calls, mentions, named, quick, last)[: None if last else most]
            batches = [[test for test in batch if test not in passed[mutant]] for batch in batches]
            tree = copy.deepcopy(trees[mutant.module])
            next(plant for found, plant in mutants_of(tree, mutant.module) if found == mutant)()
            begin = time.monotonic()
            result = attempt(mutant, tree, batches, unusable)
            passed[mutant].update(*batches)
            took = f"{result}, {time.monotonic() - begin:.0f} s"
            sys.stderr.write(f"{k + 1}/{len(todo)} {mutant.name} (line {mutant.line}): {took}\n")
            if result.startswith("killed"):
                todo.remove(mutant)
            if result.startswith("killed") or count == NEAR[-1][0]:
                results_of(seed, **{mutant.name: result})


def main(arguments: list[str]) -> int:
    """Try the mutants that have no result yet; print the survivors. Exit code 1 if more than 5 % survive."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="try only mutants whose names contain this, such as a module")
    parser.add_argument("--list", action="store_true", help="print the mutants and what is known of them; run nothing")
    parser.add_argument("--again", action="store_true", help="try survivors again, with all tests that call them")
    parser.add_argument("--part", default="1/1", help="2/3: the second of three processes that try a third each")
    given = parser.parse_args(arguments)
    names = [p.relative_to(SOURCE).as_posix() for p in sorted(SOURCE.rglob("*.py")) if p.name != "__init__.py"]
    trees = {n: ast.parse((SOURCE / n).read_text(encoding="utf-8")) for n in names if not n.startswith(LOOKS)}
    every = [mutant for name, tree in trees.items() for mutant, _ in mutants_of(tree, name)]
    every = [mutant for mutant in every if not any(word in mutant.function for word in LOOKED_AT)]
    drawn = sorted(every, key=lambda mutant: mutant.rank(given.seed))[: given.count]
    same = {line.partition(" | ")[0] for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()}
    part, parts = map(int, given.part.split("/"))
    wanted = [m for m in drawn if m.name not in same and given.only in m.name and not given.list][part - 1 :: parts]
    old = results_of(given.seed)
    todo = [m for m in wanted if m.name not in old or (given.again and old[m.name].startswith("survived"))]
    if todo:
        try_all(todo, trees, prepare_parent(names), given.seed, given.again)
    results = results_of(given.seed)
    for m in drawn if given.list else ():
        sys.stdout.write(f"{m.name} (line {m.line}): {results.get(m.name, 'equivalent' if m.name in same else '-')}\n")
    tried = [m for m in drawn if m.name in results and m.name not in same]
    alive = [m for m in tried if results[m.name].startswith("survived")]
    for m in alive:
        sys.stdout.write(f"{results[m.name]}: {m.name} (line {m.line})\n")
    counts = f"{sum(m.name in same for m in drawn)} equivalent, {len(tried)} tried, {len(alive)} survive"
    sys.stdout.write(f"{len(drawn)} mutants of {len(every)}, seed {given.seed}: {counts}\n")
    return int(len(alive) > SURVIVORS * len(drawn))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
