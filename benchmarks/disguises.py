"""Training data offered as validation data: ``python -m benchmarks.disguises [ROBOT ...]``, all by command.

Each robot is identified from one log. Its training data, written as CSV in twelve kinds of disguise, several strengths of each,
are given to ``dynident validate`` and to ``dynident identify --validate``; none may be accepted. Where a low-pass removed the
noise that distinguishes a copy from another run, the verdict is REPEATABILITY ONLY instead of a refusal. Another run of the
same motion shows repeatability only. Ten runs of other motions must count as held out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, lfilter, resample_poly, sosfiltfilt

import dynident as di
from dynident import cli
from dynident.cli.robots import find_machine
from dynident.simulate import with_noise
from dynident.trajectory import Trajectory, random_motion

Array = NDArray[np.float64]
ROBOTS = ("arm6", "five_bar", "prr2")
RATE, SECONDS = 250.0, 20.0


@dataclass(frozen=True)
class Table:
    """What a logger writes: clock, positions, efforts, and how to read them."""

    t: Array
    q: Array
    tau: Array
    names: tuple[str, ...]
    unit: tuple[str, str, str] = ("s", "", "")  # of time, position and effort, as a schema states them

    def rows(self, rows: NDArray[np.int64] | slice, even: bool = False) -> Table:
        """Return some rows, with their stamps or with even ones."""
        t = self.t[rows]
        return replace(self, t=np.arange(t.size) / RATE if even else t, q=self.q[rows], tau=self.tau[rows])

    def through(self, q: Callable[[Array], Array], tau: Callable[[Array], Array] | None = None) -> Table:
        """Return the table after functions of its positions and of its efforts."""
        return replace(self, q=q(self.q), tau=(tau or q)(self.tau))

    def write(self, path: Path, schema: str, order: list[int], digits: int = 10) -> Path:
        """Write the CSV file and the schema beside it."""
        names = [f"{kind}{k}" for kind in "ab" for k in order]
        table = np.column_stack([self.t, self.q[:, order], self.tau[:, order]])
        form = ["%.13g", *[f"%.{digits}g"] * (table.shape[1] - 1)]
        np.savetxt(path, table, fmt=form, delimiter=",", header=",".join(["clock", *names]), comments="")
        n, units = len(order), zip(("time", "position", "effort"), self.unit, strict=True)
        columns = {"position": names[:n], "effort": names[n:], "joints": [self.names[k] for k in order]}
        words = ['time = "clock"', *(f"{key} = {json.dumps(value)}" for key, value in columns.items())]
        unit = "".join(f'{key} = "{value}"\n' for key, value in units if value)
        path.with_suffix(".toml").write_text("\n".join(words) + f"\n{schema}\n[unit]\n{unit}", encoding="utf-8")
        return path


def table_of(log: di.Log) -> Table:
    """Return the table of a log."""
    return Table(log.t, log.position, log.effort, log.joints)


# ---- robots ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Robot:
    """A robot by the name of the command line, what a schema says of its logs, its home, and a maker of logs."""

    name: str
    schema: str
    home: Array
    box: Array
    record: Callable[[di.Motion, int], Table]


def robot_of(name: str) -> Robot:
    """Return a robot with friction that its model does not have, and noise."""
    if name != "arm6":
        machine = find_machine(name)
        robot = machine.mechanism
        home = np.array([robot.home[each] for each in robot.coordinate_names])
        box = np.full(home.size, {"five_bar": 0.15, "prr2": 0.08}[name])
        noisy = with_noise(machine, random_motion(home, box, seed=1, duration=SECONDS), 0.01)
        first = noisy.simulate(random_motion(home, box, seed=1, duration=1.0)).log
        gain = np.broadcast_to(np.asarray(1.0 if first.gain is None else first.gain), len(first.joints)).tolist()
        schema = f'effort_kind = "{first.effort_kind}"\nposition_side = "{first.position_side}"\ngain = {gain}'

        def simulated(motion: di.Motion, seed: int) -> Table:
            log = noisy.simulate(motion, seed=seed).log
            return table_of(log).rows(slice(None, None, max(1, round(log.rate / RATE))))

        return Robot(name, schema, home, box, simulated)
    arm = di.examples.arm6()
    true = arm.robot.with_parameters(arm.robot.parameters.replace([arm.truth[each] for each in arm.robot.parameters.names]))

    def computed(motion: di.Motion, seed: int) -> Table:
        rng = np.random.default_rng(seed)
        tau = di.inverse_dynamics(true, motion)
        size = np.array([40.0, 60.0, 20.0, 5.0, 4.0, 2.0])
        stribeck = 0.02 * size * np.tanh(50.0 * motion.v) * (1.0 + np.exp(-((motion.v / 0.1) ** 2)))
        q = np.round((motion.q + 1e-5 * rng.normal(size=motion.q.shape)) * 1e5) / 1e5
        return Table(motion.t, q, tau + stribeck + 0.01 * size * rng.normal(size=tau.shape), true.coordinate_names)

    return Robot(
        str(arm.source), 'effort_kind = "joint_torque"', np.array([0, -0.5, 0.2, 0, 0, 0.0]), np.full(6, 0.8), computed
    )


def motion_of(curve: Trajectory, speed: float = 1.0) -> di.Motion:
    """Return the samples of a curve that is run `speed` times as fast."""
    t = np.arange(0.0, curve.duration / speed, 1.0 / RATE)
    q, v, a = curve(speed * t)
    return di.Motion(t, q, speed * v, speed**2 * a)


def hold(motion: di.Motion, seconds: float) -> di.Motion:
    """Return a motion from rest to rest with standstill before and after it."""
    n = ((round(seconds * RATE), round(seconds * RATE)), (0, 0))
    q, v, a = np.pad(motion.q, n, mode="edge"), np.pad(motion.v, n), np.pad(motion.a, n)
    return di.Motion(np.arange(len(q)) / RATE, q, v, a)


def other_motions(robot: Robot) -> dict[str, di.Motion]:
    """Return ten motions that are not the training motion."""

    def drawn(seed: int, size: float = 1.0, duration: float = SECONDS, speed: float = 1.0, harmonics: int = 5) -> di.Motion:
        curve = random_motion(robot.home, size * robot.box, seed=seed, duration=duration, harmonics=harmonics)
        return motion_of(curve, speed)

    return {
        "another plan": drawn(2),
        "short, 4 s": drawn(3, duration=4.0, harmonics=3),
        "slow, 40 s": drawn(4, duration=40.0),
        "half standstill": hold(drawn(5, duration=8.0), 4.0),
        "same path, 1.5 times as fast": drawn(1, speed=1.5),
        "same path, half as fast": drawn(1, speed=0.5),
        "same path, 10 % smaller": drawn(1, size=0.9),
        "same path, backwards": _backwards(drawn(1)),
        "more harmonics": drawn(6, harmonics=9, size=0.7),
        "several periods of another plan": motion_of(random_motion(robot.home, robot.box, 7, 8.0, 4, 3)),
    }


def _backwards(motion: di.Motion) -> di.Motion:
    return di.Motion(motion.t, motion.q[::-1].copy(), -motion.v[::-1], motion.a[::-1].copy())


# ---- disguises -------------------------------------------------------------------------------------------------------


def _smooth(cutoff: float, causal: bool = False) -> Callable[[Array], Array]:
    if causal:
        b, a = butter(1, cutoff, fs=RATE)
        return lambda x: x[0] + lfilter(b, a, x - x[0], axis=0)
    sos = butter(4, cutoff, output="sos", fs=RATE)
    return lambda x: sosfiltfilt(sos, x, axis=0)


def _rounded(x: Array, share: float) -> Array:
    step = share * np.std(x, axis=0)
    return np.asarray(np.round(x / step) * step)


def _noisy(table: Table, share: float) -> Table:
    rng = np.random.default_rng(9)
    return table.through(
        lambda q: q + 0.01 * share * np.std(q, axis=0) * rng.normal(size=q.shape),
        lambda x: x + share * np.std(x, axis=0) * rng.normal(size=x.shape),
    )


def _resampled(table: Table, up: int, down: int) -> Table:
    def to(x: Array) -> Array:
        return np.asarray(resample_poly(x - x[0], up, down, axis=0, padtype="line") + x[0])

    q = to(table.q)
    return replace(table, t=np.arange(len(q)) / RATE * down / up, q=q, tau=to(table.tau))


def _interpolated(table: Table, rate: float) -> Table:
    t = np.arange(table.t[0] + 0.3 / rate, table.t[-1], 1.0 / rate)
    q, tau = (np.stack([np.interp(t, table.t, column) for column in x.T], axis=1) for x in (table.q, table.tau))
    return replace(table, t=t, q=q, tau=tau)


def _joined(*tables: Table) -> Table:
    q, tau = (np.vstack([getattr(each, name) for each in tables]) for name in ("q", "tau"))
    return replace(tables[0], t=np.arange(len(q)) / RATE, q=q, tau=tau)


def _shuffled(table: Table, parts: int, seed: int) -> Table:
    pieces = np.array_split(np.arange(len(table.t)), parts)
    return table.rows(np.concatenate([pieces[k] for k in np.random.default_rng(seed).permutation(parts)]), even=True)


def disguises(train: Table, other: Table) -> Iterator[tuple[str, str, Table, int]]:
    """Yield kind, strength, table and significant digits."""
    n = len(train.t)
    for digits in (4, 5, 7):
        yield "fewer digits", f"{digits} digits", train, digits
    for share in (1e-3, 1e-2):
        yield "fewer digits", f"steps of {share:g} of the effort", replace(train, tau=_rounded(train.tau, share)), 10
    for shift in (100.0, -3.7, 1.7e9):
        yield "clock shifted", f"{shift:g} s", replace(train, t=train.t + shift), 16
    for scale in (0.8, 0.99, 1.01, 1.1, 2.0):
        yield "clock scaled", f"{scale:g}", replace(train, t=scale * train.t), 10
    for start, end in ((0.0, 0.5), (0.5, 1.0), (0.3, 0.55), (0.6, 0.75)):
        yield "a part", f"{start:g} to {end:g}", train.rows(np.arange(int(start * n), int(end * n)), even=True), 10
    for step in (2, 3, 5):
        yield "decimated", f"every {step}", train.rows(slice(step // 2, None, step)), 10
    yield "resampled", "2/3, polyphase", _resampled(train, 2, 3), 10
    yield "resampled", "5/4, polyphase", _resampled(train, 5, 4), 10
    yield "resampled", "177 Hz, linear", _interpolated(train, 177.0), 10
    for cutoff in (5.0, 15.0, 50.0):
        yield "filtered", f"{cutoff:g} Hz", train.through(_smooth(cutoff)), 10
    yield "filtered", "20 Hz, causal", train.through(_smooth(20.0, causal=True)), 10
    for share in (0.005, 0.02, 0.05):
        yield "noise added", f"{share:g}", _noisy(train, share), 10
    degrees = replace(train, t=1e3 * train.t, tau=1e3 * train.tau, unit=("ms", "", "milli"))
    yield "units changed", "ms, thousandths", degrees, 10
    yield "columns reordered", "backwards, renamed", train, -10
    for share in (0.2, 0.3, 0.5):  # a tenth has less path than one window of `dynident.signals.held_out` and passes
        part = train.rows(slice(n // 4, n // 4 + int(share * n)))
        yield "mixed with new data", f"{share:g} of the training log", _joined(other, part), 10
    for parts in (2, 4, 7):
        yield "periods exchanged", f"{parts} parts", _shuffled(train, parts, parts), 10
    yield "several at once", "played backwards", train.rows(slice(None, None, -1), even=True), 10
    yield "several at once", "two halves exchanged, three digits", _shuffled(train, 2, 2), 3
    both = _noisy(train.rows(slice(None, None, 2)), 0.01)
    yield "several at once", "decimated, noisy, clock 7 % slow and shifted", replace(both, t=1.07 * both.t + 12.0), 6
    smooth = _noisy(train.through(_smooth(30.0)).rows(slice(None, None, 2)), 0.01)
    yield "several at once", "filtered, decimated, noisy, shifted", replace(smooth, t=smooth.t + 12.0), 6
    yield "several at once", "filtered, decimated, noisy, clock 7 % slow", replace(smooth, t=1.07 * smooth.t), 6
    yield "several at once", "filtered, noisy, backwards", smooth.rows(slice(None, None, -1), even=True), 6
    drifting = train.t + 0.03 * train.t**2 / (2.0 * train.t[-1])
    yield "several at once", "clock drifts by 3 %, efforts 3 % larger", replace(train, t=drifting, tau=1.03 * train.tau), 10
    both = _noisy(train.rows(slice(None, None, 2)), 0.01)
    yield "several at once", "decimated, noisy, shifted", replace(both, t=both.t + 5.0), 6
    both = _joined(_shuffled(_noisy(train, 0.01), 3, 1), other)
    yield "several at once", "noisy, exchanged, mixed", both, 6


# ---- the commands ----------------------------------------------------------------------------------------------------


def verdict(*words: str) -> str:
    """Return the headline of a verdict with its failed checks, or "refused" with the sentence."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            cli.run([*words, "--json"])
    except di.DynidentError as error:
        return f"refused: {error}"
    found = json.loads(printed.getvalue())
    found = found.get("verdict", found)
    failed = [check["name"] for check in found["checks"] if not check["ok"]]
    return "VALIDATED" if found["validated"] else "REPEATABILITY ONLY" if "new_motion" in failed else f"failed: {failed}"


