"""Temperature-aware friction compensation as C99: one step of all joints with its numbers inside, and a self-test.

T1' , T2' of a step with a held power have a closed form (zero-order hold): no integration, no drift, any step length.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.files import write_atomic
from dynident.graph import Function, Graph, exp, sign, sqrt, where
from dynident.graph.expression import Node
from dynident.graph.print_c import c_files, c_number
from dynident.graph.printing import comment, identifier
from dynident_lab.thermal.zones import SecondOrder

if TYPE_CHECKING:
    from dynident_lab.testbench.compensated import FrictionCompensation

SAMPLES, STEP = 40, 60.0  # of the self-test; steps of a minute let the joints warm up [s]
SMALL = 1e-2  # below it (1 - exp(-x)) / x is a series, which loses no digits


def write_c(compensation: FrictionCompensation, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write header, source and self-test; `FrictionCompensation.to_c` is the short way."""
    prefix = identifier(name).lower()
    files = c_files(prefix, [step_function(compensation, f"{prefix}_advance")], f"Friction of {_joints(compensation)}")
    files[f"{prefix}.h"] = _header(compensation, prefix, files[f"{prefix}.h"])
    files[f"{prefix}.c"] += _step(compensation, prefix)
    files[f"{prefix}_test.c"] = _test(compensation, prefix)
    return [write_atomic(Path(folder) / file, text) for file, text in files.items()]


def step_function(compensation: FrictionCompensation, name: str) -> Function:
    """Return speeds, step and temperatures -> torques and temperatures at the end of the step."""
    graph, n = Graph(), len(compensation.joints)
    size = sum(model.order for model in compensation.models)
    v, (dt,), y = graph.symbols("v", n), graph.symbols("dt", 1), graph.symbols("temperature", size)
    torque: list[Node] = []
    after: list[Node] = []
    at = 0
    for x, a, model in zip(v, compensation.coefficients, compensation.models, strict=True):
        state = y[at : at + model.order]
        at += model.order
        size_of_speed: Any = abs(x)
        cold: Any = graph.const(a[-1])
        for factor in reversed(a[:-1]):
            cold = cold * size_of_speed + factor
        torque.append(sign(x) * cold * (model.alpha * (state[0] - model.reference) + model.beta))
        after += _advanced(graph, model, state, cold * size_of_speed, dt)
    inputs = {"v": n, "dt": 1, "temperature": size}
    return Function(name, inputs, {"torque": torque, "after": after})


def _advanced(graph: Graph, model: Any, y: list[Node], power: Node, dt: Node) -> list[Node]:
    """Return the temperatures after a step of held power, y+ = y_inf + exp(A dt) (y - y_inf)."""
    alpha, beta, T0 = model.alpha, model.beta, model.reference
    if not isinstance(model, SecondOrder):
        rate = (power * alpha - model.K) / model.C
        end = -(power * (beta - alpha * T0) + model.K * T0) / (model.C * rate)
        return [end + exp(rate * dt) * (y[0] - end)]
    a, b = (power * alpha - model.K1) / model.C1, graph.const(model.K1 / model.C1)
    c, d = model.K1 / model.C2, -(model.K1 + model.K2) / model.C2
    p, q = power * (beta - alpha * T0) / model.C1, model.K2 * T0 / model.C2
    spread = sqrt((0.5 * (a - d)) ** 2 + b * c)
    slow, det = 0.5 * (a + d) + spread, a * d - b * c
    end1, end2 = (b * q - d * p) / det, (c * p - a * q) / det
    gap = 2.0 * spread * dt
    series = 1.0 - gap * (0.5 - gap * (1.0 / 6.0 - gap * (1.0 / 24.0 - gap * (1.0 / 120.0 - gap / 720.0))))
    safe = where(gap < SMALL, graph.const(1.0), gap)
    part = where(gap < SMALL, series, (1.0 - exp(-safe)) / safe) * dt
    e1, e2, decay = y[0] - end1, y[1] - end2, exp(slow * dt)
    first = e1 + part * ((a - slow) * e1 + b * e2)
    second = e2 + part * (c * e1 + (d - slow) * e2)
    return [end1 + decay * first, end2 + decay * second]


