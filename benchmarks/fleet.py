"""Fleets on two processes: one long log (--samples), and many robots with five faults (--robots).

    python -m benchmarks.fleet --samples 1e6,1e7,1e8 --robots 0     one long log: time per sample, memory, share of Dask
    python -m benchmarks.fleet --samples "" --robots 1000           1 000 robots x 3 logs: faults, false alarms, prior, kills
    python -m benchmarks.fleet --samples "" --robots 1000 --motion random
    python -m benchmarks.fleet --samples 1e5 --bare 1e5 --robots 12 --kills 1 --every 5     everything, small

On two free cores a sample of a long log takes about 7 us of one core, with and without Dask (6 GB of disk for 1e8), and a
robot about half a second of one core, twice (once with killed workers), and 4 MB of disk. Progress goes to stderr.

Logs are motions of the 6-axis arm with computed torques and noise. Robots of a fleet perform motions of `dynident.design`
within the limits of the description (--motion designed: three motions common to all robots, one for each log), or random
motions, different for each log and beyond these limits (--motion random). Times are processor seconds of all processes of a
run after imports and compilation; the share of Dask refers to the same work on a pool of two processes, without Dask.
Dask's processes use time even while a busy machine lets them wait: this idle cost per second is measured, and subtracted for
the seconds that the run waited for other programs (both are reported).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks import arms
from benchmarks.cases import Result
from dynident.mechanics import inverse_dynamics
from dynident_lab.fleet import FleetResult, FleetType, connect, identify, questions

Array = NDArray[np.float64]

CUTOFF, BAND = 17.0, 8.0  # Hz: the motion ends at 0.5 Hz
RATE = 500.0  # Hz, of the logs of a fleet
PERIOD = 10  # s of the motion
GROUP = 130_000  # rows of a Parquet row group: 13 motions
NOISES = 10  # row groups with separate noise; later ones repeat them
SPREAD, FRICTION = 0.01, 0.02  # relative spread of bodies and of joint terms from robot to robot
DESIGNS, STARTS, STEPS = 3, 2, 40  # designed motions, one for each log of a robot; starts of each and steps of a start
MOTIONS = ("designed", "random")
CAD = 0.15  # relative error of the description, common to all robots
FAULTS = {1: ("fc_joint2", 1.3), 2: ("fv_joint3", 1.25), 3: ("m_link3", 1.15), 4: ("fc_joint5", 1.2), 5: ("ia_joint4", 1.3)}


def motion(samples: int, rate: float, seed: int) -> di.Motion:
    """Return sums of five harmonics of 0.1 Hz: periodic, so that copies join without a seam."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / rate
    w = 2 * np.pi / PERIOD * np.arange(1, 6)
    amplitude, phase = rng.normal(size=(6, 5)) * 0.5, rng.uniform(0, 2 * np.pi, (6, 5))
    angle = t[:, None, None] * w + phase
    q, v = np.sum(amplitude * np.sin(angle), axis=2), np.sum(amplitude * w * np.cos(angle), axis=2)
    return di.Motion(t, q, v, np.sum(-amplitude * w**2 * np.sin(angle), axis=2))


@cache
def designed() -> tuple[di.Motion, ...]:
    """Return optimal motions of 20 s at 500 Hz for the base parameters within the limits of the description."""
    robot, found = described(arms.arm()), []
    for seed in range(DESIGNS):
        progress("designed motions", seed + 1, DESIGNS)
        best = di.design(robot, noise=sensor_noise(), starts=STARTS, seed=seed, iterations=STEPS, workers=1)
        found.append(best.plan(repetitions=2).motion(RATE))
    return tuple(found)


def moved(kind: str, seconds: float, seed: int, rate: float = RATE) -> di.Motion:
    """Return the motion of a log: designed or random."""
    if kind == "random":
        return motion(int(rate * seconds), rate, seed)
    own, at = designed()[seed % DESIGNS], slice(0, int(RATE * seconds), round(RATE / rate))
    return di.Motion(own.t[at], own.q[at], own.v[at], own.a[at])


def sensor_noise() -> Array:
    """Return the standard deviation of the torque sensors of a fleet [N m]."""
    return 0.2 * np.array(arms.NOISE)


