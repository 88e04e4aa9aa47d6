"""The clock of a virtual robot in real time, by a clock of the test: what it does after a stall of its simulation."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from warm_robots import balanced_machine

from dynident_lab.link import Emulator, emulator, plant
from dynident_lab.link.plant import settling_periods

PERIOD = 0.004


class Clock:
    """A host whose time passes only where somebody waits, or where the simulation stalls."""

    def __init__(self, end: float) -> None:
        self.now, self.end = 100.0, 100.0 + end

    def monotonic(self) -> float:
        return self.now

    def wait(self, duration: float) -> None:
        self.now += duration

    def is_set(self) -> bool:
        return self.now >= self.end


@pytest.mark.parametrize(("stall", "lag"), [(0.0, 0.0), (1.5, 0.0), (5.0, 5.0 - emulator.CATCH_UP)])
def test_after_a_stall_the_robot_catches_up(monkeypatch, stall, lag) -> None:
    """Samples stay those of absolute times; only what is beyond `CATCH_UP` is given up, once."""
    clock = Clock(10.0)
    monkeypatch.setattr(emulator, "time", SimpleNamespace(monotonic=clock.monotonic))
    core = Emulator(balanced_machine(), period=PERIOD)
    rest, calls = core.plant.rest, []

    def slow(duration: float):
        calls.append(clock.now)
        clock.now += stall if len(calls) == 50 else 0.0
        return rest(duration)

    put = []
    monkeypatch.setattr(core.plant, "rest", slow)
    monkeypatch.setattr(core.outbox, "put", lambda due, spacing, rows: put.append((due + spacing * np.arange(len(rows)), rows)))
    core._done = clock  # type: ignore[assignment]
    core._run()
    due, rows = np.concatenate([p[0] for p in put]), np.concatenate([p[1] for p in put])
    assert np.all(np.diff(rows[:, 0]) == 1.0)
    np.testing.assert_allclose(np.diff(rows[:, 1]), PERIOD, atol=1e-9)
    behind = (due - due[0]) - (rows[:, 1] - rows[0, 1])  # of the clock of the robot
    np.testing.assert_allclose(behind[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(behind[-1], lag, atol=2.0 * emulator.CHUNK)
    assert np.all(np.isclose(behind, 0.0, atol=1e-6) | np.isclose(behind, behind[-1], atol=1e-6))


@pytest.mark.parametrize("chunks", [1.5, 2.0])
def test_a_robot_that_has_used_up_its_points_waits_for_the_next(monkeypatch, chunks) -> None:
    """A client that is late by any time changes nothing: the motion goes on where it was, and settles once at its end."""
    monkeypatch.setattr(emulator, "STARVED", np.inf)
    core = Emulator(balanced_machine(), period=PERIOD, speed=20.0)
    T, home, tables = chunks * core.chunk, core.setpoints.q.copy(), []
    t = np.linspace(0.0, T, round(T / 0.02) + 1)[:, None]
    u, way = t / T, np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    q, v = home + way * u**3 * (10 - 15 * u + 6 * u**2), way * 30 * u**2 * (1 - u) ** 2 / T

    def run() -> None:
        for _ in range(3):
            rows = round(core._next_chunk() / PERIOD)
            if rows:
                tables.append(core._chunk(rows, 0, core._take(rows)))

    core.begin(marked=True)
    for k, when in enumerate(t[:, 0]):
        if k == np.searchsorted(t[:, 0], core.chunk + 1e-9):
            run()  # the next points are late
            assert len(np.concatenate(tables)) == round(core.chunk / PERIOD)
        core.push(emulator.Point(float(when), q[k], v[k], None))
    if chunks == 2.0:
        run()  # so is the end
    core.finish()
    while core.setpoints.moving or core._settle:
        rows = round(core._next_chunk() / PERIOD)
        tables.append(core._chunk(rows, 0, core._take(rows)))
    motion = np.concatenate(tables)[:, 2]
    running = np.flatnonzero(np.isfinite(motion))
    np.testing.assert_allclose(motion[running], running * PERIOD, atol=1e-9)
    assert running.size == round(T / PERIOD) + 1
    assert core._stood == settling_periods(PERIOD)


@pytest.mark.parametrize(("end", "moving"), [(5.0, 1), (15.0, 0)])
def test_a_robot_that_never_stands_counts_as_resting_after_a_while(monkeypatch, end, moving) -> None:
    """Friction that pushes near rest keeps CFT moving for ever; who waits for its rest must not."""
    clock = Clock(end)
    monkeypatch.setattr(emulator, "time", SimpleNamespace(monotonic=clock.monotonic))
    monkeypatch.setattr(emulator.Plant, "still", property(lambda _: False))
    core = Emulator(balanced_machine(), period=PERIOD)
    core._done = clock  # type: ignore[assignment]
    core._run()
    assert core.status[4] == moving


@pytest.mark.skipif(not hasattr(plant.os, "SCHED_FIFO"), reason="this system has no such priorities")
def test_without_the_right_to_run_before_others_a_thread_keeps_its_priority(monkeypatch) -> None:
    asked = []

    def refuse(*words: object) -> None:
        asked.append(words)
        raise PermissionError("not permitted")

    monkeypatch.setattr(plant.os, "sched_getscheduler", lambda _: plant.os.SCHED_OTHER, raising=False)
    monkeypatch.setattr(plant.os, "sched_setscheduler", refuse, raising=False)
    plant.prefer_thread()
    assert len(asked) == 1
    monkeypatch.setattr(plant.os, "sched_getscheduler", lambda _: plant.os.SCHED_FIFO, raising=False)
    plant.prefer_thread()  # a real-time process is not slowed down
    assert len(asked) == 1
