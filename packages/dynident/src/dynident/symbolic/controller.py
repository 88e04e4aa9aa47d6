"""A robot's model as code for its controller: trees, robots with loops, and more motors than degrees of freedom.

    tau = M(q) a + C(q, v) v + g(q)              inverse dynamics of the independent coordinates, without friction
    f(q, v)                                      friction alone, exact, or with its jumps spread over a speed
    A^T u = tau + f                              u: motors, of least sum_i w_i u_i^2, plus the internal part of a preload

Loops are closed by a fixed number of Newton steps from the last closed pose, which the caller keeps in a struct. A function
that cannot close them, or meets a singularity, returns an error code and leaves its outputs unchanged. Nothing is allocated,
and no function is recursive. The same functions are printed for NumPy and CasADi.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.files import write_atomic
from dynident.graph.algebra import dot, minimum, reciprocal, solve_symmetric
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Graph, Node
from dynident.graph.print_c import c_function, c_helpers, c_number, c_self_test, c_table
from dynident.graph.printing import (
    casadi_function,
    casadi_helpers,
    comment,
    identifier,
    identifiers,
    numpy_function,
    numpy_helpers,
)
from dynident.mechanics.actuation import coupling_rows, internal, least_norm
from dynident.mechanics.branch import newton_step
from dynident.mechanics.closure import close_positions
from dynident.mechanics.dynamics import SINGULAR, accelerations
from dynident.mechanics.equations import Equations
from dynident.mechanics.newton_euler import MovingTree, inverse_dynamics, positions_of
from dynident.mechanism.force import Columns
from dynident.mechanism.mechanism import Mechanism
from dynident.symbolic import controller_ik
from dynident.symbolic.controller_ik import c_body, pose_entries, reachable_targets, target_step

STEPS = 5  # Newton's method doubles the digits at each step: 0.03 rad, 1e-3, 1e-6, 1e-12, then rounding error
CLOSED = 1e-9  # size of the last step [rad or m]; the remaining error is its square
POSE = 12  # numbers of a pose
SAMPLES, WAY = 40, 0.01  # samples of the self-test, and their largest distance from home [rad or m]


class Call(NamedTuple):
    """One function of the header: its code, arguments besides the state, and result."""

    name: str
    meaning: str
    code: Function  # of pose, ...
    result: str
    singular: float | None = None  # the output ``ok`` must be above this number


class ControllerCode:
    """The model of a robot with its numbers inside: C99, NumPy and CasADi.

    Parameters
    ----------
    robot : Mechanism
        Identified robot, such as ``fit.model``, with or without loops, with at least as many motors as degrees of freedom for
        the functions of motors. Its name is the prefix of the functions and of the files.
    friction : float or None
        Speed over which the jumps of dry friction are spread [rad/s, m/s], 0 for exact jumps; None leaves friction out.
    frame : str, optional
        Link for which forward and inverse kinematics are written too.
    """

    def __init__(self, robot: Mechanism, friction: float | None = 0.0, frame: str | None = None) -> None:
        if any(isinstance(force, Columns) for force in robot.forces):
            raise DescriptionError(f"robot '{robot.name}' has forces given as Python functions of arrays; they have no C code")
        if robot.dof == 0:
            raise DescriptionError(f"robot '{robot.name}' has no moving joint, so it has no equations of motion")
        if frame is not None:
            robot.frame(frame)
        self.robot, self.friction, self.frame = robot, friction, frame
        self.name = identifier(robot.name).lower()
        self.motors = len(robot.actuators) if len(robot.actuators) >= robot.dof else 0
        #: Whether friction depends on the load of joints, and so on accelerations.
        self.loaded = any("tau" in own.law.looks_at for own in robot.friction.values())
        self.calls = self._calls()

    def _equations(self) -> Equations:
        graph = Graph()
        x = Equations(self.robot, graph, None, [graph.const(value) for value in self.robot.parameters.values.tolist()])
        if self.friction:
            x.width = graph.const(self.friction)
        return x

    def _function(self, name: str, outputs: dict[str, Sequence[Node]], **inputs: int) -> Function:
        return Function(f"{self.name}_{name}_at", {"q": positions_of(self.robot), **inputs}, outputs)

    def _calls(self) -> list[Call]:
        """Return all functions of the robot; each has its own graph, so that it computes no unneeded expressions."""
        n, k, make = self.robot.dof, self.motors, self._equations
        x = make()
        tau = x.project([b + t for b, t in zip(_bodies(x), x.tree_terms(x.phi, "rotor", "other"), strict=True)])
        inverse = self._function("inverse_dynamics", {"tau": tau}, v=n, a=n)
        calls = [Call("inverse_dynamics", "torques of the independent coordinates, without friction", inverse, "tau")]
        if self.friction is not None:
            x = make()
            tau = x.project(x.tree_terms(x.phi, "friction"))
            friction = self._function("friction", {"tau": tau}, v=n, **({"a": n} if self.loaded else {}))
            calls.append(Call("friction", "friction torques", friction, "tau"))
        x = make()
        gravity = self._function("gravity", {"g": x.gravity()})
        calls.append(Call("gravity", "torques that hold the bodies against gravity", gravity, "g"))
        mass = self._function("mass_matrix", {"M": [entry for row in make().mass_matrix() for entry in row]})
        calls.append(Call("mass_matrix", "mass matrix, row by row", mass, "M"))
        calls.append(Call("forward_dynamics", "accelerations that torques cause", self._forward(), "acc", SINGULAR))
        if k:
            x = make()
            loads, price, push = (x.graph.symbols(name, size) for name, size in (("f", n), ("w", k), ("u", k)))
            rows = [x.times_G(row) for row in coupling_rows(self.robot)]
            tau, ok = least_norm(rows, loads, price if k > n else None)
            inputs = {"f": n}
            if k > n:
                tau = [a + b for a, b in zip(tau, internal(rows, push)[0], strict=True)]
                inputs |= {"w": k, "u": k}
            ratios = [actuator.ratio for actuator in self.robot.actuators]
            motor = [t / ratio for t, ratio in zip(tau, ratios, strict=True)]
            share = self._function("motor_torques", {"motor": motor, "ok": [ok]}, **inputs)
            meaning = "torques of the motors that give torques f of the coordinates"
            calls.append(Call("motor_torques", meaning, share, "motor", 0.0))
            x = make()
            places = [dot([x.graph.const(c) for c in row], x.tree_q) for row in coupling_rows(self.robot).tolist()]
            places = [rho * motor.ratio + motor.offset for rho, motor in zip(places, self.robot.actuators, strict=True)]
            at = self._function("motor_positions", {"motor": places})
            calls.append(Call("motor_positions", "positions of the motors", at, "motor"))
        if self.frame is not None:
            meaning = f"pose of link {comment(self.frame)}: upper three rows of its homogeneous matrix"
            pose = self._function("forward_kinematics", {"T": pose_entries(make(), self.frame)})
            calls.append(Call("forward_kinematics", meaning, pose, "T"))
        return calls

    @cached_property
    def _targets(self) -> dict[str, Function]:
        """Newton steps of inverse kinematics by the name of their function."""
        if self.frame is None:
            return {}
        names = {"pose": "inverse_kinematics", "position": "inverse_kinematics_position"}
        return {
            names[kind]: target_step(MovingTree(self.robot), self.frame, kind, f"{self.name}_{names[kind]}_step")
            for kind in reachable_targets(self.robot, self.frame)
        }

    def _target_prototype(self, name: str) -> str:
        state = f"{self.name}_state *state, " * bool(self.robot.loops)
        target = "T[12]" if "T" in self._targets[name].inputs else "p[3]"
        return f"int {self.name}_{name}({state}const double {target}, double q[{self.robot.dof}])"

    def _forward(self) -> Function:
        """Return a = M^-1 (tau - h) with h all torques without acceleration, and the smallest pivot ratio of M."""
        x, n = self._equations(), self.robot.dof
        x.a = [x.graph.zero] * n
        M, tau = x.mass_matrix(), x.graph.symbols("tau", n)
        if self.friction is None:
            h = x.project([b + t for b, t in zip(_bodies(x), x.tree_terms(x.phi, "rotor", "other"), strict=True)])
            solved, pivots = solve_symmetric(M, [[t - b] for t, b in zip(tau, h, strict=True)])
        else:
            solved, pivots = accelerations(x, M, tau)
        ok = pivots[0] * reciprocal(M[0][0])
        for i, pivot in enumerate(pivots[1:], 1):
            ok = minimum(ok, pivot * reciprocal(M[i][i]))
        return self._function("forward_dynamics", {"acc": [row[0] for row in solved], "ok": [ok]}, v=n, tau=n)

    # ---- text -------------------------------------------------------------------------------------------------------

    @property
    def c_files(self) -> dict[str, str]:
        """C99: the header, the source, a self-test and a CMake project, by file name."""
        name = self.name
        texts = {f"{name}.h": self._header(), f"{name}.c": self._source(), f"{name}_test.c": self._test()}
        return {**{file: self._real(text) for file, text in texts.items()}, "CMakeLists.txt": _CMAKE.replace("@", name)}

    def _real(self, text: str) -> str:
        """Return C code with the number type that the header defines."""
        return re.sub(r"\bdouble\b", f"{self.name}_real", text).replace(f"typedef {self.name}_real", "typedef double")

    def _takes(self, call: Call) -> list[tuple[str, str]]:
        """Return type and name of every argument, the result last."""
        n, pose = self.robot.dof, f"{self.name}_state *"
        takes = [(pose, "state")] if self.robot.loops else []
        takes += [("const double ", f"q[{n}]")]
        for array, size in list(call.code.inputs.items())[1:]:
            takes.append(("const double *", array) if array in "wu" else ("const double ", f"{array}[{size}]"))
        return [*takes, ("double ", f"{call.result}[{len(call.code.outputs[call.result])}]")]

    def _prototype(self, call: Call) -> str:
        return f"int {self.name}_{call.name}({', '.join(kind + label for kind, label in self._takes(call))})"

    def _header(self) -> str:
        robot, name, upper = self.robot, self.name, self.name.upper()
        lines = [
            f"/* Model of robot '{comment(robot.name)}' for its controller, generated by dynident. SI units.",
            " *",
            f" * Every function returns {upper}_OK, or a code and leaves its outputs unchanged. */",
            f"#ifndef {upper}_H",
            f"#define {upper}_H",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            f"typedef double {name}_real; /* or float */",
            "",
            f"#define {upper}_OK 0",
            f"#define {upper}_NOT_CLOSED 1 /* the loops cannot be closed near the last pose */",
            f"#define {upper}_SINGULAR 2   /* the mass matrix, or the motors, in a singularity */",
            *(
                [f"#define {upper}_NOT_REACHED 3 /* the target of inverse kinematics, from the last pose */"]
                if self.frame
                else []
            ),
            "",
            f"#define {upper}_DOF {robot.dof}",
            *(f"#define {upper}_Q_{label.upper()} {i}" for i, label in enumerate(identifiers(robot.coordinate_names))),
            "",
        ]
        if self.motors:
            names = identifiers(actuator.name for actuator in robot.actuators)
            lines += [f"#define {upper}_MOTORS {self.motors}"]
            lines += [*(f"#define {upper}_MOTOR_{label.upper()} {i}" for i, label in enumerate(names)), ""]
        if robot.loops:
            lines += [
                "/* The last closed pose of all joints. Keep one per robot; q may move by a few degrees between two calls. */",
                f"typedef struct {{ double pose[{positions_of(robot)}]; }} {name}_state;",
                "",
                "/* Put the robot at home. */",
                f"void {name}_start({name}_state *state);",
                "",
                "/* Close the loops at q; all functions below do it first. */",
                f"int {name}_close({name}_state *state, const double q[{robot.dof}]);",
                "",
            ]
        for call in self.calls:
            more = (
                " w: prices of the motors' squares, INFINITY for motors that carry nothing; u: preload; NULL for equal prices "
                "and none."
            ) * ("w" in call.code.inputs)
            lines += [f"/* {call.meaning[0].upper()}{call.meaning[1:]}.{more} */", f"{self._prototype(call)};", ""]
        for name in self._targets:
            start = "the last closed pose" if robot.loops else "q"
            what = f"Coordinates at a {'position' if name.endswith('position') else 'pose'} of link {comment(self.frame or '')}"
            lines += [f"/* {what}, by Newton steps from {start}. */", f"{self._target_prototype(name)};", ""]
        if self.motors:
            parts = "inverse dynamics and friction" if any(c.name == "friction" for c in self.calls) else "inverse dynamics"
            lines += [f"/* Motor torques along a motion: {parts}. */", f"{self._feedforward()};", ""]
            if all(actuator.gain for actuator in robot.actuators):
                lines += ["/* Currents (or whatever the drives take) of motor torques. */", f"{self._currents()};", ""]
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", f"#endif /* {upper}_H */", ""])

    def _feedforward(self) -> str:
        n, state = self.robot.dof, f"{self.name}_state *state, " * bool(self.robot.loops)
        more = ", const double *w, const double *u" * (self.motors > n)
        takes = f"{state}const double q[{n}], const double v[{n}], const double a[{n}]{more}, double motor[{self.motors}]"
        return f"int {self.name}_feedforward({takes})"

    def _currents(self) -> str:
        return f"void {self.name}_currents(const double motor[{self.motors}], double current[{self.motors}])"

    def _source(self) -> str:
        robot, name = self.robot, self.name
        static = [*(call.code for call in self.calls), *self._targets.values()]
        bodies: list[str] = []
        if robot.loops:
            static.insert(0, self._newton)
            bodies += [self._close()]
        bodies += [self._wrapper(call) for call in self.calls]
        places = robot.closure.independent.tolist() if robot.loops else list(range(robot.dof))
        branch = self._branch if robot.loops else ""
        for label, step in self._targets.items():
            prototype = self._target_prototype(label)
            bodies.append(c_body(name, prototype, step, positions_of(robot), bool(robot.loops), places, branch))
        if self.motors:
            bodies.append(self._feedforward_body())
            if all(actuator.gain for actuator in robot.actuators):
                gains = [f"    current[{i}] = motor[{i}] / {c_number(a.gain or 0.0)};" for i, a in enumerate(robot.actuators)]
                bodies.append("\n".join([self._currents(), "{", *gains, "}", ""]))
        text = "\n".join([*(f"static {c_function(function, name)}" for function in static), *bodies])
        head = [f"/* Model of robot '{comment(robot.name)}', generated by dynident. */", f'#include "{name}.h"', ""]
        return "\n".join([*head, "#include <math.h>", "#include <stddef.h>", "", *c_helpers(name, text), text])

    @cached_property
    def _newton(self) -> Function:
        """The Newton step of the dependent coordinates."""
        return newton_step(MovingTree(self.robot), self.robot.closure.dependent.tolist(), f"{self.name}_newton")

    @cached_property
    def _branch(self) -> str:
        """The sign that makes the determinant of the closure at home positive, "" or "-"."""
        home, report = self.robot.closure.home[None], np.empty((1, 2))
        Compiled(self._newton)(1, {"q": np.array(home, dtype=np.float64), "next": np.empty(home.shape), "report": report})
        return "" if report[0, 0] > 0.0 else "-"

    def _close(self) -> str:
        """Return the functions that put the robot at home and close its loops."""
        robot, name, upper, wide = self.robot, self.name, self.name.upper(), positions_of(self.robot)
        way, home = self._branch, robot.closure.home
        goals = [f"    pose[{i}] = q[{k}];" for k, i in enumerate(robot.closure.independent.tolist())]
        return f"""{c_table(f"{name}_home", home)}
