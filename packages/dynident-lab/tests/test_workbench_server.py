"""The workbench without a browser: guard, uploads, project, jobs, edits, live samples and the watchdog of recordings."""

import asyncio
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nicegui", reason="the workbench is an extra: pip install 'dynident-lab[workbench]'")

import dynident as di
from dynident.cli.options import RobotOptions
from dynident.errors import DynidentError
from dynident.files import write_atomic
from dynident.mechanics.dynamics import link_poses
from dynident_lab.campaigns.log import campaign_columns
from dynident_lab.campaigns.segments import segment_frame, segment_start
from dynident_lab.workbench import edits, gates, uploads
from dynident_lab.workbench.jobs import Jobs, shown
from dynident_lab.workbench.live import LiveTail
from dynident_lab.workbench.project import BusyError, LogUse, Project
from dynident_lab.workbench.security import Guard
from dynident_lab.workbench.view3d import Pose, meshes_of

TOKEN = "secret-token"
HERE = {"host": "127.0.0.1:8770", "cookie": f"dynident_8770={TOKEN}"}


async def _hello(scope, receive, send):
    body = b""
    while scope["type"] == "http":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def ask(headers, path="/", query=b"", kind="http", parts=(b"",), largest=1000, method="GET"):
    sent, waiting = [], list(parts)

    async def receive():
        if kind == "websocket":
            return {"type": "websocket.connect"}
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    raw = [(k.encode(), v.encode()) for k, v in headers.items()]
    scope = {"type": kind, "method": method, "path": path, "query_string": query, "headers": raw}
    asyncio.run(Guard(_hello, TOKEN, "dynident_8770", largest)(scope, receive, send))
    return sent


def header(sent, name):
    return next((v.decode() for k, v in sent[0]["headers"] if k.decode() == name), "")


def test_the_token_of_the_printed_address_becomes_a_strict_cookie():
    sent = ask({"host": "localhost:8770"}, query=f"token={TOKEN}".encode())
    assert sent[0]["status"] == 303
    assert header(sent, "location") == "/"
    assert {"HttpOnly", "SameSite=Strict"} <= set(header(sent, "set-cookie").split("; "))


def test_a_request_with_the_cookie_gets_a_policy_that_allows_only_this_origin():
    sent = ask(HERE)
    assert sent[0]["status"] == 200
    policy = header(sent, "content-security-policy")
    assert "default-src 'self'" in policy
    assert "http:" not in policy.replace("ws://127.0.0.1:8770", "").replace("wss://127.0.0.1:8770", "")


def test_files_of_the_project_get_an_origin_of_their_own():
    policy = header(ask(HERE, "/files/runs/1/report.html"), "content-security-policy")
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8770"},
        {**HERE, "cookie": "dynident_8770=wrong"},
        {**HERE, "host": "evil.example:8770"},
        {**HERE, "origin": "http://evil.example"},
        {**HERE, "origin": "null"},
        {"cookie": HERE["cookie"]},
    ],
)
def test_other_requests_are_refused(headers):
    assert ask(headers)[0]["status"] == 403
    assert ask(headers, kind="websocket")[0]["type"] == "websocket.close"


def test_an_ssh_tunnel_with_another_port_is_this_computer():
    assert ask({**HERE, "host": "localhost:9999", "origin": "http://localhost:9999"})[0]["status"] == 200


def test_a_body_above_the_limit_is_refused_whether_it_says_its_length_or_not():
    assert ask({**HERE, "content-length": "2000"}, method="POST")[0]["status"] == 413
    assert ask(HERE, parts=[b"x" * 600, b"x" * 600, b""], method="POST") == []  # ended like a lost connection


