"""One measurement in a process of its own; prints one line of JSON. Used by `benchmarks.cases`."""

from __future__ import annotations

import json
import sys
from time import perf_counter


def import_times() -> dict[str, float]:
    start = perf_counter()
    import dynident as di

    package = perf_counter() - start
    for name in di.__all__:
        getattr(di, name)
    return {"package": package, "names": perf_counter() - start}


def first_problem(samples: int) -> dict[str, float]:
    start = perf_counter()
    from benchmarks.arms import arm, record
    from benchmarks.cases import identify

    robot = arm()
    data = record(robot, samples)
    identify(robot, data).predict(data.motion)
    return {"seconds": perf_counter() - start}


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

    work(record(robot, 8192))  # kernels, libraries and thread pools are not what is measured
    data = record(robot, samples)
    return {"extra": peak_extra(lambda: work(data))}


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    if task == "memory":
        print(json.dumps(memory(rest[0], int(rest[1]))))
    elif task == "first":
        print(json.dumps(first_problem(int(rest[0]))))
    else:
        print(json.dumps(import_times()))