void {name}_start({name}_state *state)
{{
    int i;
    for (i = 0; i < {wide}; i++)
    {{
        state->pose[i] = {name}_home[i];
    }}
}}

int {name}_close({name}_state *state, const double q[{robot.dof}])
{{
    double pose[{wide}];
    double next[{wide}];
    double report[2] = {{0.0, 0.0}};
    int step;
    int i;
    for (i = 0; i < {wide}; i++)
    {{
        pose[i] = state->pose[i];
    }}
{chr(10).join(goals)}
    for (step = 0; step < {STEPS}; step++)
    {{
        {name}_newton(pose, next, report);
        for (i = 0; i < {wide}; i++)
        {{
            pose[i] = next[i];
        }}
    }}
    /* Not a number is neither; the sign of the determinant tells the branch. */
    if (!(report[1] <= ((sizeof(double) < 8U) ? 1.0e-4 : {c_number(CLOSED)})) || !({way}report[0] > 0.0))
    {{
        return {upper}_NOT_CLOSED;
    }}
    for (i = 0; i < {wide}; i++)
    {{
        state->pose[i] = pose[i];
    }}
    return {upper}_OK;
}}
"""

    def _wrapper(self, call: Call) -> str:
        """Return the function of the header: close the loops, then call the variant for a closed pose."""
        gives = ", ".join(["state->pose" if self.robot.loops else "q", *list(call.code.inputs)[1:], call.result])
        lines = [self._prototype(call), "{", *self._closing()]
        if call.singular is not None:
            return "\n".join([self._checked(call), *lines, f"    return {self.name}_{call.name}_checked({gives});", "}", ""])
        return "\n".join([*lines, f"    {call.code.name}({gives});", f"    return {self.name.upper()}_OK;", "}", ""])

    def _closing(self) -> list[str]:
        """Return the C lines that close the loops, or end with an error code."""
        if not self.robot.loops:
            return []
        ok = f"{self.name.upper()}_OK"
        return [
            f"    const int code = {self.name}_close(state, q);",
            f"    if (code != {ok})",
            "    {",
            "        return code;",
            "    }",
        ]

    def _checked(self, call: Call) -> str:
        """Return the function of a closed pose; it writes its result only if there is one."""
        inputs, size = list(call.code.inputs), len(call.code.outputs[call.result])
        takes = ", ".join(f"const double *{array}" for array in inputs)
        lines = [f"static int {self.name}_{call.name}_checked({takes}, double *{call.result})", "{"]
        if "w" in inputs:
            for label, value in (("ones", "1.0"), ("zeros", "0.0")):
                lines += [f"    static const double {label}[{self.motors}] = {{{', '.join([value] * self.motors)}}};"]
            inputs[-2:] = ["(w == NULL) ? ones : w", "(u == NULL) ? zeros : u"]
        return "\n".join(
            [
                *lines,
                f"    double made[{size}];",
                "    double ok[1];",
                "    int i;",
                f"    {call.code.name}({', '.join(inputs)}, made, ok);",
                f"    if (!(ok[0] > {c_number(call.singular or 0.0)}))",
                "    {",
                f"        return {self.name.upper()}_SINGULAR;",
                "    }",
                f"    for (i = 0; i < {size}; i++)",
                "    {",
                f"        {call.result}[i] = made[i];",
                "    }",
                f"    return {self.name.upper()}_OK;",
                "}",
                "",
            ]
        )

    def _feedforward_body(self) -> str:
        """Return the function that closes the loops once and distributes inverse dynamics plus friction to the motors."""
        name, n = self.name, self.robot.dof
        pose, more = "state->pose" if self.robot.loops else "q", "w, u, " * (self.motors > n)
        lines = [self._feedforward(), "{", f"    double f[{n}];"]
        if self.friction is not None:
            lines += [f"    double rest[{n}];", "    int i;"]
        lines += [*self._closing(), f"    {name}_inverse_dynamics_at({pose}, v, a, f);"]
        if self.friction is not None:
            lines += [
                f"    {name}_friction_at({pose}, v, {'a, ' * self.loaded}rest);",
                f"    for (i = 0; i < {n}; i++)",
                "    {",
            ]
            lines += ["        f[i] += rest[i];", "    }"]
        return "\n".join([*lines, f"    return {name}_motor_torques_checked({pose}, f, {more}motor);", "}", ""])

    # ---- self-test --------------------------------------------------------------------------------------------------

    def _test(self) -> str:
        """Return a program that compares every function with machine code of the same expressions along a small motion."""
        robot, name, n = self.robot, self.name, self.robot.dof
        data = self._path()
        pose = close_positions(robot, data["q"]) if robot.loops else data["q"]
        ones, zeros = np.ones((SAMPLES, self.motors)), np.zeros((SAMPLES, self.motors))
        known = {"q": pose, "v": data["v"], "a": data["a"], "tau": data["a"], "f": data["a"], "w": ones, "u": zeros}
        tables = [c_table(f"test_{array}", values) for array, values in data.items()]
        body, largest = [], 1
        for call in self.calls:
            outputs = {array: np.empty((SAMPLES, len(nodes))) for array, nodes in call.code.outputs.items()}
            Compiled(call.code)(SAMPLES, {array: known[array] for array in call.code.inputs} | outputs)
            size = len(call.code.outputs[call.result])
            largest = max(largest, size)
            tables.append(c_table(f"expected_{call.name}", outputs[call.result]))
            arrays = ["v" if array == "v" else "a" for array in list(call.code.inputs)[1:] if array not in "wu"]
            gives = ["&state"] * bool(robot.loops) + [f"&test_{array}[k * {n}]" for array in ("q", *arrays)]
            gives += ["NULL", "NULL"] * ("w" in call.code.inputs)
            body += [f"        failed += {name}_{call.name}({', '.join([*gives, 'result'])});"]
            body += [f"        (void)compare(&expected_{call.name}[k * {size}], result, {size});"]
        for label, step in self._targets.items():
            expected, state = f"expected_forward_kinematics[k * {POSE}", ["&state"] * bool(robot.loops)
            body += ["        {"]
            checked = [(0, POSE)]
            if "p" in step.inputs:
                checked = [(3, 1), (7, 1), (11, 1)]
                body += [f"            const double goal[3] = {{{', '.join(f'{expected} + {i}]' for i, _ in checked)}}};"]
            wanted = "goal" if "p" in step.inputs else f"&{expected}]"
            body += [f"            failed += {name}_{label}({', '.join([*state, wanted, 'near'])});"]
            body += [f"            failed += {name}_forward_kinematics({', '.join([*state, 'near', 'result'])});"]
            body += [f"            (void)compare(&{expected} + {i}], &result[{i}], {size});" for i, size in checked]
            body += ["        }"]
        declared = [f"    double result[{largest}];", "    int k;"]
        run = []
        if robot.loops:
            declared.append(f"    {name}_state state;")
            run.append(f"    {name}_start(&state);")
        if self._targets:
            declared.append(f"    double near[{n}];")
            run += [f"    for (k = 0; k < {n}; k++)", "    {", "        near[k] = test_q[k];", "    }"]
        run += [f"    for (k = 0; k < {SAMPLES}; k++)", "    {", *body, "    }"]
        return c_self_test(name, f"along {SAMPLES} samples", tables, declared, run)

    # ---- Python -----------------------------------------------------------------------------------------------------

    @property
    def numpy(self) -> str:
        """A module that needs NumPy only; the last axis of arrays is the element, the others are samples."""
        text = self._functions(numpy_function)
        module = self._module("NumPy", "import numpy as np", [*numpy_helpers(text), text], _NUMPY_CLOSE)
        return module + self._python_targets(controller_ik.NUMPY)

    def _python_targets(self, template: str) -> str:
        """Return inverse kinematics of the NumPy or CasADi module."""
        loops, texts = bool(self.robot.loops), []
        for label, step in self._targets.items():
            given = {"suffix": label.removeprefix("inverse_kinematics"), "target": list(step.inputs)[1], "link": self.frame}
            start = "HOME" if loops else repr((0.0,) * self.robot.dof)
            result = "q[PLACES], q" if loops else "q"
            more = {"start": start, "result": result, "steps": controller_ik.STEPS, "reached": controller_ik.REACHED}
            texts.append(template.format(**given, **more, fixed=controller_ik.FIXED))
        return "".join(texts)

    @property
    def casadi(self) -> str:
        """A module of functions that take and return CasADi's symbols, to be differentiated."""
        text = self._functions(casadi_function)
        module = self._module("CasADi", "import casadi as ca", [*casadi_helpers(text), text], _CASADI_CLOSE)
        return module + self._python_targets(controller_ik.CASADI)

    def _functions(self, write: Callable[..., str]) -> str:
        """Return the functions of poses, written by a printer of Python code."""
        texts = [write(replace(self._newton, name="newton"))] if self.robot.loops else []
        shapes = {"M": (self.robot.dof, self.robot.dof)}
        texts += [write(replace(call.code, name=f"{call.name}_at"), shapes=shapes) for call in self.calls]
        texts += [write(replace(step, name=f"{label}_step")) for label, step in self._targets.items()]
        return "\n\n".join(texts)

    def _module(self, package: str, imports: str, functions: list[str], close: str) -> str:
        """Return a module: functions of closed poses, then functions of coordinates."""
        robot, n = self.robot, self.robot.dof
        title = f"Model of robot '{comment(robot.name)}' for its controller, generated by dynident; needs {package}. SI units."
        lines = [f'"""{title}"""', "", imports, "", f"COORDINATES = {robot.coordinate_names!r}"]
        lines += [f"MOTORS = {tuple(actuator.name for actuator in robot.actuators)!r}", "", "\n\n".join(functions)]
        if robot.loops:
            places = {"HOME": robot.closure.home.tolist(), "PLACES": robot.closure.independent.tolist()}
            numbers = [f"{name} = {values!r}" for name, values in places.items()]
            lines += ["", *numbers, close.format(steps=STEPS, closed=CLOSED, sign=self._branch)]
        start = ", start=HOME" * bool(robot.loops)
        for call in self.calls:
            inputs = [array for array in call.code.inputs if array not in "qwu"]
            at = "close(q, start)" if robot.loops else "q"
            gives = [at, *inputs, *(["ONES if w is None else w", "ZEROS if u is None else u"] * ("w" in call.code.inputs))]
            takes = ", ".join(["q", *inputs]) + ", w=None, u=None" * ("w" in call.code.inputs) + start
            lines += ["", f"def {call.name}({takes}):", f'    """Return {call.meaning}."""']
            last = "[0]" * (call.singular is not None)
            lines += [f"    return {call.name}_at({', '.join(gives)}){last}", ""]
        if self.motors:
            if self.motors > n:
                lines += ["", f"ONES, ZEROS = {[1.0] * self.motors}, {[0.0] * self.motors}"]
            more, at = ", w=None, u=None" * (self.motors > n), ", start=start" * bool(robot.loops)
            rest = f" + friction(q, v{', a' * self.loaded}{at})" * (self.friction is not None)
            lines += ["", f"def feedforward(q, v, a{more}{start}):", '    """Return motor torques along a motion."""']
            lines += [f"    f = inverse_dynamics(q, v, a{at}){rest}"]
            lines += [f"    return motor_torques(q, f{', w=w, u=u' * bool(more)}{at})", ""]
        return "\n".join(lines)

    def _path(self) -> dict[str, Array]:
        """Return a small motion about home, or, for trees, about a posture with bent joints."""
        robot, t = self.robot, np.linspace(0.0, 2.0 * np.pi, SAMPLES)[:, None]
        phase = np.arange(1.0, 1.0 + robot.dof)
        home = robot.closure.home[robot.closure.independent] if robot.loops else 0.7 * np.sin(phase)  # stretched is singular
        way = WAY * (np.sin(t + phase) - np.sin(phase))
        return {"q": home + way, "v": np.cos(t + phase), "a": -3.0 * np.sin(2.0 * t + phase)}


