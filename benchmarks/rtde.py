"""Age of the samples that `ur_rtde` returns from the virtual UR5e at 500 Hz: ``python -m benchmarks.rtde [120] [--real-time]``.

The age of a sample is the host's clock when the client first returns it, minus that when the server wrote it to the socket.
Server and client are separate processes; run it on an idle machine, or with --real-time if the system allows it.

`ur_rtde` keeps only the newest sample, so some are never returned. Either the server was late and wrote several at once, or
the reader did not read for more than one period. Both shares are counted.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import time
from multiprocessing.connection import Connection

import numpy as np

from benchmarks import targets
from benchmarks.targets import target
from dynident_lab.link import Emulator, RtdeServer, Samples, prepare_timing, ur5e

HOST = "127.0.77.4"  # the port of ur_rtde is fixed, the address is used here only
PERIOD = 2e-3  # [s]
TARGET = 6e-3  # 99 % quantile of the age of samples [s]


class Written(RtdeServer):
    """A server that stores the times at which samples are written."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__(emulator, HOST, script_port=0)
        self.written: list[tuple[float, float]] = []

    def _sent(self, samples: Samples) -> None:
        now = time.monotonic()  # the same clock in all processes of a computer
        self.written += [(float(stamp), now) for stamp in samples.clock]


def serve(pipe: Connection, real_time: bool) -> None:
    """Serve until the times are requested, and send them."""
    prepare_timing(real_time)
    server = Written(Emulator(ur5e.machine(), period=PERIOD, real_time=True)).start()
    pipe.send("ready")
    pipe.recv()
    server.close()
    pipe.send(server.written)


def measure(duration: float, real_time: bool = False) -> dict[str, float]:
    """Return shares and ages of the samples returned by ur_rtde."""
    import rtde_receive

    prepare_timing(real_time)
    context = mp.get_context("spawn")
    pipe, other = context.Pipe()
    process = context.Process(target=serve, args=(other, real_time))  # not a daemon: it starts a separate process
    process.start()
    pipe.recv()
    robot = rtde_receive.RTDEReceiveInterface(HOST, 500.0)
    seen: list[tuple[float, float]] = []
    last, end, looked = 0.0, time.monotonic() + duration, list[float]()
    while (now := time.monotonic()) < end:
        looked.append(now)
        if (stamp := robot.getTimestamp()) != last:
            last = stamp
            seen.append((stamp, now))
        time.sleep(2e-4)
    robot.disconnect()
    pipe.send("times")
    written = pipe.recv()
    process.join(timeout=30.0)
    sent = {round(stamp, 6): when for stamp, when in written}
    ages = np.array([now - sent[round(stamp, 6)] for stamp, now in seen[5:] if round(stamp, 6) in sent])
    steps, waits = np.diff([stamp for stamp, _ in written]), np.diff(looked)
    together = np.diff([when for _, when in written]) == 0.0
    return {
        "samples": len(ages),
        "share returned": len(seen) / (500.0 * duration),
        "share written together with the next": float(np.mean(together)),
        "share of time between looks longer than a period": float(np.sum(waits[waits > PERIOD] - PERIOD) / duration),
        "age of 99 % [ms]": 1e3 * float(np.quantile(ages, 0.99)),
        "share within 6 ms": float(np.mean(ages <= TARGET)),
        "gaps in the time stamps sent": int(np.sum(np.abs(steps - PERIOD) > 1e-6)),
    }


def main() -> None:
    """Measure, and print one line per target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("duration", nargs="?", type=float, default=120.0, help="seconds")
    parser.add_argument("--real-time", action="store_true", help="server and reader run before other processes")
    given = parser.parse_args()
    x = measure(given.duration, given.real_time)
    age = f"{100 * x['share within 6 ms']:.2f} % of {x['samples']} samples within 6 ms, 99 % in {x['age of 99 % [ms]']:.1f} ms"
    target(f"ur_rtde at 500 Hz for {given.duration:g} s", age, "99 % within 6 ms", x["share within 6 ms"] >= 0.99)
    gaps = int(x["gaps in the time stamps sent"])
    target("time stamps sent", f"{gaps} gaps", "0", gaps == 0)
    both = [
        f"{100 * x[name]:.1f} %"
        for name in ("share written together with the next", "share of time between looks longer than a period")
    ]
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"         returned {100 * x['share returned']:.1f} %; server late for {both[0]}, reader late for {both[1]} ({load})")
    targets.end()


if __name__ == "__main__":
    main()