# ---------------------------------------------------------------------- uploads
def archive(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name", ["../robot.urdf", "/etc/robot.urdf", "a\\b.urdf", ".hidden.urdf", "a<b>.urdf", "", "x" * 300 + ".urdf"]
)
def test_a_path_in_the_name_is_refused(tmp_path, name):
    with pytest.raises(uploads.UploadError, match=r"file name|characters"):
        uploads.save_upload(tmp_path, name, b"<robot/>", uploads.ROBOTS)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_is_refused_with_what_is_taken(tmp_path):
    with pytest.raises(uploads.UploadError, match=r"'notes.docx' .*\.csv"):
        uploads.save_upload(tmp_path, "notes.docx", b"x", uploads.LOGS)


def test_a_zip_bomb_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "UNPACKED", 100_000)
    with pytest.raises(uploads.UploadError, match="unpacks to more than"):
        uploads.save_upload(tmp_path, "bomb.zip", archive(**{"a.csv": b"0" * 60_000, "b.csv": b"0" * 60_000}), uploads.LOGS)
    assert list(tmp_path.iterdir()) == []


def test_paths_that_leave_an_archive_are_refused(tmp_path):
    with pytest.raises(uploads.UploadError, match="outside the archive"):
        uploads.save_upload(tmp_path, "robot.zip", archive(**{"..__evil.urdf": b"<robot/>"}), uploads.ROBOTS)
    assert list(tmp_path.parent.glob("evil.urdf")) == []


def test_an_archive_becomes_a_folder_and_a_second_upload_keeps_the_first(tmp_path):
    for expected in ("pkg", "pkg_2"):
        written = uploads.save_upload(
            tmp_path, "pkg.zip", archive(urdf__arm_urdf=b"x", **{"urdf__arm.urdf": b"<robot/>"}), uploads.ROBOTS
        )
        assert written == [tmp_path / expected / "urdf" / "arm.urdf"]
    assert uploads.save_upload(tmp_path, "a.csv", b"1", uploads.LOGS) == [tmp_path / "a.csv"]
    assert uploads.save_upload(tmp_path, "a.csv", b"2", uploads.LOGS) == [tmp_path / "a_2.csv"]
    assert (tmp_path / "a.csv").read_bytes() == b"1"


# ---------------------------------------------------------------------- project
@pytest.fixture
def project(tmp_path):
    di.examples.arm6(tmp_path / "example")
    made = Project(tmp_path)
    made.settings.robot, made.settings.effort = "example/robot.urdf", "joint_torque"
    made.settings.logs = [LogUse("example/run.csv"), LogUse("example/other.csv", "validation")]
    made.save()
    yield made
    for job in made.jobs.running():
        job.cancel()
    made.close()


def finished(job, seconds=60.0):
    end = time.monotonic() + seconds
    while job.running and time.monotonic() < end:
        time.sleep(0.05)
    assert not job.running, "the job did not end"
    return job


def test_choices_survive_a_restart_and_a_second_server_is_refused(project):
    project.settings.logs[0].training = (1.0, 9.0)
    project.choose("excite", "speed", 30)
    with pytest.raises(BusyError, match="another workbench"):
        Project(project.folder)
    project.close()
    again = Project(project.folder)
    assert (again.settings.logs[0].training, again.choice("excite", "speed", 50)) == ((1.0, 9.0), 30)
    project._lock = again._lock


def test_a_damaged_settings_file_is_named(tmp_path):
    (tmp_path / "workbench.json").write_text('{"logs": [{"path": "a", "training": "x"}]}')
    with pytest.raises(DynidentError, match=r"workbench\.json"):
        Project(tmp_path)


