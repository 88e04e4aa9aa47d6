"""The engine: two processes of Dask give what one thread gives, also when workers die; all that is parallel takes a client."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fleet_cases import CUTOFF, fleet, log_of
from identify_cases import arm
from simulate_cases import excitation, geared_arm

import dynident as di
from dynident.cli import run
from dynident.errors import DynidentError
from dynident.mechanism.text_writers import urdf_text
from dynident.simulate import Sensors
from dynident_lab.fleet import connect, engine, identify, storage
from dynident_lab.servo import monte_carlo

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dynident[fleet]'")


@pytest.fixture(scope="module")
def client():
    with connect(workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return fleet(tmp_path_factory.mktemp("logs"), 5)


@pytest.fixture(scope="module")
def alone(case):
    with ThreadPoolExecutor(1) as pool:
        return identify(case.robot, case.rows, client=pool, cutoff=CUTOFF)


def test_two_processes_one_of_which_is_killed_give_the_same_bits(case, alone, client, tmp_path):
    killed: list[int] = []

    def kill(what: str, done: int, of: int) -> None:
        if what == "logs" and done >= 2 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = identify(case.robot, case.rows, tmp_path / "out", client=client, cutoff=CUTOFF, progress=kill)
    assert killed
    assert [record.rows for record in found.logs] == [record.rows for record in alone.logs]
    for a, b in zip(found.robots, alone.robots, strict=True):
        assert a.information.tobytes() == b.information.tobytes()
        assert a.values.tobytes() == b.values.tobytes()
    assert len(list((tmp_path / "out" / "factors").rglob("*.npz"))) == len(case.rows)


def test_the_command_runs_on_a_scheduler_and_says_what_it_did(case, client, tmp_path, capsys):
    (tmp_path / "arm.urdf").write_text(urdf_text(case.robot))
    rows = [f"{row['serial']},{row['date']},{row['log']}" for row in case.rows]
    (tmp_path / "logs.csv").write_text("\n".join(["serial,date,log", *rows]))
    text = '[robots.arm]\ndescription = "arm.urdf"\nterms = ["ia", "fv", "fc", "off"]\n[fleet]\nlogs = "logs.csv"\n[prepare]\n'
    (tmp_path / "fleet.toml").write_text(f"{text}cutoff = {CUTOFF}\n")
    address = client.scheduler_info()["address"]
    out = tmp_path / "out"
    assert run(["fleet", "identify", str(tmp_path / "fleet.toml"), "-o", str(out), "--scheduler", address]) == 0
    told = capsys.readouterr()
    assert "5 robots from 10 of 10 logs" in told.out
    assert "Dask dashboard" in told.err
    assert {"fleet.json", "report.html", "state.json", "index.jsonl", "population_arm.json"} <= {p.name for p in out.iterdir()}
    (out / "report.html").unlink()
    assert run(["fleet", "report", str(out)]) == 0
    assert (out / "report.html").is_file()


def test_factors_are_all_that_moves(case, alone):
    # A log of 1200 samples of three joints has 58 kB of positions and efforts; of long logs factors are no larger.
    assert alone.counters["bytes_up"] / len(case.rows) < 40_000
    assert alone.counters["bytes_down"] == alone.counters["bytes_up"]


def test_what_runs_in_parallel_takes_a_client(client, tmp_path):
    robot = arm()
    log = log_of(robot, robot.parameters.values, 20.0, 3)
    blocks = di.validate.time_blocks(robot, log, 4, cutoff=CUTOFF)
    ours, theirs = di.cross_validate(blocks), di.cross_validate(blocks, client=client)
    np.testing.assert_allclose(theirs.relative, ours.relative, rtol=1e-9)
    estimators = {"OLS": di.OLS(), "WLS": di.WLS()}
    with ThreadPoolExecutor(2) as pool:
        first = di.compare(robot, log, estimators=estimators, client=pool, cutoff=CUTOFF)
    again = di.compare(robot, log, estimators=estimators, cutoff=CUTOFF)
    assert [(row.name, row.error) for row in first.rows] == [(row.name, row.error) for row in again.rows]
    machine = replace(geared_arm(2), sensors=Sensors(position_noise=1e-5, effort_noise=0.02))
    curve = excitation(2, 0.1, size=0.1)
    many, alone = (monte_carlo(machine, curve, 2, seed=2, client=where) for where in (client, None))
    assert [run.truth.checksum() for run in many] == [run.truth.checksum() for run in alone]
    box = {"default": {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 8.0}}
    designs = [di.design(robot, box, starts=2, seed=1, iterations=2, client=where, workers=1) for where in (client, None)]
    np.testing.assert_allclose(designs[0].optimum.x, designs[1].optimum.x, rtol=1e-9, atol=1e-12)
    with pytest.raises(DynidentError, match="client is a str"):
        di.cross_validate(blocks, client="tcp://host")


def test_reproductions_run_on_the_same_engine(client, capsys):
    address = client.scheduler_info()["address"]
    assert run(["reproduce", "cft-table-5", "cft-table-6", "--scheduler", address]) == 0
    told = capsys.readouterr().out
    assert told.index("cft-table-5") < told.index("cft-table-6")


def test_a_scheduler_that_cannot_be_reached(monkeypatch):
    monkeypatch.setattr(engine, "TIMEOUT", 0.3)
    with pytest.raises(DynidentError, match="cannot reach the scheduler 'tcp:"), connect("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(DynidentError, match="workers is 0"), connect(workers=0):
        pass


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_workers_of_dask_keep_freed_memory():
    # A worker that keeps what it freed takes the next array of 8 MB from it: few new pages instead of 2048 for every array.
    code = """
