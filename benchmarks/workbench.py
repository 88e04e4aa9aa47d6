"""Targets of the workbench: page ready in 2 s, live curves of 7 axes for 20 % of a core, a long log zoomed at 30 frames/s.

    python -m benchmarks.workbench

Needs Chromium on PATH. CPU times are of the server process only; frames are counted during zooming.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

AXES, RATE, SECONDS = 7, 250.0, 10.0  # of the live samples [-, Hz, s]
LONG, FAST = 60.0, 1000.0  # of the zoomed log [s, Hz]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--use-gl=angle", "--use-angle=swiftshader"]
FRAMES = """() => new Promise(done => {
  let n = 0; const t = performance.now();
  const f = () => { n += 1; const dt = performance.now() - t; dt > 2500 ? done(1000 * n / dt) : requestAnimationFrame(f); };
  f();
})"""


def robot(folder: Path) -> list[str]:
    """Write a chain of axes and return their names."""
    names = [f"joint{i}" for i in range(1, AXES + 1)]
    moments = " ".join(f'{key}="{0.01 * (key[1] == key[2])}"' for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    inertia = f'<inertial><origin xyz="0.1 0 0"/><mass value="2"/><inertia {moments}/></inertial>'
    parts = ['<robot name="chain"><link name="l0"/>']
    for i, name in enumerate(names):
        axis = "0 0 1" if i % 2 == 0 else "0 1 0"
        parts += [
            f'<link name="l{i + 1}">{inertia}</link>',
            f'<joint name="{name}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="0.2 0 0"/>',
            f'<axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="2" effort="100"/></joint>',
        ]
    (folder / "chain.urdf").write_text("".join(parts) + "</robot>")
    return names


def long_log(folder: Path, names: list[str]) -> None:
    """Write a log of a minute."""
    t = np.arange(0.0, LONG, 1.0 / FAST)
    rng = np.random.default_rng(0)
    q = np.column_stack([np.sin((0.5 + 0.1 * i) * t) for i in range(AXES)])
    columns = {f"q_{name}": q[:, i] for i, name in enumerate(names)}
    columns |= {f"tau_{name}": 5.0 * q[:, i] + rng.normal(size=t.size) for i, name in enumerate(names)}
    table = np.column_stack([t, *columns.values()])
    np.savetxt(folder / "long.csv", table, "%.6g", delimiter=",", header=",".join(["t", *columns]), comments="")


class Campaign:
    """An imitated recording: its job is locked by this process, and its file grows at the rate of a controller."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        from dynident_lab.campaigns.log import campaign_columns
        from dynident_lab.campaigns.segments import segment_frame, segment_start
        from dynident_lab.workbench.worker import lock

        place, self.folder = folder / ".workbench" / "jobs" / "0001", folder / "campaigns" / "1"
        place.mkdir(parents=True)
        self.folder.mkdir(parents=True)
        facts: dict[str, Any] = {"stage": "record", "commands": [["record"]], "output": "campaigns/1", "checksum": ""}
        facts |= {"accepted": [], "attached": True, "speed": 1.0, "plan": ""}
        (place / "job.json").write_text(json.dumps(facts))
        self.handle = lock(place)
        self.columns, self.frame = campaign_columns(tuple(names)), segment_frame
        self.file = (self.folder / "00000_cycle_000_0.seg").open("wb", buffering=0)
        self.file.write(segment_start({"columns": list(self.columns), "kind": "cycle"}))
        self.ended = threading.Event()
        threading.Thread(target=self.grow, daemon=True).start()

    def grow(self) -> None:
        """Write samples as they come."""
        rng, n, began = np.random.default_rng(0), 0, time.monotonic()
        while not self.ended.wait(0.02):
            count = int(RATE * (time.monotonic() - began)) - n
            rows = rng.normal(size=(count, len(self.columns)))
            rows[:, 2] = (n + np.arange(count)) / RATE
            rows[:, 3] = rows[:, 2]
            self.file.write(self.frame(rows))
            n += count


def cpu(pid: int) -> float:
    """Return the CPU time of a process [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure() -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("chromium is not on PATH; make chromium installs it")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as tool:
        folder = Path(name)
        names = robot(folder)
        long_log(folder, names)
        campaign = Campaign(folder, names)
        settings = {"robot": "chain.urdf", "effort": "joint_torque", "logs": [{"path": "long.csv"}]}
        (folder / "workbench.json").write_text(json.dumps(settings))
        words = [sys.executable, "-m", "dynident", "workbench", name, "--port", "0", "--no-browser"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            assert server.stdout is not None
            address = re.search(r"http\S+", server.stdout.readline())
            assert address is not None
            made = tool.chromium.launch(executable_path=browser, args=FLAGS)
            page = made.new_page(viewport={"width": 1280, "height": 900})
            for k in range(2):  # the second load finds the library in the browser cache, as in later use
                began = time.monotonic()
                page.goto(address[0])
                page.wait_for_selector(".wb-step")
                found["page ready, cached [s]" if k else "page ready, first time [s]"] = time.monotonic() - began
            page.wait_for_selector(".wb-scene canvas", timeout=120_000)
            page.locator(".wb-step", has_text="Record").click()
            page.wait_for_selector("text=samples", timeout=60_000)
            time.sleep(2.0)
            before, began = cpu(server.pid), time.monotonic()
            time.sleep(SECONDS)
            found["live curves, share of a core"] = (cpu(server.pid) - before) / (time.monotonic() - began)
            page.locator(".wb-step", has_text="Check").click()
            page.wait_for_selector(".wb-chart.tall canvas", timeout=120_000)
            time.sleep(1.0)
            box = page.locator(".wb-chart.tall").bounding_box()
            assert box is not None
            page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
            frames: list[float] = []
            page.evaluate(f"window.frames_per_second = ({FRAMES})()")
            for k in range(40):
                page.mouse.wheel(0, -60 if k < 20 else 60)
                time.sleep(0.05)
            frames.append(page.evaluate("window.frames_per_second"))
            found["frames per second while zooming"] = frames[0]
            made.close()
        finally:
            campaign.ended.set()
            server.terminate()
            server.wait()
    return found


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<36} {value:.3g}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {used:.0f} s of CPU")


if __name__ == "__main__":
    main()
