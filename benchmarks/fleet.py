"""Fleets: ``python -m benchmarks.fleet [--samples 1e6,1e7] [--robots 100] [--kills 10] [--folder FOLDER]``.

Logs are one motion of the 6-axis arm with computed torques and noise. Times are processor seconds of all processes of a run,
which a busy machine does not stretch; the share of Dask is that of the same work on a pool of two processes, without Dask.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks import arms
from benchmarks.cases import Result
from dynident.fleet import FleetResult, connect, identify
from dynident.mechanics import inverse_dynamics

Array = NDArray[np.float64]

CUTOFF, BAND = 17.0, 8.0  # Hz: the motion ends at 0.5 Hz
PERIOD = 10  # s of the motion
GROUP = 1 << 17  # rows of a Parquet row group
SPREAD, FRICTION = 0.01, 0.02  # relative spread of bodies and of joint terms from robot to robot
CAD = 0.15  # relative error of the description, which all robots share
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


# ---- one long log --------------------------------------------------------------------------------------------------------


def long_log(robot: di.Mechanism, path: Path, samples: int) -> Path:
    """Write a Parquet log of any length at 1 kHz, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    one = motion(PERIOD * 1000, 1000.0, 0)
    torque = inverse_dynamics(robot, one, arms.truth(robot))
    names = [*(f"q_{joint}" for joint in robot.coordinate_names), *(f"tau_{joint}" for joint in robot.coordinate_names)]
    schema = pa.schema([("t", pa.float64()), *((name, pa.float32()) for name in names)])
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, samples, GROUP):
            index = np.arange(first, min(first + GROUP, samples))
            at = index % len(one)
            q = one.q[at] + 1e-5 * rng.standard_normal((index.size, 6), dtype=np.float32)
            tau = torque[at] + np.array(arms.NOISE, dtype=np.float32) * rng.standard_normal((index.size, 6), dtype=np.float32)
            columns = [index / 1000.0, *q.T.astype(np.float32), *tau.T.astype(np.float32)]
            writer.write_table(pa.table(columns, schema=schema))
    return path


def usage() -> tuple[float, float]:
    """Return processor seconds and peak memory [MB] of a process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return time.process_time(), next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def on_dask(robot: di.Mechanism, path: Path, folder: Path) -> tuple[float, float, float, FleetResult]:
    """Return processor seconds, wall seconds, peak memory of a worker, and the result on two Dask processes."""
    with connect(workers=2) as client:
        warm_up(robot, client, folder)
        before, wall, own = client.run(usage), time.perf_counter(), time.process_time()
        found = identify(robot, [entry(path)], folder, client=client, reading=READING, cutoff=CUTOFF, band=BAND)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        after = client.run(usage)
    seconds = own + sum(after[a][0] - before[a][0] for a in after if a in before)
    return seconds, wall, max(peak for _, peak in after.values()), found


def without_dask(robot: di.Mechanism, path: Path, folder: Path) -> tuple[float, float]:
    """Return processor and wall seconds of the same work on a pool of two processes."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        warm_up(robot, pool, folder)
        first = sum(_pool_seconds(pool))
        wall, own = time.perf_counter(), time.process_time()
        identify(robot, [entry(path)], folder, client=pool, reading=READING, cutoff=CUTOFF, band=BAND)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        seconds = own + sum(_pool_seconds(pool)) - first
    return seconds, wall


def warm_up(robot: di.Mechanism, client: Any, folder: Path) -> None:
    """Let every process import and compile what it needs: that is not the work."""
    rows = []
    for k in range(6):
        path = folder.parent / f"warm{k}.npz"
        recorded(robot, arms.truth(robot), 20.0, k).save(path)
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