def test_results_of_other_inputs_are_stale_until_they_are_waived(project):
    p = project
    (p.folder / "runs" / "1").mkdir(parents=True)
    write_atomic(p.folder / "runs/1/verdict.json", json.dumps({"ok": True, "checks": [], "scores": []}))
    words = [word for each in gates.identify_commands(p, gates.OUT) for word in each]
    checksum = p.checksum(words, gates.identify_files(p))
    assert gates.identify_status(p).state == "ok"  # from a shell, newer than its inputs
    place = p.hidden / "jobs" / "0001"
    place.mkdir(parents=True)
    facts = {
        "stage": "identify",
        "commands": [["cache"]],
        "output": "runs/1",
        "checksum": checksum,
        "accepted": [],
        "attached": False,
    }
    (place / "job.json").write_text(json.dumps(facts))
    (place / "done.json").write_text(json.dumps({"codes": [0], "cancelled": False}))
    p.jobs = Jobs(p.hidden / "jobs", p.folder)
    assert gates.identify_status(p).opens
    with (p.folder / "example" / "run.csv").open("a") as file:
        file.write("\n")
    stale = gates.identify_status(p)
    assert stale.state == "stale" and gates.lock_reason(p, "validate")
    p.waive("identify", f"runs/1:{stale.checksum}")
    assert gates.lock_reason(p, "validate") == ""


def test_a_stage_is_locked_until_the_one_before_is_good(project):
    assert "Robot" in gates.lock_reason(project, "check")
    assert gates.lock_reason(project, "robot") == ""


def test_folders_of_results_are_never_used_twice(project):
    (project.folder / "runs" / "7").mkdir(parents=True)
    assert project.new_folder("runs") == "runs/8"
    with pytest.raises(DynidentError, match="outside the project"):
        project.path("../elsewhere")


def test_windows_become_parts_of_logs_before_they_are_fitted(project):
    project.settings.logs[0].training, project.settings.logs[0].validation = (0.0, 12.0), (12.0, 20.0)
    first, second, third, identify = gates.identify_commands(project, "runs/1")
    assert first[:3] == ["convert", "example/run.csv", "runs/1/data/training_1.csv"]
    assert second[2] == "runs/1/data/validation_1.csv" and third[2] == "runs/1/data/validation_2.csv"
    assert "--effort" not in identify and identify.count("--validate") == 2
    assert shown(identify).startswith("dynident identify example/robot.urdf runs/1/data/training_1.csv --validate")


# ---------------------------------------------------------------------- jobs
def test_a_job_runs_the_command_it_shows_and_its_result_opens_the_next_stage(project):
    p = project
    words = gates.describe_words(p)
    job = finished(p.jobs.start("robot", [words], checksum=p.checksum(words, p.robot_files())))
    assert job.state == "ok" and job.result()["dof"] == 6
    assert gates.robot_status(p).opens and gates.lock_reason(p, "check") == ""
    by_hand = subprocess.run([sys.executable, "-m", "dynident", *words], cwd=p.folder, capture_output=True, check=True)
    assert by_hand.stdout == (job.folder / "0.out").read_bytes()
    edits.set_mass(p, "link2", 12.5)
    assert gates.robot_status(p).state == "stale"


def test_a_failed_job_says_the_sentence_of_its_command(project):
    job = finished(project.jobs.start("check", [["inspect", "nothing.csv", "--json"], ["cache", "--json"]]))
    assert job.state == "failed" and len(job.done["codes"]) == 1
    assert "nothing.csv" in gates.problem(job)


def test_a_job_reports_progress_is_found_again_after_a_restart_and_can_be_cancelled(project):
    # Fifteen harmonics: the search must still be under way when it is cancelled, on a busy machine too.
    words = ["excite", "example/robot.urdf", "--harmonics", "15", "--time-budget", "60", "-o", "plans/1", "--json"]
    job = project.jobs.start("excite", [words], output="plans/1")
    end = time.monotonic() + 60.0
    while not job.progress() and time.monotonic() < end:
        time.sleep(0.05)
    assert job.progress()["of"] == 60.0
    found = Jobs(project.hidden / "jobs", project.folder).latest("excite")  # as a server that was killed and started again
    assert found is not None and found.process is None and found.state == "running"
    found.cancel()
    assert finished(job).state == "cancelled" and found.state == "cancelled"
    assert not (project.folder / "plans" / "1").exists()


