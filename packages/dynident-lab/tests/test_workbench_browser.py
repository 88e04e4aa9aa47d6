"""The workbench in a browser: six stages for an arm, a five-bar and a campaign; keyboard, tablet, dark mode, accessibility."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager

import pytest

import dynident as di

pytest.importorskip("nicegui", reason="the workbench is an extra: pip install 'dynident-lab[workbench]'")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is a development tool: make venv")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not on PATH; make chromium installs it")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
]
KINDS = {"joint_torque": "joint torque", "motor_torque": "motor torque"}
IDENTIFY = [*["identify", "robot.urdf", "run.csv", "--validate", "other.csv", "--effort", "joint_torque", "-o", "runs/1", "-q"]]
DATE = rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC"  # of the report
PATIENCE = 90_000.0  # a busy machine is slow [ms]
#: The head of an upload is the UI library's: its file input and the link around it have no names (docs/howto/workbench.md).
OF_THE_LIBRARY = {"exclude": [[".q-uploader__header"], [".q-loading-bar"]]}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield made
        made.close()


class Window:
    """A page of a workbench, which remembers what must not happen: errors of its console, requests to elsewhere."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.errors, self.elsewhere = [], []
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._requested(request.url))
        self.page.goto(address)
        self.page.wait_for_selector(".wb-step")

    def _requested(self, url):
        if not url.startswith(("http://127.0.0.1:", "data:", "blob:", "ws://127.0.0.1:")):
            self.elsewhere.append(url)

    def stage(self, name):
        self.page.locator(".wb-step", has=self.page.locator("b", has_text=name)).click()
        self.page.wait_for_selector(f".wb-main h2:has-text('{name}')")

    def turns_the_first_joint(self):
        value = self.page.locator(".wb-slider .wb-value").first
        before = value.inner_text()
        self.page.locator(".wb-slider .q-slider__track-container").first.press("ArrowRight")
        playwright.expect(value).not_to_have_text(before, timeout=PATIENCE)

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def sees(self, text):
        self.page.get_by_text(text).first.wait_for()

    def upload(self, label, *files):
        self.page.locator(f"[aria-label='{label}'] input[type=file]").set_input_files([str(file) for file in files])

    def choose(self, label, option, field=False):
        """Choose an option; the page is drawn again, unless only a field changes."""
        before = self.page.locator(".wb-main").get_attribute("data-drawn")
        self.page.get_by_label(label, exact=True).first.click()
        self.page.get_by_role("option", name=option, exact=True).first.click()
        if not field:
            self.page.wait_for_selector(f".wb-main:not([data-drawn='{before}'])")