def _bodies(x: Equations) -> list[Node]:
    """Return the torques of the bodies on all tree coordinates."""
    return inverse_dynamics(x.state, x.bodies(x.phi))


_NUMPY_CLOSE = '''

def close(q, start=HOME):
    """Return the closed pose of all joints at coordinates q, a few degrees from a closed pose."""
    q = np.asarray(q, dtype=float)
    pose = np.array(np.broadcast_to(start, (*q.shape[:-1], len(HOME))))
    pose[..., PLACES] = q
    for _ in range({steps}):
        pose, report = newton(pose)
    if not (np.all(report[..., 1] <= {closed!r}) and np.all({sign}report[..., 0] > 0.0)):
        raise ValueError("the loops cannot be closed near the start")
    return pose
'''

_CASADI_CLOSE = '''

def close(q, start=HOME):
    """Return the closed pose of all joints at coordinates q, a few degrees from a closed pose."""
    q = ca.SX(q) if not isinstance(q, (ca.SX, ca.MX, ca.DM)) else q
    pose = [start[i] if i not in PLACES else q[PLACES.index(i)] for i in range(len(HOME))]
    pose = ca.vertcat(*pose)
    for _ in range({steps}):
        pose = newton(pose)[0]
    return pose
'''

_CMAKE = """cmake_minimum_required(VERSION 3.10)
project(@ C)
add_library(@ @.c)
target_include_directories(@ PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
if(NOT MSVC)
  target_link_libraries(@ PUBLIC m)
endif()
enable_testing()
add_executable(@_test @_test.c)
target_link_libraries(@_test @)
add_test(NAME @_test COMMAND @_test)
"""


