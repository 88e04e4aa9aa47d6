"""A controller or a campaign in a process of its own, to be killed: python link_process.py serve | record ...

`record` prints the number of acknowledged samples each time it grows, and "complete" at the end.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np

from dynident.excitation import Plan, Stage
from dynident.trajectory import Moves

JOINTS = tuple(f"joint{i}" for i in range(1, 7))


def plan(cycles: int = 2, period: float = 0.0, notes=None) -> Plan:
    """Two stages of the six joints, a few seconds long."""
    rng = np.random.default_rng(1)
    a, b, c = (0.4 * rng.uniform(-1, 1, 6) for _ in range(3))
    stages = [
        Stage("excitation", "training", Moves([a, b, c, a], [0.8, 0.8, 0.8])),
        Stage("warming", "warming", Moves([a, c, a], [0.6, 0.6]), repetitions=2),
    ]
    return Plan("arm6", JOINTS, stages, cycles, 250.0, 3.0, 10.0, 0.5 * a, period=period, notes=notes or {})


def serve(motion_port: int, state_port: int, speed: float) -> None:
    from dynident_lab.link import Emulator, SimpleServer

    sys.path.append(str(Path(__file__).parents[2] / "dynident" / "tests"))  # small_robots is there
    from warm_robots import warm_arm6

    emulator = Emulator(warm_arm6(), speed=speed)
    server = SimpleServer(emulator, motion_port=motion_port, state_port=state_port).start()
    sys.stdout.write(f"{server.motion_port} {server.state_port}\n")
    sys.stdout.flush()
    time.sleep(3600.0)


def record(folder: Path, motion_port: int, state_port: int, cycles: int) -> None:
    from dynident_lab.link import Campaign, Settings, SimpleClient

    client = SimpleClient("127.0.0.1", motion_port, state_port)
    options = {"interval": 0.05}
    if (folder / "campaign.json").exists():
        campaign = Campaign(folder, client, **options)
    else:
        campaign = Campaign.create(folder, plan(cycles), Settings(), client, **options)
    done = threading.Event()

    def tell() -> None:
        last = 0
        while not done.wait(0.01):
            known = getattr(getattr(campaign, "recorder", None), "acknowledged", 0)
            if known > last:
                last = known
                sys.stdout.write(f"{known}\n")
                sys.stdout.flush()

    threading.Thread(target=tell, daemon=True).start()
    campaign.run()
    done.set()
    sys.stdout.write("complete\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    else:
        record(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
