"""A monitor as C99: the routine of one sample, its numbers, and a program that checks itself on embedded samples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.files import write_atomic
from dynident.graph.print_c import c_files, c_table
from dynident.graph.printing import comment, identifier
from dynident.identify.base import random_closed_motion
from dynident.mechanics.closure import close_positions
from dynident.monitor.step import routines

if TYPE_CHECKING:
    from dynident.monitor.monitor import Monitor


SAMPLES = 60  # of the self-test ...
STEP = 0.15  # ... each so many periods of the cut-off long: the low-pass settles in a third of the time


def write_c(monitor: Monitor, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write header, source and self-test; `Monitor.to_c` is the short way."""
    prefix, at = identifier(name).lower(), monitor.layout
    sample, _ = routines(monitor.terms, at, monitor.home, prefix)
    about = f"Monitor of robot '{comment(monitor.mechanism.name)}'"
    files = c_files(prefix, [sample], about)
    files[f"{prefix}.h"] = _header(monitor, prefix, files[f"{prefix}.h"])
    files[f"{prefix}.c"] += _numbers(monitor, prefix)
    files[f"{prefix}_test.c"] = _test(monitor, prefix)
    return [write_atomic(Path(folder) / file, text) for file, text in files.items()]


def _header(monitor: Monitor, prefix: str, text: str) -> str:
    at, upper = monitor.layout, prefix.upper()
    joints = ", ".join(comment(joint) for joint in monitor.joints)
    lines = [
        f"/* Joints: {joints}. Measured: {', '.join(comment(name) for name in monitor.channels)}. SI units.",
        " * now:    time since the last sample; positions, efforts, temperatures (0 where no law needs them) as measured;",
        " * state:  zeros at the start;",
        " * result: external torques, thresholds, flag (0 or 1), largest share of a threshold; NaN where nothing can be said.",
        f" * Thresholds at {monitor.settings.level:.3f} deviations: {monitor.false_alarms:.3g} false alarms per hour. */",
        *(
            f"#define {upper}_{what} {size}"
            for what, size in (
                ("JOINTS", at.n),
                ("MEASURED", at.m),
                ("NOW", at.now_size),
                ("STATE", at.state_size),
                ("RESULT", at.result_size),
            )
        ),
        f"{_prototype(monitor, prefix)};",
        "",
    ]
    return text.replace(f"\n#endif /* {upper}_H */", "\n".join(["", *lines, f"#endif /* {upper}_H */"]))


def _prototype(monitor: Monitor, prefix: str) -> str:
    at = monitor.layout
    return (
        f"void {prefix}_step(const double now[{at.now_size}], double state[{at.state_size}], double result[{at.result_size}])"
    )


def _numbers(monitor: Monitor, prefix: str) -> str:
    """Return the settings and parameters, and the function that uses them."""
    return "\n".join(
        [
            "",
            c_table(f"{prefix}_setting", monitor.setting),
            c_table(f"{prefix}_phi", monitor.model.values),
            _prototype(monitor, prefix),
            "{",
            f"    {prefix}_sample(now, {prefix}_setting, {prefix}_phi, state, result);",
            "}",
            "",
        ]
    )


def _samples(monitor: Monitor) -> Array:
    """Return a motion with a push in it, as `now` takes it."""
    robot, at = monitor.mechanism, monitor.layout
    step = min(STEP / monitor.settings.cutoff, monitor.settings.gap)
    t = step * np.arange(SAMPLES)[:, None]
    now = np.zeros((SAMPLES, at.now_size))
    now[1:, 0] = step
    q = 0.3 * np.sin((3.0 + np.arange(at.n)) * 0.3 * t / t[-1])
    if robot.loops:  # a small motion about home
        states = random_closed_motion(robot, 2)  # its first state is reachable
        home = states.q[1]
        tree = close_positions(robot, home + 0.2 * (states.q[0] - home) * q / 0.3)
        q = tree @ robot.actuator_matrix[0].T + robot.actuator_matrix[1]
    now[:, at.now["q"] : at.now["q"] + at.m] = q
    now[:, at.now["tau"] : at.now["tau"] + at.m] = 10.0 * (t > 0.5 * t[-1]) + np.arange(at.m)
    now[:, at.now["T"] :] = 30.0
    return now


def _test(monitor: Monitor, prefix: str) -> str:
    now, at = _samples(monitor), monitor.layout
    expected, state = np.empty((SAMPLES, at.result_size)), np.zeros(at.state_size)
    monitor.machine.run(now, monitor.setting, monitor.model.values, state, expected)
    return "\n".join(
        [
            f"/* Checks {prefix}.c on {SAMPLES} samples: prints the largest relative error, returns 0 below 1e-9. */",
            f'#include "{prefix}.h"',
            "",
            "#include <math.h>",
            "#include <stdio.h>",
            "",
            c_table("now", now),
            c_table("expected", expected),
            "int main(void)",
            "{",
            f"    static double state[{at.state_size}];",
            f"    double result[{at.result_size}];",
            "    double worst = 0.0;",
            "    int k;",
            "    int i;",
            f"    for (k = 0; k < {SAMPLES}; k++)",
            "    {",
            f"        {prefix}_step(&now[k * {at.now_size}], state, result);",
            f"        for (i = 0; i < {at.result_size}; i++)",
            "        {",
            f"            const double wanted = expected[(k * {at.result_size}) + i];",
            "            /* infinite for a joint that the fit did not use, NaN before the low-pass has settled */",
            "            const double size = fmax(1.0, fabs(wanted));",
            "            const int same = (result[i] == wanted) || ((result[i] != result[i]) && (wanted != wanted));",
            "            const double error = same ? 0.0 : (fabs(result[i] - wanted) / size);",
            "            worst = (error <= worst) ? worst : error;",
            "        }",
            "    }",
            '    (void)printf("largest relative error %.3e\\n", worst);',
            "    return (worst <= 1.0e-9) ? 0 : 1;",
            "}",
            "",
        ]
    )