def progress(what: str, done: int, of: int) -> None:
    """Report every tenth of the progress on stderr."""
    if done == of or 10 * done // of > 10 * (done - 1) // of:
        print(f"  {time.strftime('%H:%M:%S')} {what}: {done} of {of}", file=sys.stderr, flush=True)


# ---- one long log --------------------------------------------------------------------------------------------------------


def long_log(robot: di.Mechanism, path: Path, samples: int) -> Path:
    """Write a Parquet log of any length at 1 kHz, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    one = motion(PERIOD * 1000, 1000.0, 0)
    torque = inverse_dynamics(robot, one, arms.truth(robot))
    names = [*(f"q_{joint}" for joint in robot.coordinate_names), *(f"tau_{joint}" for joint in robot.coordinate_names)]
    schema = pa.schema([("t", pa.float64()), *((name, pa.float32()) for name in names)])
    rng, at, groups = np.random.default_rng(1), np.arange(GROUP) % len(one), []
    for _ in range(min(NOISES, -(-samples // GROUP))):
        q = one.q[at] + 1e-5 * rng.standard_normal((GROUP, 6), dtype=np.float32)
        tau = torque[at] + np.array(arms.NOISE, dtype=np.float32) * rng.standard_normal((GROUP, 6), dtype=np.float32)
        groups.append([*q.T.astype(np.float32), *tau.T.astype(np.float32)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for number, first in enumerate(range(0, samples, GROUP)):
            rows = min(GROUP, samples - first)
            t = np.arange(first, first + rows) / 1000.0
            writer.write_table(pa.table([t, *(x[:rows] for x in groups[number % len(groups)])], schema=schema))
    return path


def usage() -> tuple[float, float]:
    """Return processor seconds and peak memory [MB] of a process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return time.process_time(), next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


@dataclass(frozen=True)
class Cost:
    """Processor seconds and seconds of a run, peak memory of a worker [MB], processor seconds per second of the idle engine."""

    processor: float
    wall: float
    peak: float = 0.0
    idle: float = 0.0

    @property
    def undisturbed(self) -> float:
        """Processor seconds without the idle use of the engine while its two processes waited for other programs."""
        return self.processor - self.idle * max(0.0, self.wall - self.processor / 2)


def on_dask(robot: di.Mechanism, path: Path, folder: Path) -> tuple[Cost, FleetResult, str]:
    """Return the cost of a run on two Dask processes, its result, and the cost of starting them."""
    begun, own = time.perf_counter(), time.process_time()
    with connect(workers=2) as client:
        begun, own = time.perf_counter() - begun, time.process_time() - own
        started = own + sum(seconds for seconds, _ in client.run(usage).values())
        warm_up(robot, client, folder)
        warmed = sum(seconds for seconds, _ in client.run(usage).values())
        told = (
            f"before it: start of Dask {started:.1f} processor seconds ({begun:.1f} s), imports and machine code {warmed:.1f}"
        )
        idle = -_processor(client), time.perf_counter()
        time.sleep(5.0)
        share = (idle[0] + _processor(client)) / (time.perf_counter() - idle[1])
        before, wall = _processor(client), time.perf_counter()
        found = identify(
            robot, [entry(path)], folder, client=client, reading=READING, cutoff=CUTOFF, band=BAND, progress=progress
        )
        wall = time.perf_counter() - wall
        cost = Cost(_processor(client) - before, wall, max(peak for _, peak in client.run(usage).values()), share)
    return cost, found, told


def _processor(client: Any) -> float:
    """Return the processor seconds of the client, which contains the scheduler, and of all workers."""
    return time.process_time() + sum(seconds for seconds, _ in client.run(usage).values())


