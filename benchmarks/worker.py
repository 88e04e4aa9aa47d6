"""One measurement in a separate process; prints one line of JSON. Used by `benchmarks.processes`."""

from __future__ import annotations

import json
import sys
from time import perf_counter, process_time


def import_times() -> dict[str, float]:
    start = perf_counter()
    import dynident as di

    package = perf_counter() - start
    for name in di.__all__:
        getattr(di, name)
    return {"package": package, "names": perf_counter() - start}


def humanoid(samples: int) -> dict[str, float]:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        files = distribution("example-robot-data").files or []
    except PackageNotFoundError:
        return {}
    urdf = next(str(file.locate()) for file in files if file.name == "talos_reduced.urdf")
    clock, processor = perf_counter(), process_time()
    import numpy as np

    import dynident as di

    robot = di.Mechanism.from_urdf(urdf)
    base = di.base_parameters(robot)
    rng = np.random.default_rng(0)
    q, v, a, tau = (rng.normal(size=(samples, robot.dof)) for _ in range(4))
    evidence = di.Regression.from_motion(robot, di.Motion(np.arange(float(samples)), q, v, a), tau, base)
    used = {"clock": perf_counter() - clock, "processor": process_time() - processor}
    return {**used, "axes": float(robot.dof), "rank": float(evidence.base.rank)}


def memory(who: str, samples: int) -> dict[str, float | None]:
    from benchmarks.arms import URDF, arm, record
    from benchmarks.cases import identify
    from benchmarks.peers import Pinocchio
    from benchmarks.timing import peak_extra

    robot, peer = arm(), Pinocchio(URDF) if who == "peer" else None

    def work(data):  # type: ignore[no-untyped-def]
        if peer is None:
            return identify(robot, data)
        return peer.identify(data.motion.q, data.motion.v, data.motion.a, data.effort)

    work(record(robot, 8192))  # kernels, libraries and thread pools are excluded from the measurement
    data = record(robot, samples)
    return {"extra": peak_extra(lambda: work(data))}


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    if task == "memory":
        print(json.dumps(memory(rest[0], int(rest[1]))))
    elif task == "humanoid":
        print(json.dumps(humanoid(int(rest[0]))))
    else:
        print(json.dumps(import_times()))
