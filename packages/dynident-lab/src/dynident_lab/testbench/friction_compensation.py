"""Friction compensation with temperature: friction laws and thermal models, advanced with the measured speeds.

f = f_cold(v) [alpha (T - T0) + beta]        W = f_cold(v) v, filtered by the thermal model        [Pagani2022, Algorithm 1]

The C99 code is one step of all joints with constant numbers, and a self-test. A step at constant power has a closed form: no
integration, no drift, any step length.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers, step_length
from dynident.errors import IdentificationError
from dynident.files import write_atomic
from dynident.graph import Graph
from dynident.graph.algebra import absolute, sign
from dynident.graph.expression import Function, Node
from dynident.graph.print_c import c_files, c_number, c_self_test, c_table
from dynident.graph.printing import comment, identifier
from dynident.results import Result
from dynident_lab.testbench.heating import CampaignStudy
from dynident_lab.thermal.models import FirstOrder, SecondOrder

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SAMPLES, STEP = 40, 60.0  # of the self-test; steps of a minute let the joints warm up [s]


@dataclass(frozen=True, eq=False)
class FrictionCompensation(Result):
    """Torques that cancel the friction of all joints at any temperature.

    Parameters
    ----------
    joints : tuple of str
        Joints in the order of the torques.
    coefficients : tuple of tuple of float
        Cold friction a0, a1, ... of every joint.
    models : tuple of SecondOrder or FirstOrder
        Thermal model of every joint; without an anchor its temperature is in units of friction ratio.
    """

    joints: tuple[str, ...]
    coefficients: tuple[tuple[float, ...], ...]
    models: tuple[SecondOrder | FirstOrder, ...]

    @classmethod
    def of(cls, study: CampaignStudy) -> FrictionCompensation:
        """Return the compensation identified from a campaign."""
        chosen = [(entry, entry.best.model) for entry in study.heating]
        for entry, model in chosen:
            if not isinstance(model, SecondOrder | FirstOrder):
                raise IdentificationError(f"joint '{entry.joint}' has a {type(model).__name__}; fit SecondOrder or FirstOrder")
        models = tuple(model for _, model in chosen if isinstance(model, SecondOrder | FirstOrder))
        return cls(tuple(entry.joint for entry, _ in chosen), tuple(entry.coefficients for entry, _ in chosen), models)

    def start(self) -> tuple[Array, ...]:
        """Return the state of each joint after a long rest, for `step`."""
        return tuple(model.simulate([0.0, 1.0], 0.0).state[0] for model in self.models)

    def cold(self, v: ArrayLike) -> Array:
        """Return the friction of cold joints."""
        speed = numbers(v, "v")
        if speed.shape != (len(self.joints),):
            raise IdentificationError(f"v has shape {speed.shape}; give {len(self.joints)} speeds: {', '.join(self.joints)}")
        return np.array([cold_friction(a, x) for x, a in zip(speed, self.coefficients, strict=True)])

    def step(self, v: ArrayLike, dt: float, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        """Return the compensating torques, and the state after a step of this speed."""
        f, step = self.cold(v), step_length(dt)
        speed = numbers(v, "v")
        ratio = np.array([float(m.ratio(y[0])) for m, y in zip(self.models, state, strict=True)])
        after = tuple(m.advance(y, float(p), step) for m, y, p in zip(self.models, state, f * speed, strict=True))
        return f * ratio, after

    def to_c(self, folder: str | os.PathLike[str], name: str = "compensation") -> list[Path]:
        """Write `step` as C99 with its numbers, and a program that checks itself."""
        prefix = identifier(name).lower()
        files = c_files(prefix, [step_function(self, f"{prefix}_advance")], f"Friction of {_joints(self)}")
        files[f"{prefix}.h"] = _header(self, prefix, files[f"{prefix}.h"])
        files[f"{prefix}.c"] += _step(self, prefix)
        files[f"{prefix}_test.c"] = _test(self, prefix)
        return [write_atomic(Path(folder) / file, text) for file, text in files.items()]

    def plot(self) -> Figure:
        """Draw the friction of cold joints against speed.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from dynident.figures import label, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.6, "speed [rad/s, m/s]", "cold friction [N m, N]", "Friction compensation")
        v = np.linspace(0.0, 3.0, 100)
        for joint, a in zip(self.joints, self.coefficients, strict=True):
            axes.plot(v, cold_friction(a, v), linewidth=1.1, label=label(joint))
        axes.legend(frameon=False, fontsize=8)
        return figure

    def summary(self) -> str:
        """Return the compensation as text.

        Returns
        -------
        str
            One line per joint.
        """
        lines = []
        for joint, a, model in zip(self.joints, self.coefficients, self.models, strict=True):
            law = " ".join(f"a{k} {x:.4g}" for k, x in enumerate(a))
            lines.append(
                f"{joint}: {law}; {type(model).__name__} {' '.join(f'{n} {getattr(model, n):.4g}' for n in model.names)}"
            )
        return "\n".join(lines)


def cold_friction(coefficients: Sequence[float], v: Any) -> Any:
    """Return sign(v) (a0 + a1 |v| + a2 |v|^2 + ...), for expressions, numbers or arrays."""
    cold: Any = coefficients[-1]
    for factor in reversed(coefficients[:-1]):
        cold = cold * absolute(v) + factor
    return sign(v) * cold


def step_function(compensation: FrictionCompensation, name: str) -> Function:
    """Return the function from speeds, step and temperatures to torques and temperatures at the end of the step."""
    graph, n = Graph(), len(compensation.joints)
    size = sum(model.order for model in compensation.models)
    v, (dt,), y = graph.symbols("v", n), graph.symbols("dt", 1), graph.symbols("temperature", size)
    torque: list[Node] = []
    after: list[Node] = []
    for x, a, model in zip(v, compensation.coefficients, compensation.models, strict=True):
        state, y = y[: model.order], y[model.order :]
        cold, rest = cold_friction(a, x), model.reference
        torque.append(cold * (model.alpha * (state[0] - rest) + model.beta))
        after += model.step(model, state, cold * x, dt, rest, rest, 0.0)
    return Function(name, {"v": n, "dt": 1, "temperature": size}, {"torque": torque, "after": after})


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
        " * torque: friction at the start of the step, to be added to the controller's torque. */",
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
    """Return the function for users, which changes the state in place."""
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

    tables = [c_table("v", v), c_table("expected", np.array(expected))]
    declared = [f"    double state[{upper}_STATE] = {upper}_REST;", f"    double torque[{upper}_JOINTS];", "    int k;"]
    body = [
        f"    for (k = 0; k < {SAMPLES}; k++)",
        "    {",
        f"        {prefix}_step(&v[k * {n}], {c_number(STEP)}, state, torque);",
        f"        (void)compare(&expected[k * {n}], torque, {n});",
        "    }",
    ]
    return c_self_test(prefix, f"on {SAMPLES} steps", tables, declared, body)
