"""Run all benchmarks: ``python -m benchmarks [--quick] [--strict] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dynident as di
from benchmarks import baseline, cases, loops, processes, simulate, symbolic
from benchmarks.cases import Result
from benchmarks.excitation import excitation
from benchmarks.friction import friction
from benchmarks.latency import latency
from benchmarks.release import release
from dynident.files import write_atomic
from dynident.parallel import cores

PACKAGES = ("numpy", "scipy", "llvmlite", "pin", "mujoco", "figaroh", "dynibo")


def environment() -> dict[str, Any]:
    """Return the conditions of the figures: processor, threads, versions, load."""
    from threadpoolctl import threadpool_info

    versions = {"python": platform.python_version(), "dynident": di.__version__}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "system": platform.platform(),
        "threads": cores(),
        "blas": sorted(
            {f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in threadpool_info()}
        ),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def show(result: Result) -> tuple[str, str, str, str, str]:
    """Return the cells of one line."""
    digits = {"x": 1, "of": 2, "MB": 1, "s": 2, "us": 2, "ms": 2, "files": 0}[result.unit]
    value = "-" if result.value is None else f"{result.value:.{digits}f} {result.unit}"
    sign = ">=" if result.unit == "x" else "<="
    target = "" if result.target is None else f"{sign} {result.target:g} {result.unit}"
    mark = {True: "pass", False: "MISS", None: ""}[result.passed]
    return result.what, value, target, mark, result.detail


def table(results: list[Result]) -> str:
    """Return the results as aligned text."""
    rows = [("measured", "figure", "target", "", "how"), *map(show, results)]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    align = (str.ljust, str.rjust, str.rjust, str.ljust, str.ljust)
    lines = ["  ".join(put(cell, width) for put, cell, width in zip(align, row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def page(sections: dict[str, list[Result]], about: dict[str, Any]) -> str:
    """Return docs/reference/speed.md: all results."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    load = "" if about["load"] is None else f"; load {about['load'][0]:.1f}"
    machine = f"{about['processor']}, {about['threads']} threads{load}; {versions}."
    lines = [Path(__file__).with_name("speed.md").read_text() + machine]
    for label, results in sections.items():
        lines += ["", f"## {label[0].upper()}{label[1:]}", "", "| measured | figure | goal | how |", "|---|---|---|---|"]
        lines += [f"| {what} | {value} | {target} | {how} |" for what, value, target, _, how in map(show, results)]
    return "\n".join([*lines, ""])


def main() -> int:
    """Measure, print the table and write results.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure dynident against the usual ways.")
    parser.add_argument("--quick", action="store_true", help="few samples, as a smoke test; targets are not meant for it")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--only", metavar="WORD", nargs="+", help="only the measurements whose names hold one of these words")
    parser.add_argument("--page", type=Path, help="file to write all results to, as a page of the documentation")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="folder for results.json")
    options = parser.parse_args()
    samples, repeats = (5_000, 1) if options.quick else (100_000, 4)

    about = environment()
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    print(f"{about['processor']}, {about['threads']} threads for ours; {'; '.join(about['blas'])}\n{versions}\n", flush=True)
    steps: list[tuple[str, Callable[[], list[Result]]]] = [
        ("start-up", lambda: processes.startup(repeats)),
        ("first use", lambda: processes.first_use(options.quick, repeats)),
        ("commands", lambda: baseline.commands(repeats)),
        ("a humanoid", lambda: processes.humanoid(samples // 10)),
        ("memory", lambda: processes.memory((samples, 10 * samples))),
        ("mechanics", lambda: cases.mechanics(samples, repeats)),
        ("latency", lambda: latency(repeats)),
        ("a long log", lambda: cases.long_log(10 * samples)),
        ("identification", lambda: cases.identification(samples, repeats)),
        ("loops", lambda: loops.loops(samples, repeats)),
        ("symbolic", lambda: symbolic.cases(samples // 2, repeats)),
        ("friction", lambda: friction(samples, repeats)),
        ("excitation", lambda: excitation(options.quick)),
        ("virtual robot", lambda: simulate.cases(samples, repeats)),
        ("the last release", lambda: release(samples, repeats)),
        ("FIGAROH", lambda: cases.figaroh(samples // 5, max(1, repeats // 2))),
    ]
    sections: dict[str, list[Result]] = {}
    failed: list[str] = []
    for label, measure in steps:
        if options.only and not any(word in label for word in options.only):
            continue
        print(f"measuring {label} ...", file=sys.stderr, flush=True)
        try:
            found = measure()
        except Exception:
            traceback.print_exc()
            failed.append(label)
            continue
        print(table(found), flush=True)
        sections[label] = found
    results = [result for found in sections.values() for result in found]
    print(f"\nall together\n{table(results)}")

    options.out.mkdir(parents=True, exist_ok=True)
    record = {"environment": about, "results": [{**vars(r), "passed": r.passed} for r in results]}
    path = write_atomic(options.out / "results.json", json.dumps(record, indent=1).encode())
    print(f"\nwritten to {path}")
    if options.page:
        write_atomic(options.page, page(sections, about).encode())
    if failed:
        print(f"not measured: {', '.join(failed)}")
    return int(bool(failed) or (options.strict and any(r.passed is False for r in results)))


if __name__ == "__main__":
    sys.exit(main())