def scaling(sizes: list[int], folder: Path) -> Iterator[Result]:
    """One log of any length: time per sample, memory, and the share of Dask."""
    robot, per = arms.arm(), []
    for samples in sizes:
        path = long_log(robot, folder / f"{samples}.parquet", samples)
        seconds, wall, peak, found = on_dask(robot, path, folder / f"dask{samples}")
        rows = found.robots[0].rows
        per.append(1e6 * seconds / samples)
        text = f"{seconds:.1f} processor seconds, {wall:.1f} s on this machine, {rows} rows, {path.stat().st_size / 1e6:.0f} MB"
        yield Result(f"1e{np.log10(samples):.0f} samples, per sample", per[-1], "us", None, text)
        yield Result(f"1e{np.log10(samples):.0f} samples, peak memory of a worker", peak, "MB", 500.0, "")
        if samples == sizes[-1] or samples == 10**7:
            bare, bare_wall = without_dask(robot, path, folder / f"bare{samples}")
            detail = f"{bare:.1f} processor seconds without Dask; wall {bare_wall:.1f} s against {wall:.1f} s"
            yield Result(f"1e{np.log10(samples):.0f} samples, speed without Dask kept", bare / seconds, "x", 0.85, detail)
        path.unlink()
    if len(per) > 1:
        start = (per[-1] * sizes[-1] - per[-2] * sizes[-2]) / (sizes[-1] - sizes[-2])  # what a further sample costs
        yield Result("further samples over those of the largest run", start / per[-1], "of", 1.15, "1 is a line")


# ---- many robots ---------------------------------------------------------------------------------------------------------


def nominal(robot: di.Mechanism) -> Array:
    """Return the parameters that robots scatter about: another robot than the description says."""
    rng = np.random.default_rng(99)
    phi = arms.truth(robot)
    bodies = robot.tree.inertias.size
    # One factor for each body keeps it possible; joint terms are not described at all.
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


def recorded(robot: di.Mechanism, phi: Array, seconds: float, seed: int) -> di.Log:
    """Return a log at 500 Hz with noise of encoders and torque sensors."""
    own, rng = motion(int(500 * seconds), 500.0, seed), np.random.default_rng(seed)
    effort = inverse_dynamics(robot, own, phi)
    effort = effort + 0.2 * np.array(arms.NOISE) * rng.standard_normal(effort.shape)
    position = own.q + 1e-5 * rng.standard_normal(own.q.shape)
    return di.Log(t=own.t, joints=robot.coordinate_names, position=position, effort=effort, effort_kind="joint_torque")


def described(robot: di.Mechanism) -> di.Mechanism:
    """Return the arm as its description has it: bodies of the URDF, joint terms of zero."""
    phi = robot.parameters.values.copy()
    phi[robot.tree.inertias.size :] = 0.0
    return robot.with_parameters(robot.parameters.replace(phi))


def write_logs(robot: di.Mechanism, folder: Path, robots: int, logs: int = 3) -> list[dict[str, str]]:
    rows = []
    for number in range(1, robots + 1):
        phi = drawn(robot, number)
        for k in range(logs):
            path = folder / f"R{number:04d}_{k}.npz"
            recorded(robot, phi, 20.0, 100 * number + k).save(path)
            rows.append({"serial": f"R{number:04d}", "date": f"2026-{k + 1:02d}-15", "log": str(path)})
    return rows


class Killer:
    """Kills a worker of a client after every so many logs."""

    def __init__(self, client: Any, every: int, most: int) -> None:
        self.client, self.every, self.most, self.killed = client, every, most, 0

    def __call__(self, what: str, done: int, of: int) -> None:
        """Count."""
        if what == "logs" and self.killed < self.most and done >= (self.killed + 1) * self.every:
            pids = list(self.client.run(os.getpid).values())
            if pids:
                os.kill(pids[self.killed % len(pids)], signal.SIGKILL)
                self.killed += 1


def same(one: FleetResult, other: FleetResult) -> bool:
    return all(
        a.serial == b.serial and a.rows == b.rows and a.values.tobytes() == b.values.tobytes()
        for a, b in zip(one.robots, other.robots, strict=True)
    )


