"""Nine robots of the literature by command, without options: ``python -m benchmarks.nine_robots [NAME ...] [--seeds 2]``.

Every seed designs a plan, simulates it, identifies the robot, validates the model on the log of the other seed's plan, and
tracks with it. z is the error of a parameter that the fit rates "good" over its stated standard deviation; the truth is the
machine's. "moving" is the held-out error of the samples in which every joint has at least a tenth of its rms speed: at
standstill friction is any value up to its limit, which no law predicts. "tracking" is the rms error with the identified model
over that of feedback alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynident as di
from dynident import cli
from dynident.cli.robots import find_machine, find_robot
from dynident.friction import Friction
from dynident_papers.robots.shared import joint_laws

Array = NDArray[np.float64]
NINE = ("rrr", "cft", "dualv", "er3a_c60", "five_bar", "prr2", "replalink", "mast", "prs3")
RMS, WORST = 1.3, 4.5  # largest accepted rms z and |z|


def command(*words: str) -> str:
    """Run a command of dynident and return its output; a failure stops the benchmark."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = cli.run([*words])
    if code:
        raise SystemExit(f"dynident {' '.join(words)}: exit {code}\n{said.getvalue()}")
    return printed.getvalue()


def chain(name: str, folder: Path, seed: int) -> Path:
    """Design, simulate and identify by command; return the folder of the results."""
    plan, log, out = (str(folder / f"{part}{seed}") for part in ("plan", "run", "out"))
    command("excite", name, "-o", plan, "-q", "--seed", str(seed))
    command("simulate", plan, "-o", f"{log}.npz", "-q", "--seed", str(seed))
    command("identify", name, f"{log}.npz", "-o", out, "-q")
    return Path(out)


def deviations(name: str, fit: di.Fit) -> dict[str, float]:
    """Return z of the good parameters: bodies and linear terms, then the linear parameters of friction laws."""
    robot, laws = find_robot(name).mechanism(), joint_laws(find_machine(name))
    known = dict(zip(robot.parameters.names, robot.parameters.values, strict=True))
    true = fit.base.values([known.get(each, 0.0) for each in fit.mechanism.parameters.names])
    good = [row.verdict == "good" for row in fit.observability()]
    z = dict(zip(fit.base.leaders, (fit.values - true) / fit.std, strict=True))
    found = {each: z[each] for each, counts in zip(fit.base.leaders, good, strict=True) if counts and each in known}
    for joint in set(fit.friction) & set(laws):
        if laws[joint].law == fit.friction[joint].law:  # otherwise there is no truth for comparison
            own = {f"{x}_{joint}" for x in laws[joint].law.linear} - set(known)
            seen = [i for i, each in enumerate(fit.base.leaders) if each in own and good[i]]
            found |= _law_deviations(fit, joint, laws[joint], seen)
    return found


def _law_deviations(fit: di.Fit, joint: str, true: Friction, seen: list[int]) -> dict[str, float]:
    """Return z of the linear parameters of a law; (f, w) and (-f, -w) are the same tanh, and its terms can be exchanged."""
    values = {x: y * np.sign(true.parameters.get(x.replace("fc", "beta"), 1.0)) for x, y in true.parameters.items()}
    steps = [x for x in true.law.linear if x.startswith("tanh")]
    found = []
    for order in permutations(steps):
        wanted = {**values, **dict(zip(steps, (values[x] for x in order), strict=True))}
        z = {
            fit.base.leaders[i]: (fit.values[i] - wanted[fit.base.leaders[i].removesuffix(f"_{joint}")]) / fit.std[i]
            for i in seen
        }
        found.append(z)
    return min(found, key=lambda z: sum(float(x) ** 2 for x in z.values()))


def moving_error(fit: di.Fit, log: di.Log) -> float:
    """Return the error [%] of predicted efforts where every joint moves."""
    score, q = fit.score(log), np.asarray(log.position)
    v = np.abs(np.gradient(q, np.asarray(log.t), axis=0))
    slowest = np.interp(score.t, log.t, np.min(v / np.sqrt(np.mean(v**2, axis=0)), axis=1))
    measured, predicted = score.measured[slowest > 0.1], score.predicted[slowest > 0.1]
    return 100.0 * float(np.linalg.norm(measured - predicted) / np.linalg.norm(measured))


def row(name: str, seeds: int, verbose: bool = False) -> tuple[str, bool]:
    """Return the line of one robot, and whether it meets the target."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        outs = [chain(name, folder, seed) for seed in range(seeds)]
        fits = [di.load(out / "fit.json") for out in outs]
        z = [deviations(name, fit) for fit in fits]
        held, moving = [], []
        for seed, out in enumerate(outs):
            other = folder / f"run{(seed + 1) % seeds}.npz"
            found = json.loads(command("validate", str(out / "fit.json"), str(other), "--json"))
            moving.append(moving_error(fits[seed], di.load(other)))
            held.append(100.0 * next(check["value"] for check in found["checks"] if check["name"] == "held_out_error"))
        tracked = json.loads(command("track", name, "--fit", str(outs[0] / "fit.json"), "-q", "--json"))
    spent = time.process_time() - start
    if verbose:
        print(*({k: round(float(v), 1) for k, v in each.items() if abs(v) > 2.0} for each in z), sep="\n")
    every = np.array([x for each in z for x in each.values()])
    rms, worst = float(np.sqrt(np.mean(every**2))), float(np.abs(every).max())
    seen = f"{'/'.join(str(len(each)) for each in z)} of {fits[0].base.rank}"
    errors, others = ("/".join(f"{x:.3g}" for x in each) for each in (held, moving))
    line = f"{name:10s} {seen:>13s} {rms:6.2f} {worst:6.1f} {errors:>12s} {others:>12s} {_tracking(tracked):8.2f} {spent:6.0f}"
    return line, rms <= RMS and worst <= WORST


def _tracking(found: dict[str, Any]) -> float:
    """Return the rms error with the identified model over that of feedback alone, all axes and motions."""
    size: dict[str, float] = {}
    for trial in found["trials"]:
        size[trial["controller"]] = size.get(trial["controller"], 0.0) + float(np.sum(np.square(trial["rms"])))
    return float(np.sqrt(size["model of fit.json"] / size["feedback alone"]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=NINE)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    print("robot          good of all  rms z max|z|  held-out %     moving % tracking  CPU s")
    met = []
    for name in given.names:
        line, fine = row(name, given.seeds, given.verbose)
        met.append(fine)
        print(f"{line}  {'' if fine else 'MISS'}", flush=True)
    print(f"{sum(met)} of {len(met)} robots: rms z of good parameters <= {RMS}, no |z| above {WORST}")


if __name__ == "__main__":
    main()