@contextmanager
def served(folder):
    """Yield the process and the address of a workbench."""
    words = [sys.executable, "-m", "dynident", "workbench", str(folder), "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found, line + process.stderr.read()
        yield process, found[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(30)


@contextmanager
def opened(browser, folder, **options):
    with served(folder) as (_, address):
        window = Window(browser, address, **options)
        try:
            yield window
        finally:
            window.context.close()
    assert window.errors == []
    assert window.elsewhere == []


def test_an_arm_with_uploaded_logs_comes_to_a_verdict_and_an_export(browser, tmp_path):
    files, project = tmp_path / "files", tmp_path / "project"
    di.examples.arm6(files)
    with opened(browser, project) as w:
        w.upload("Robot files", files / "robot.urdf")
        w.page.wait_for_selector(".wb-scene canvas")
        w.turns_the_first_joint()
        w.stage("Record")
        w.upload("Log files", files / "run.csv", files / "other.csv")
        w.sees("logs/other.csv")
        w.choose("The effort columns are", "joint torque")
        w.sees("How logs/run.csv was read")
        names = w.page.locator("div.wb-row", has_text="logs/").all_inner_texts()
        w.choose(f"use of log {1 + next(k for k, name in enumerate(names) if 'other' in name)}", "validation")
        w.stage("Check")
        w.press("Check")
        w.sees("ready to identify")
        w.stage("Identify")
        w.press("Identify")
        w.page.wait_for_selector(".wb-bars")
        w.stage("Validate and export")
        w.sees("validated (11 checks passed)")
        w.page.frame_locator("iframe[title='Report of the run']").get_by_role("heading", name="Verdict").wait_for()
        w.press("Export URDF with sidecar")
        w.sees("read back, largest difference")
        w.stage("Identify")
        shown = w.page.locator(".wb-command code").first.inner_text()
    made = sorted((project / "runs" / "1").iterdir())
    assert {path.name for path in made} >= {"fit.json", "identified.urdf", "report.html", "verdict.json"}
    words = shown.removeprefix("$ dynident ").split()
    words[words.index("-o") + 1] = "runs/1"  # the page shows the next run
    shell = shutil.copytree(project, tmp_path / "shell", ignore=shutil.ignore_patterns("runs", ".workbench"))
    subprocess.run([sys.executable, "-m", "dynident", *words], cwd=shell, check=True, capture_output=True)
    for path in made:
        if path.is_file():
            here, there = (re.sub(DATE, b"", file.read_bytes()) for file in (path, shell / "runs" / "1" / path.name))
            assert here == there, path.name


def test_a_campaign_on_the_virtual_robot_is_planned_tried_slowly_stopped_recorded_and_validated(browser, tmp_path):
    folder = tmp_path / "project"
    di.examples.arm6(folder)
    with opened(browser, folder) as w:
        w.choose("Robot", "robot.urdf")
        w.page.wait_for_selector(".wb-scene canvas")
        w.stage("Excite")
        for label, value in (("Duration of the motion [s]", "5"), ("Time for the search [s]", "2")):
            w.page.get_by_label(label).fill(value)
            w.page.keyboard.press("Tab")
        w.press("Search for a motion")
        w.sees("are known to 10 % or better")
        w.page.frame_locator("iframe[title='Plan']").get_by_role("heading", name="Joints within their limits").wait_for()
        w.stage("Record")
        w.choose("Pace of the virtual robot", "20 times as fast", field=True)
        w.press("Start the virtual robot")
        w.sees("It serves at")
        w.press("Dry run")
        w.sees("in all")
        assert w.page.get_by_role("button", name="Record", exact=True).is_disabled()
        w.press("First run at 10 %")
        w.sees(re.compile(r"cycle, \d+ samples"))
        w.press("Stop the robot")
        w.sees(re.compile("aborted, robot at rest|stopped; continue"))
        w.page.get_by_role("checkbox", name="without a first run").click()
        w.press("Record")
        w.page.wait_for_selector("text=campaigns/2: ok")
        w.stage("Check")
        w.press("Check")
        w.sees(re.compile("ready to identify|Accept it anyway"))
        if w.page.get_by_role("button", name="Accept it anyway").count():
            w.press("Accept it anyway")
        w.stage("Identify")
        w.press("Identify")
        w.page.wait_for_selector(".wb-bars")
        w.stage("Validate and export")
        w.page.frame_locator("iframe[title='Report of the run']").get_by_role("heading", name="Verdict").wait_for()
    assert "aborted" in (folder / "campaigns" / "1" / "journal.jsonl").read_text()
    assert "campaign done" in (folder / "campaigns" / "2" / "journal.jsonl").read_text()


def five_bar(folder):
    from test_workbench_server import five_bar as written

    folder.mkdir()
    return written(folder)


def test_a_five_bar_on_a_tablet_in_dark_mode_comes_to_a_verdict(browser, tmp_path):
    files, folder = tmp_path / "files", tmp_path / "project"
    five_bar(files)
    run = [sys.executable, "-m", "dynident"]
    robot = ["fivebar.urdf", "--sidecar", "fivebar.toml"]
    for words in (
        ["excite", *robot, "--iterations", "2", "--starts", "1", "-o", "plan", "-q"],
        ["simulate", "plan", "--robot", *robot, "--noise", "0.01", "-o", "run.csv"],
    ):
        subprocess.run([*run, *words], cwd=files, check=True, capture_output=True)
    with opened(browser, folder, viewport={"width": 820, "height": 1180}, color_scheme="dark", has_touch=True) as w:
        w.upload("Robot files", files / "fivebar.urdf", files / "fivebar.toml")
        w.page.wait_for_selector(".wb-scene canvas")
        w.turns_the_first_joint()
        assert w.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 27, 32)"
        assert w.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        w.stage("Record")
        w.upload("Log files", files / "run.csv")
        w.sees("logs/run.csv")
        w.choose("The effort columns are", KINDS[di.Log.read(files / "run.csv").effort_kind])
        w.stage("Check")
        w.press("Check")
        w.sees(re.compile("ready to identify|Accept it anyway"))
        if w.page.get_by_role("button", name="Accept it anyway").count():
            w.press("Accept it anyway")
        w.stage("Identify")
        w.press("Identify")
        w.page.wait_for_selector(".wb-bars")
        w.stage("Validate and export")
        w.press("Export C code for a controller")
        w.sees("C code for a controller of runs/1: written")


def test_keyboard_alone_reaches_the_example_and_its_check(browser, tmp_path):
    with opened(browser, tmp_path / "project") as w:

        def reach(name):
            for _ in range(80):
                w.page.keyboard.press("Tab")
                if w.page.evaluate("document.activeElement.innerText || ''").strip().replace("\n", " ").startswith(name):
                    return
            raise AssertionError(f"'{name}' cannot be reached with Tab")

        reach("Example arm")
        w.page.keyboard.press("Enter")
        w.page.wait_for_selector(".wb-scene canvas")
        reach("4 Check")
        w.page.keyboard.press("Enter")
        w.page.wait_for_selector(".wb-main h2:has-text('Check')")
        reach("Check")
        w.page.keyboard.press("Space")
        w.sees("ready to identify")


def test_bad_uploads_give_one_message_and_lose_nothing(browser, tmp_path):
    folder, files = tmp_path / "project", tmp_path / "files"
    di.examples.arm6(folder)
    files.mkdir()
    (files / "letter.docx").write_bytes(b"x")
    (files / "broken.urdf").write_text("<robot name='<b>x</b>'")
    with zipfile.ZipFile(files / "bomb.zip", "w") as bomb:
        for i in range(5_001):
            bomb.writestr(f"{i}.urdf", b"")
    huge = files / "huge.urdf"
    with huge.open("wb") as file:
        file.truncate(1_000_000_000)
    with opened(browser, folder) as w:
        w.choose("Robot", "robot.urdf")
        w.page.wait_for_selector(".wb-scene canvas")
        before = {path: path.read_bytes() for path in folder.glob("[a-z]*.*") if path.name != "workbench.json"}
        for name, sentence in (
            ("letter.docx", "has an unsupported type"),
            ("huge.urdf", "is larger than 500 MB or not allowed here"),
            ("bomb.zip", "contains 5001 files"),
        ):
            w.upload("Robot files", files / name)
            w.page.locator(".q-notification", has_text=sentence).wait_for()
        assert {path: path.read_bytes() for path in folder.glob("[a-z]*.*") if path.name != "workbench.json"} == before
        w.upload("Robot files", files / "broken.urdf")
        w.page.locator(".wb-banner.bad").wait_for()
        w.choose("Robot", "robot.urdf")
        w.page.wait_for_selector(".wb-scene canvas")


def test_a_second_window_is_read_only_until_it_takes_over_and_a_killed_server_restarts_into_the_project(browser, tmp_path):
    folder = tmp_path / "project"
    di.examples.arm6(folder)
    with served(folder) as (process, address):
        first, second = Window(browser, address), Window(browser, address)
        second.sees("read-only")
        assert second.page.locator("fieldset[inert]").count()
        first.choose("Robot", "robot.urdf")
        second.page.wait_for_selector(".wb-scene canvas")  # both show the same state
        second.press("Use this window")
        first.sees("read-only")
        words = [
            "identify",
            "robot.urdf",
            "run.csv",
            "--validate",
            "other.csv",
            "--effort",
            "joint_torque",
            "-o",
            "runs/1",
            "-q",
        ]
        subprocess.run([sys.executable, "-m", "dynident", *words], cwd=folder, check=True, capture_output=True)
        second.page.locator(".wb-step", has_text="validated (11 checks passed)").wait_for()  # a run of a shell
        process.kill()
        process.wait()
        first.context.close()
        second.context.close()
    with opened(browser, folder) as w:
        w.page.wait_for_selector(".wb-scene canvas")
        w.stage("Validate and export")
        w.sees("runs/1: validated")


def test_no_serious_accessibility_findings_in_our_own_content(browser, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="a development tool: make venv").Axe()
    folder = tmp_path / "project"
    di.examples.arm6(folder)
    subprocess.run([sys.executable, "-m", "dynident", *IDENTIFY], cwd=folder, check=True, capture_output=True)
    found = {}
    with opened(browser, folder) as w:
        w.choose("Robot", "robot.urdf")
        w.page.wait_for_selector(".wb-scene canvas")
        for scheme in ("light", "dark"):
            w.page.emulate_media(color_scheme=scheme)
            for stage in ("Robot", "Excite", "Record", "Check", "Identify", "Validate and export"):
                w.stage(stage)
                time.sleep(0.3)  # colours fade
                result = axe.run(w.page, context=OF_THE_LIBRARY, options={"resultTypes": ["violations"]})
                for finding in result.response["violations"]:
                    if finding["impact"] in ("serious", "critical"):
                        targets = [node["html"][:120] for node in finding["nodes"]]
                        found[f"{scheme} {stage} {finding['id']}"] = targets
    assert found == {}