def write_model(
    mechanism: Mechanism,
    folder: str | os.PathLike[str],
    c: bool = True,
    numpy: bool = True,
    casadi: bool = True,
    friction: float | None = 0.0,
    frame: str | None = None,
) -> list[Path]:
    """Write the model of a `mechanism` with its own numbers, such as ``fit.model``, for a controller; returns the files.

    Functions of the independent coordinates: ``inverse_dynamics(q, v, a)`` without friction, ``friction(q, v)``,
    ``gravity(q)``, ``mass_matrix(q)``, ``forward_dynamics(q, v, tau)``, and of the motors: ``motor_torques(q, f)`` and
    ``feedforward(q, v, a)``, of minimum norm where there are more motors than degrees of freedom. Loops are closed from the
    last closed pose. With a `frame` there are ``forward_kinematics(q)`` and ``inverse_kinematics(T)``.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with its numbers.
    folder : path
        Output folder.
    c, numpy, casadi : bool
        Write ``<robot>.h``, ``.c``, ``_test.c`` and ``CMakeLists.txt``; ``<robot>.py``; ``<robot>_casadi.py``.
    friction : float or None
        Speed over which the jumps of dry friction are spread [rad/s, m/s], 0 for exact jumps; None leaves friction out.
    frame : str, optional
        Link for which forward and inverse kinematics are written too.
    """
    code = ControllerCode(mechanism, friction=friction, frame=frame)
    files = code.c_files if c else {}
    if numpy:
        files[f"{code.name}.py"] = code.numpy
    if casadi:
        files[f"{code.name}_casadi.py"] = code.casadi
    return [write_atomic(Path(folder) / file, text) for file, text in files.items()]