def many(robots: int, kills: int, folder: Path) -> Iterator[Result]:
    """Many robots with five faults; workers killed; logs added; what moves; the shared prior."""
    robot = described(arms.arm())
    rows = write_logs(robot, folder, robots)
    name = f"{robots} robots x 3 logs"
    with connect(workers=2) as client:
        wall = time.perf_counter()
        found = identify(robot, rows, folder / "out", client=client, cutoff=CUTOFF, band=BAND)
        wall = time.perf_counter() - wall
        sent = sum(client.run(_sent).values())
    answers = found.type(robot.name)
    serials = {f"R{number:04d}": fault for number, fault in FAULTS.items()}
    hit = {d.serial for d in answers.deviations} & set(serials)
    right = sum(
        d.parameter == serials[d.serial][0] or serials[d.serial][0] in d.alike for d in answers.deviations if d.serial in hit
    )
    false = {d.serial for d in answers.deviations} - set(serials)
    moved = (found.counters["bytes_up"] + found.counters["bytes_down"]) / len(rows) / 1e3
    yield from [
        Result(
            f"{name}: faults found",
            float(len(hit)),
            "x",
            5.0,
            f"{right} told in their own parameter, limit {answers.limit:.2f}",
        ),
        Result(f"{name}: false alarms", float(len(false)), "of", 0.0, f"at a rate of {answers.false_alarms}"),
        Result(f"{name}: time", wall, "s", None, f"{found.counters['worker_seconds']:.0f} worker seconds for the logs"),
        Result(
            f"{name}: moved per log",
            moved,
            "kB",
            1000.0,
            f"Dask's own counter of what workers sent: {sent / len(rows) / 1e3:.0f} kB",
        ),
        prior(robot, answers.population),
    ]
    with connect(workers=2) as client:
        killer = Killer(client, max(1, len(rows) // (kills + 1)), kills)
        again = identify(robot, rows, folder / "killed", client=client, cutoff=CUTOFF, band=BAND, progress=killer)
    yield (
        Result(
            f"{name}: workers killed",
            float(killer.killed),
            "x",
            float(kills),
            "the same bits" if same(found, again) else "OTHER BITS",
        )
    )
    extra = []
    for k in range(10):
        path = folder / f"R{k + 1:04d}_new.npz"
        recorded(robot, drawn(robot, k + 1), 20.0, 900_000 + k).save(path)
        extra.append({"serial": f"R{k + 1:04d}", "date": "2026-06-15", "log": str(path)})
    with connect(workers=2) as client:
        later = identify(robot, [*rows, *extra], folder / "out", client=client, cutoff=CUTOFF, band=BAND)
    yield (
        Result(
            f"{name}: logs read after adding 10", later.counters["logs_read"], "of", 10.0, f"{later.counters['seconds']:.1f} s"
        )
    )


def _sent(dask_worker: Any) -> float:
    return float(dask_worker.transfer_outgoing_bytes_total)


def prior(robot: di.Mechanism, population: Any) -> Result:
    """Held-out error of ten new robots with 2 s of data: the description as belief over the fleet's."""
    ratios = []
    base = di.base_parameters(robot)
    for k in range(10):
        phi = drawn(robot, 5000 + k)
        train = di.Regression.from_log(robot, recorded(robot, phi, 2.0, 700 + k), base, cutoff=CUTOFF, band=BAND)
        test = di.Regression.from_log(robot, recorded(robot, phi, 20.0, 800 + k), base, cutoff=CUTOFF, band=BAND)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", default="1e6,1e7", help="lengths of one log, by commas; empty for none")
    parser.add_argument("--robots", type=int, default=100, help="robots of the fleet; 0 for none")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--folder", default=None, help="where to work; a temporary folder if not given")
    given = parser.parse_args()
    folder = Path(given.folder or tempfile.mkdtemp(prefix="fleet-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        sizes = [int(float(x)) for x in given.samples.split(",") if x]
        for r in chain(
            scaling(sizes, folder) if sizes else (), many(given.robots, given.kills, folder) if given.robots else ()
        ):
            goal = "" if r.target is None else f"  goal {r.target:g}  {'reached' if r.passed else 'MISSED'}"
            print(f"{r.what:<72} {r.value:>9.4g} {r.unit:<3}{goal}  {r.detail}", flush=True)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