def without_dask(robot: di.Mechanism, path: Path, folder: Path) -> Cost:
    """Return the cost of the same work on a pool of two processes."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        warm_up(robot, pool, folder)
        before, wall = sum(_pool_seconds(pool)) + time.process_time(), time.perf_counter()
        identify(robot, [entry(path)], folder, client=pool, reading=READING, cutoff=CUTOFF, band=BAND)
        wall = time.perf_counter() - wall
        return Cost(time.process_time() + sum(_pool_seconds(pool)) - before, wall)


def warm_up(robot: di.Mechanism, client: Any, folder: Path) -> None:
    """Import and compile in every process, to exclude this time from the work."""
    rows = []
    for k in range(6):
        path = folder.parent / f"warm{k}.npz"
        recorded(robot, arms.truth(robot), "random", 20.0, k).save(path)
        rows.append({"serial": f"W{k}", "log": str(path)})
    identify(robot, rows, client=client, cutoff=CUTOFF, band=BAND)


def _seconds(_: int) -> tuple[int, float]:
    time.sleep(0.05)
    return os.getpid(), time.process_time()


def _pool_seconds(pool: ProcessPoolExecutor) -> list[float]:
    return list(dict(pool.map(_seconds, range(16))).values())


READING = {"effort": "joint_torque"}


def entry(path: Path) -> dict[str, str]:
    return {"serial": "one", "log": str(path)}


def scaling(sizes: list[int], bare: int, folder: Path) -> Iterator[Result]:
    """One log of any length: time per sample, memory, linearity in the samples, and the share of Dask."""
    robot, seconds = arms.arm(), []
    for samples in sizes:
        name = f"1e{np.log10(samples):.0f} samples"
        path = long_log(robot, folder / f"{samples}.parquet", samples)
        cost, found, told = on_dask(robot, path, folder / f"dask{samples}")
        seconds.append(cost.undisturbed)
        size, rows = path.stat().st_size / 1e6, found.robots[0].rows
        text = f"{cost.processor:.1f} processor seconds, {cost.wall:.1f} s here, {rows} rows, {size:.0f} MB"
        yield Result(f"{name}, per sample", 1e6 * cost.undisturbed / samples, "us", None, f"{text}; {told}")
        yield Result(f"{name}, peak memory of a worker", cost.peak, "MB", 500.0, "")
        if samples <= bare:
            other = without_dask(robot, path, folder / f"bare{samples}")
            text = (
                f"{other.processor:.1f} processor seconds without Dask in {other.wall:.1f} s, with it {cost.processor:.1f} in "
                f"{cost.wall:.1f} s, of which idle {100 * cost.idle:.1f} % of a core: {cost.undisturbed:.1f}"
            )
            yield Result(f"{name}, speed without Dask kept", other.processor / cost.undisturbed, "x", 0.85, text)
        path.unlink()
    if len(sizes) > 2:
        away, text = line(np.array(sizes, float), np.array(seconds))
        yield Result("largest distance of a run from a line", away, "of", 0.15, text)


def line(n: Array, t: Array) -> tuple[float, str]:
    """Return the largest relative distance of times from the line a + b n fitted by least squares of relative distances."""
    (a, b), *_ = np.linalg.lstsq(np.column_stack([1.0 / t, n / t]), np.ones(len(t)), rcond=None)
    return float(np.max(np.abs((a + b * n) / t - 1.0))), f"{a:.2f} s + {1e6 * b:.2f} us per sample"


# ---- many robots ---------------------------------------------------------------------------------------------------------


def nominal(robot: di.Mechanism) -> Array:
    """Return the mean parameters of the robots, which differ from the description."""
    rng = np.random.default_rng(99)
    phi = arms.truth(robot)
    bodies = robot.tree.inertias.size
    # One factor per body keeps it physically consistent; joint terms are not described.
    phi[:bodies] *= np.repeat(1.0 + CAD * rng.uniform(-1.0, 1.0, bodies // 10), 10)
    return phi


def drawn(robot: di.Mechanism, number: int) -> Array:
    rng = np.random.default_rng(10_000 + number)
    phi, bodies = nominal(robot), robot.tree.inertias.size
    phi[:bodies] *= np.repeat(1.0 + SPREAD * rng.standard_normal(bodies // 10), 10)
    phi[bodies:] *= 1.0 + FRICTION * rng.standard_normal(phi.size - bodies)
    if number in FAULTS:
        name, factor = FAULTS[number]
        phi[robot.parameters.names.index(name)] *= factor
    return phi


def recorded(robot: di.Mechanism, phi: Array, kind: str, seconds: float, seed: int) -> di.Log:
    """Return a log at 500 Hz with noise of encoders and torque sensors."""
    own, rng = moved(kind, seconds, seed), np.random.default_rng(seed)
    effort = inverse_dynamics(robot, own, phi)
    effort = effort + sensor_noise() * rng.standard_normal(effort.shape)
    position = own.q + 1e-5 * rng.standard_normal(own.q.shape)
    return di.Log(t=own.t, joints=robot.coordinate_names, position=position, effort=effort, effort_kind="joint_torque")


def described(robot: di.Mechanism) -> di.Mechanism:
    """Return the arm as described: bodies of the URDF, joint terms of zero."""
    phi = robot.parameters.values.copy()
    phi[robot.tree.inertias.size :] = 0.0
    return robot.with_parameters(robot.parameters.replace(phi))


def write_logs(robot: di.Mechanism, folder: Path, robots: int, kind: str, logs: int = 3) -> list[dict[str, str]]:
    rows = []
    for number in range(1, robots + 1):
        phi = drawn(robot, number)
        for k in range(logs):
            path = folder / f"R{number:04d}_{k}.npz"
            if not path.exists():  # from an earlier run in the same folder
                recorded(robot, phi, kind, 20.0, 100 * number + k).save(path)
            rows.append({"serial": f"R{number:04d}", "date": f"2026-{k + 1:02d}-15", "log": str(path)})
        progress("robots whose logs are written", number, robots)
    return rows


class Killer(threading.Thread):
    """Kills a worker of a local cluster every `every` seconds, `most` times."""

    def __init__(self, client: Any, every: float, most: int) -> None:
        super().__init__(daemon=True)
        self.client, self.every, self.most, self.killed, self.ended = client, every, most, 0, threading.Event()

    def run(self) -> None:
        """Kill workers in turn."""
        while self.killed < self.most and not self.ended.wait(self.every):
            living = [worker.pid for worker in self.client.cluster.workers.values() if worker.pid]
            if living:
                os.kill(living[self.killed % len(living)], signal.SIGKILL)
                self.killed += 1


def same(one: FleetResult, other: FleetResult) -> bool:
    return all(
        a.serial == b.serial and a.rows == b.rows and a.values.tobytes() == b.values.tobytes()
        for a, b in zip(one.robots, other.robots, strict=True)
    )


def many(robots: int, kills: int, every: float, kind: str, parent: Path) -> Iterator[Result]:
    """Many robots with five faults: killed workers, added logs, data transfer, common prior."""
    robot, folder = described(arms.arm()), parent / kind
    folder.mkdir(exist_ok=True)
    rows = write_logs(robot, folder, robots, kind)
    name = f"{robots} robots x 3 {kind} logs"
    with connect(workers=2) as client:
        wall = time.perf_counter()
        found = identify(robot, rows, folder / "out", client=client, cutoff=CUTOFF, band=BAND, progress=progress)
        wall = time.perf_counter() - wall
        sent = sum(client.run(_sent).values())
    answers = found.type(robot.name)
    for own in (answers, questions(found.robots, di.base_parameters(robot), 0.05)):
        yield from faults(name, own)
    moved = (found.counters["bytes_up"] + found.counters["bytes_down"]) / len(rows) / 1e3
    yield from [
        Result(f"{name}: time", wall, "s", None, f"{found.counters['worker_seconds']:.0f} worker seconds for the logs"),
        Result(
            f"{name}: moved per log",
            moved,
            "kB",
            1000.0,
            f"Dask counts {sent / len(rows) / 1e3:.0f} kB sent by workers per log",
        ),
        prior(robot, answers.population, kind),
    ]
    with connect(workers=2) as client:
        killer = Killer(client, every, kills)
        killer.start()
        again = identify(robot, rows, folder / "killed", client=client, cutoff=CUTOFF, band=BAND, progress=progress)
        killer.ended.set()
    yield (
        Result(
            f"{name}: workers killed",
            float(killer.killed),
            "x",
            float(kills),
            f"one every {every:g} s; {'the same bits' if same(found, again) else 'OTHER BITS'}",
        )
    )
    extra = []
    for k in range(10):
        path = folder / f"R{k + 1:04d}_new.npz"
        recorded(robot, drawn(robot, k + 1), kind, 20.0, 900_000 + k).save(path)
        extra.append({"serial": f"R{k + 1:04d}", "date": "2026-06-15", "log": str(path)})
    with connect(workers=2) as client:
        later = identify(robot, [*rows, *extra], folder / "out", client=client, cutoff=CUTOFF, band=BAND, progress=progress)
    yield (
        Result(
            f"{name}: logs read after adding 10", later.counters["logs_read"], "of", 10.0, f"{later.counters['seconds']:.1f} s"
        )
    )


def faults(name: str, answers: FleetType) -> Iterator[Result]:
    """Detected faults, false alarms, and smallest detectable changes."""
    serials = {f"R{number:04d}": fault for number, fault in FAULTS.items()}
    hit = {d.serial for d in answers.deviations} & set(serials)
    right = sum(
        d.parameter == serials[d.serial][0] or serials[d.serial][0] in d.alike for d in answers.deviations if d.serial in hit
    )
    false = {d.serial for d in answers.deviations} - set(serials)
    z = ", ".join(f"{fault} {answers.scores[s]:.2f}{'' if s in hit else ' MISSED'}" for s, (fault, _) in serials.items())
    text = f"{right} told in their own parameter, limit {answers.limit:.2f}, z {z}"
    yield Result(f"{name}: faults found at a rate of {answers.false_alarms}", float(len(hit)), "x", 5.0, text)
    yield Result(f"{name}: false alarms at that rate", float(len(false)), "of", 0.0, f"{len(answers.watched)} robots to watch")
    smallest = dict(zip(answers.parameters, answers.detectable_relative, strict=True))
    share = [100 * smallest[fault] for fault, _ in FAULTS.values()]
    text = ", ".join(f"{fault} {own:.1f} %" for (fault, _), own in zip(FAULTS.values(), share, strict=True))
    yield Result(f"{name}: largest of the changes named 9 times of 10 at that rate", max(share), "%", None, text)


def _sent(dask_worker: Any) -> float:
    return float(dask_worker.transfer_outgoing_bytes_total)


def prior(robot: di.Mechanism, population: Any, kind: str) -> Result:
    """Held-out error of ten new robots with 2 s of data: ratio of description prior to fleet prior."""
    ratios = []
    base = di.base_parameters(robot)
    for k in range(10):
        phi = drawn(robot, 5000 + k)
        train = di.Regression.from_log(robot, recorded(robot, phi, kind, 2.0, 700 + k), base, cutoff=CUTOFF, band=BAND)
        test = di.Regression.from_log(robot, recorded(robot, phi, kind, 20.0, 800 + k), base, cutoff=CUTOFF, band=BAND)
        errors = []
        for known in (None, di.Knowledge(population=population)):
            beta = di.MAP(known=known).fit(train).coef_
            wrong = sum(group.residual(beta) for group in test.groups)
            errors.append(np.sqrt(wrong / sum(group.effort_square for group in test.groups)))
        ratios.append(errors[0] / errors[1])
    text = f"median of 10 robots, {min(ratios):.1f} to {max(ratios):.1f}"
    return Result(
        "robot with 2 s of data: error with the description over error with the fleet", float(np.median(ratios)), "x", 2.0, text
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", default="1e6,1e7", help="lengths of one log, by commas; empty for none")
    parser.add_argument("--bare", default="1e7", help="longest log that is also run without Dask")
    parser.add_argument("--robots", type=int, default=100, help="robots of the fleet; 0 for none")
    parser.add_argument("--motion", choices=MOTIONS, default="designed", help="how the robots of the fleet move")
    parser.add_argument("--kills", type=int, default=10, help="workers killed during the second run of the fleet")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two kills")
    parser.add_argument("--folder", default=None, help="where to work; a temporary folder if not given")
    given = parser.parse_args()
    folder = Path(given.folder or tempfile.mkdtemp(prefix="fleet-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        sizes = [int(float(x)) for x in given.samples.split(",") if x]
        for r in chain(
            scaling(sizes, int(float(given.bare)), folder) if sizes else (),
            many(given.robots, given.kills, given.every, given.motion, folder) if given.robots else (),
        ):
            goal = "" if r.target is None else f"  goal {r.target:g}  {'reached' if r.passed else 'MISSED'}"
            print(f"{r.what:<72} {r.value:>9.4g} {r.unit:<3}{goal}  {r.detail}", flush=True)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