def test_a_job_whose_worker_was_killed_is_lost(project):
    job = project.jobs.start("excite", [["excite", "example/robot.urdf", "--time-budget", "60", "-o", "plans/1"]])
    while not (job.folder / "0.err").exists():
        time.sleep(0.02)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(job.process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    for pid in (str(job.process.pid), *children):
        os.kill(int(pid), signal.SIGKILL)
    job.process.wait()
    assert Jobs(project.hidden / "jobs", project.folder).latest("excite").state == "lost"


SERVER = """
import sys, time
from pathlib import Path
from dynident_lab.workbench.jobs import Jobs
folder, address = Path(sys.argv[1]), sys.argv[2]
jobs = Jobs(folder / "jobs", folder)
words = ["record", "plan.json", "--controller", address, "-o", "campaign", "--json"]
jobs.start("record", [words], output="campaign", attached=True)
time.sleep(600)
"""


def ended(pid: int) -> bool:
    """Return whether a process is gone, or waits for a parent that is."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()
    return state in ("", "Z")


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
@pytest.mark.parametrize("victim", ["server", "worker"])
def test_the_robot_stops_when_the_workbench_is_killed(tmp_path, victim):
    from link_process import plan

    from dynident_lab import link

    di.examples.arm6(tmp_path)
    plan(cycles=200).save(tmp_path / "plan.json")
    words = ["controller", "robot.urdf", "--motion-port", "0", "--state-port", "0", "--json", "--duration", "120"]
    controller = subprocess.Popen(
        [sys.executable, "-m", "dynident", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        text = ""
        while "}" not in text:
            text += controller.stdout.readline()
        ports = json.loads(text)
        server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path), ports["address"]])
        journal = tmp_path / "campaign" / "journal.jsonl"
        end = time.monotonic() + 60.0
        while not (journal.exists() and "cycle begun" in journal.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        job = Jobs(tmp_path / "jobs", tmp_path).latest("record")
        assert job.running
        worker = int((job.folder / "pid").read_text())
        (record,) = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(worker)], capture_output=True, text=True, check=True
        ).stdout.split()
        os.kill(server.pid if victim == "server" else worker, signal.SIGKILL)
        end = time.monotonic() + 60.0
        while not ended(int(record)) and time.monotonic() < end:
            time.sleep(0.05)
        assert ended(int(record))
        server.kill()
        server.wait()
        assert finished(job, 30.0).state == ("cancelled" if victim == "server" else "lost")
        client = link.SimpleClient("127.0.0.1", ports["motion_port"], ports["state_port"])
        client.connect()
        try:
            time.sleep(0.3)
            assert not client.state().moving
        finally:
            client.close()
    finally:
        controller.terminate()
        controller.wait()


# ---------------------------------------------------------------------- edits and views
def test_edited_numbers_are_read_back_by_dynident_and_comments_stay(project):
    p = project
    robot = RobotOptions().robot(p.folder / p.settings.robot)
    (p.folder / "example" / "robot.toml").write_text("# weighed on Monday\n")
    p.settings.sidecar = "example/robot.toml"
    edits.set_mass(p, "link2", 12.5)
    edits.set_motor(p, robot, "joint3", "ratio", 101.0)
    edits.set_limit(p, "joint1", "velocity", 1.5)
    text = (p.folder / "example/robot.toml").read_text()
    assert text.startswith("# weighed on Monday")
    again = RobotOptions(sidecar=p.folder / p.settings.sidecar).robot(p.folder / p.settings.robot)
    assert {a.name: a.ratio for a in again.actuators}["joint3"] == 101.0
    assert di.Knowledge.from_sidecar(p.folder / p.settings.sidecar).masses == {"link2": 12.5}
    assert edits.known_numbers(p)[1] == {"joint1": {"velocity": 1.5}}
    assert gates.excite_words(p, "plans/1")[4:6] == ["--limits", "limits.toml"]
    edits.set_limit(p, "joint1", "velocity", None)
    edits.set_mass(p, "link2", None)
    assert not (p.folder / "limits.toml").exists() and "known" not in (p.folder / "example/robot.toml").read_text()
    with pytest.raises(DynidentError, match="above zero"):
        edits.set_mass(p, "link2", -1.0)


FIVE_BAR = Path(__file__).parents[3] / "docs" / "tutorials" / "parallel_robot.md"


def five_bar(folder: Path, rod: str = "0.4") -> di.Mechanism:
    """Write the five-bar of the documentation with rods of a length, and read it."""
    text = FIVE_BAR.read_text(encoding="utf-8")
    for name, kind in (("fivebar.urdf", "xml"), ("fivebar.toml", "toml")):
        part = text.split(f"```{kind}\n", 1)[1].split("```", 1)[0]
        (folder / name).write_text(part.replace("= [0.4,", f"= [{rod},"), encoding="utf-8")
    return RobotOptions(sidecar=folder / "fivebar.toml").robot(folder / "fivebar.urdf")


def test_a_slider_of_a_five_bar_keeps_its_loop_closed_and_refuses_what_is_out_of_reach(tmp_path):
    robot = five_bar(tmp_path, "0.3")
    pose = Pose(robot)
    start = pose.q.copy()
    there = start + np.array([0.1, -0.1])
    pose.move(there)
    loop = robot.loops[0]
    ends = []
    for body, placement in ((loop.body_a, loop.placement_a), (loop.body_b, loop.placement_b)):
        rotation, position = pose.places()[body]
        ends.append(position + rotation @ placement.translation)
    assert np.linalg.norm(ends[0] - ends[1]) < 1e-8
    with pytest.raises(DynidentError, match="cannot follow"):
        pose.move(np.array([2.8, 0.3]))
    np.testing.assert_allclose(pose.q, there)


def test_poses_of_all_links_equal_the_forward_kinematics_of_each():
    robot = di.examples.arm6().robot
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (3, robot.dof))
    for name, (R, p) in link_poses(robot, q).items():
        one = di.forward_kinematics(robot, q, name)
        np.testing.assert_allclose(R, one[0], atol=1e-14)
        np.testing.assert_allclose(p, one[1], atol=1e-14)


def test_meshes_outside_the_project_are_left_out(tmp_path):
    project = tmp_path / "project"
    (project / "meshes").mkdir(parents=True)
    (project / "meshes" / "a.stl").write_bytes(b"solid")
    (tmp_path / "secret.stl").write_bytes(b"solid")
    visual = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    names = ("package://meshes/a.stl", "../secret.stl", "a.dae")
    links = "".join(f'<link name="l{i}">{visual.format(name)}</link>' for i, name in enumerate(names))
    (project / "robot.urdf").write_text(f'<robot name="r">{links}</robot>')
    assert [(mesh.link, mesh.file) for mesh in meshes_of(project, project / "robot.urdf")] == [("l0", "meshes/a.stl")]


def test_live_samples_are_those_of_the_growing_file_without_its_torn_tail(tmp_path):
    channels = ("a", "b")
    columns = campaign_columns(channels)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, len(columns)))
    rows[:, 2] = 0.01 * np.arange(60)
    start = segment_start({"columns": list(columns), "kind": "cycle"})
    file, tail = tmp_path / "00000_cycle_000_0.seg", LiveTail(tmp_path)
    assert not tail.update()
    frames = segment_frame(rows[:30]), segment_frame(rows[30:])
    file.write_bytes(start + frames[0] + frames[1][:50])
    assert tail.update() and tail.count == 30 and not tail.update()
    file.write_bytes(start + frames[0] + frames[1])
    assert tail.update() and tail.count == 60 and tail.channels == ["a", "b"]
    times, curves = tail.curves()
    assert len(times) == 60 and times[-1] == 0.0 and "residual" not in curves
    np.testing.assert_allclose(curves["effort"], rows[:, 5 + 4 : 5 + 6].T, atol=1e-3)