def accepted(text: str) -> bool:
    """Return whether a verdict says that the model is validated."""
    return text == "VALIDATED"


def is_training(text: str) -> bool:
    """Return whether the log was recognised as training data."""
    return "training data" in text or "was used for the fit" in text


def tried(name: str, folder: Path, show: bool) -> tuple[int, int, int]:
    """Try all disguises and runs of one robot; count disguises, accepted ones and rejected genuine runs."""
    robot = robot_of(name)
    order = list(range(10))

    def write(table: Table, stem: str, digits: int = 10) -> tuple[str, ...]:
        own = order[: table.q.shape[1]][:: 1 if digits > 0 else -1]
        schema = robot.schema
        if table.unit[2] == "milli":
            kind = tomllib.loads(schema)["effort_kind"]
            table = replace(table, unit=("ms", "", "mA" if kind == "motor_current" else "mNm"))
        path = table.write(folder / f"{name}_{stem}.csv", schema, own, abs(digits))
        return str(path), str(path.with_suffix(".toml"))

    plan = motion_of(random_motion(robot.home, robot.box, seed=1, duration=SECONDS))
    motions = other_motions(robot)
    train, other = robot.record(plan, 1), robot.record(motions["another plan"], 3)
    log, schema = write(train, "train")
    out = str(folder / f"{name}_out")
    first = verdict("identify", robot.name, log, "--schema", schema, "--hold-out", "0", "-o", out, "-q")
    print(f"{name}: identified from {len(train.t)} samples; {first or 'no verdict'}", flush=True)
    count = wrong = rejected = 0
    for kind, strength, table, digits in disguises(train, other):
        held, schema = write(table, "held", digits)
        said = verdict("validate", f"{out}/fit.json", held, "--schema", schema)
        bad = accepted(said) or not is_training(said)
        count, wrong = count + 1, wrong + accepted(said)
        if bad or show:
            word = "ACCEPTED" if accepted(said) else "not validated" if bad else "refused"
            print(f"  {word}  {kind}, {strength}: {said[:150]}", flush=True)
    again, schema = write(robot.record(plan, 2), "again")
    said = verdict("validate", f"{out}/fit.json", again, "--schema", schema)
    wrong += accepted(said)
    print(f"  another run of the plan: {said[:150]}", flush=True)
    for seed, (label, motion) in enumerate(motions.items()):
        held, schema = write(robot.record(motion, 20 + seed), "other")
        said = verdict("validate", f"{out}/fit.json", held, "--schema", schema)
        bad = is_training(said) or said.startswith("REPEAT")
        rejected += bad
        print(f"  {'REJECTED' if bad else 'held out'}  {label}: {said[:150]}", flush=True)
    # The same question through identify, with one disguise of every kind.
    seen = set[str]()
    for kind, strength, table, digits in disguises(train, other):
        if kind not in seen:
            seen.add(kind)
            (log, schema), (held, _) = write(train, "train", digits if digits < 0 else 10), write(table, "held", digits)
            if table.unit == train.unit:
                said = verdict("identify", robot.name, log, "--validate", held, "--schema", schema, "-o", out, "-q")
                count, wrong = count + 1, wrong + accepted(said)
                if accepted(said) or not is_training(said) or show:
                    print(f"  identify --validate, {kind}, {strength}: {said[:150]}", flush=True)
    return count, wrong, rejected


def main() -> int:
    """Print what was accepted and rejected; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--show", action="store_true", help="print every disguise")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    bad = 0
    for name in options.robots:
        with tempfile.TemporaryDirectory() as folder:
            count, wrong, rejected = tried(name, Path(folder), options.show)
        bad += wrong + rejected
        print(f"{name}: {count} disguised logs, {wrong} accepted; 10 other motions, {rejected} rejected", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