def _joints(compensation: FrictionCompensation) -> str:
    return ", ".join(comment(joint) for joint in compensation.joints)


def _rest(compensation: FrictionCompensation) -> list[float]:
    return [float(x) for state in compensation.start() for x in state]


def _header(compensation: FrictionCompensation, prefix: str, text: str) -> str:
    upper, rest = prefix.upper(), _rest(compensation)
    lines = [
        f"/* Joints: {_joints(compensation)}. SI units.",
        " * v:      speeds; the wanted ones where a joint may stand still;",
        " * dt:     length of the step;",
        " * state:  temperatures of the zones of every joint, at the start and then at the end of the step;",
        " * torque: friction at the start of the step, to be added to what the controller wants. */",
        f"#define {upper}_JOINTS {len(compensation.joints)}",
        f"#define {upper}_STATE {len(rest)}",
        f"/* temperatures of joints that have rested for long */\n#define {upper}_REST {{ {', '.join(map(c_number, rest))} }}",
        f"{_prototype(compensation, prefix)};",
        "",
    ]
    return text.replace(f"\n#endif /* {upper}_H */", "\n".join(["", *lines, f"#endif /* {upper}_H */"]))


def _prototype(compensation: FrictionCompensation, prefix: str) -> str:
    n, size = len(compensation.joints), len(_rest(compensation))
    return f"void {prefix}_step(const double v[{n}], double dt, double state[{size}], double torque[{n}])"


def _step(compensation: FrictionCompensation, prefix: str) -> str:
    """Return the function that users call: the state is changed in place."""
    size = len(_rest(compensation))
    return "\n".join(
        [
            "",
            _prototype(compensation, prefix),
            "{",
            f"    double after[{size}];",
            "    int i;",
            f"    {prefix}_advance(v, &dt, state, torque, after);",
            f"    for (i = 0; i < {size}; i++)",
            "    {",
            "        state[i] = after[i];",
            "    }",
            "}",
            "",
        ]
    )


def _test(compensation: FrictionCompensation, prefix: str) -> str:
    n, upper = len(compensation.joints), prefix.upper()
    v = 2.0 * np.sin(0.3 * np.arange(SAMPLES)[:, None] + np.arange(n)) + 0.5
    expected, state = [], compensation.start()
    for row in v:
        torque, state = compensation.step(row, STEP, state)
        expected.append(torque)

    def table(name: str, values: Any) -> str:
        flat = [c_number(float(x)) for x in np.ravel(values)]
        rows = [", ".join(flat[i : i + 6]) for i in range(0, len(flat), 6)]
        return f"static const double {name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};\n"

    return "\n".join(
        [
            f"/* Checks {prefix}.c on {SAMPLES} steps: prints the largest error, returns 0 below 1e-9. */",
            f'#include "{prefix}.h"',
            "",
            "#include <math.h>",
            "#include <stdio.h>",
            "",
            table("v", v),
            table("expected", expected),
            "int main(void)",
            "{",
            f"    double state[{upper}_STATE] = {upper}_REST;",
            f"    double torque[{upper}_JOINTS];",
            "    double worst = 0.0;",
            "    int k;",
            "    int i;",
            f"    for (k = 0; k < {SAMPLES}; k++)",
            "    {",
            f"        {prefix}_step(&v[k * {n}], {c_number(STEP)}, state, torque);",
            f"        for (i = 0; i < {n}; i++)",
            "        {",
            f"            const double wanted = expected[(k * {n}) + i];",
            "            const double error = fabs(torque[i] - wanted) / fmax(1.0, fabs(wanted));",
            "            worst = (error > worst) ? error : worst;",
            "        }",
            "    }",
            '    (void)printf("largest relative error %.3e\\n", worst);',
            "    return (worst <= 1.0e-9) ? 0 : 1;",
            "}",
            "",
        ]
    )