import resource
import numpy as np
from dynident_lab.fleet.engine import keep_freed_memory
keep_freed_memory()
np.ones(1 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(1 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    faults = {}
    for chosen in ("65536", "65537"):  # Dask's value is undone, anybody else's is kept
        environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": chosen}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        faults[chosen] = int(done.stdout)
    assert faults["65536"] * 10 < faults["65537"]


class Cluster:
    """A client whose workers answer what a test wants."""

    def __init__(self, answers: dict[str, dict[str, str]]) -> None:
        self.answers = answers

    def scheduler_info(self) -> None:
        """Mark a Dask client."""

    def run(self, _):
        return self.answers

    def submit(self, *_):
        raise AssertionError("nothing may be submitted")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"tcp://a:1": {**engine.versions(), "dynident": "0.0.1"}}, "worker tcp://a:1 has dynident 0.0.1"),
        ({}, "the scheduler has no workers"),
    ],
)
def test_workers_of_another_version_are_refused(case, answers, words):
    with pytest.raises(DynidentError, match=words):
        identify(case.robot, case.rows, client=Cluster(answers), cutoff=CUTOFF)


def test_logs_in_object_storage_are_read_where_they_are(case, alone):
    import fsspec

    system = fsspec.filesystem("memory")
    rows = []
    for row in case.rows[:2]:
        address = f"memory://fleet/{Path(row['log']).name}"
        system.pipe(address, Path(row["log"]).read_bytes())
        rows.append({**row, "log": address})
    assert storage.matching("memory://fleet/*.npz") == [row["log"].replace("memory://", "memory:///") for row in rows]
    with ThreadPoolExecutor(1) as pool:
        found = identify(case.robot, rows, client=pool, cutoff=CUTOFF)
    assert found.robots[0].values.tobytes() == alone.robots[0].values.tobytes()


def test_storage_without_credentials_gets_one_sentence(case):
    import fsspec

    class Locked(fsspec.AbstractFileSystem):
        protocol = "locked"

        def info(self, path, **_):
            raise PermissionError("Unable to locate credentials")

    fsspec.register_implementation("locked", Locked, clobber=True)
    rows = [{"serial": "A", "log": "locked://bucket/a.npz"}, {"serial": "B", "log": "nothing://bucket/a.npz"}, case.rows[0]]
    with ThreadPoolExecutor(1) as pool:
        found = identify(case.robot, rows, client=pool, cutoff=CUTOFF)
    told = {record.serial: record.sentence for record in found.refused}
    assert "set the credentials of the storage" in told["A"]
    assert "nothing" in told["B"]
    assert len(found.robots) == 1


def test_one_writer_at_a_time(case, tmp_path):
    from dynident_lab.fleet.store import Store

    store = Store(tmp_path)
    with ThreadPoolExecutor(1) as pool, pytest.raises(DynidentError, match="another run writes"):
        identify(case.robot, case.rows, tmp_path, client=pool, cutoff=CUTOFF)
    store.close()


def test_a_memory_limit_under_which_no_worker_lives():
    with pytest.raises(DynidentError, match=r"memory is '3MB', but a worker needs 1\d\d MB"), connect(memory="3MB"):
        pass
