"""Standalone C99: one header, one source, and a harness that checks itself. No allocation, no recursion, doubles only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.symbolic.expression import Node
from dynident.symbolic.names import comment, identifier, identifiers
from dynident.symbolic.program import Program, Quantity
from dynident.symbolic.schedule import Dialect, schedule

HELPERS = {
    "sinc": """static double {0}_sinc(const double square)
{{
    double value = 1.0 - (square / 6.0);
    if (square > 1.0e-12)
    {{
        const double angle = sqrt(square);
        value = sin(angle) / angle;
    }}
    return value;
}}
""",
    "cosc": """static double {0}_cosc(const double square)
{{
    double value = 0.5 - (square / 24.0);
    if (square > 1.0e-12)
    {{
        value = (1.0 - cos(sqrt(square))) / square;
    }}
    return value;
}}
""",
    "sign": """static double {0}_sign(const double x)
{{
    double value = 0.0;
    if (x > 0.0)
    {{
        value = 1.0;
    }}
    else if (x < 0.0)
    {{
        value = -1.0;
    }}
    else
    {{
        value = 0.0;
    }}
    return value;
}}
""",
    "positive": """static double {0}_positive(const double x)
{{
    double value = 0.0;
    if (x > 0.0)
    {{
        value = x;
    }}
    return value;
}}
""",
    "step": """static double {0}_step(const double x)
{{
    double value = 0.0;
    if (x > 0.0)
    {{
        value = 1.0;
    }}
    return value;
}}
""",
}


@dataclass(frozen=True)
class CSources:
    """Generated C.

    Parameters
    ----------
    name : str
        Prefix of all functions and of the files.
    header, source, harness : str
        Text of ``name.h``, ``name.c`` and ``name_test.c``; the harness prints the largest relative error of every function
        on embedded test vectors and returns 0 when all are below 1e-9.
    """

    name: str
    header: str
    source: str
    harness: str

    @property
    def files(self) -> dict[str, str]:
        """File names and texts."""
        return {
            f"{self.name}.h": self.header,
            f"{self.name}.c": self.source,
            f"{self.name}_test.c": self.harness,
        }


def to_c(program: Program, name: str | None = None, *, samples: int = 5, seed: int = 0) -> CSources:
    """Print a program as C99.

    Every quantity is one function, as in ``void arm_inverse_dynamics(const double q[6], const double v[6],
    const double a[6], const double phi[84], double tau[6])``, and one more that calls it for many samples, one after the
    other in memory: ``void arm_inverse_dynamics_batch(size_t samples, ...)``. Matrices are stored row by row.

    Parameters
    ----------
    program : Program
        Closed forms.
    name : str, optional
        Prefix of the functions; from the robot's name when omitted.
    samples : int
        Test vectors per function in the harness.
    seed : int
        Seed of the test vectors.

    Returns
    -------
    CSources
        Header, source and harness.
    """
    prefix = identifier(name if name is not None else program.name).lower()
    forms = list(program.quantities.values())
    return CSources(
        prefix,
        _header(program, prefix, forms),
        _source(program, prefix, forms),
        _harness(program, prefix, forms, samples, seed),
    )


def number(value: float) -> str:
    """Return a double constant that C reads back exactly.

    Parameters
    ----------
    value : float
        Number.

    Returns
    -------
    str
        Its text, with a point or an exponent.
    """
    text = repr(float(value))
    return text if "." in text or "e" in text else f"{text}.0"


def signature(program: Program, prefix: str, form: Quantity) -> str:
    """Return the prototype of a quantity without the semicolon.

    Parameters
    ----------
    program : Program
        Closed forms.
    prefix : str
        Prefix of the function.
    form : Quantity
        The quantity.

    Returns
    -------
    str
        ``void prefix_name(const double q[n], ..., double result[m])``.
    """
    inputs = [f"const double {array}[{len(program.inputs[array])}]" for array in program.needed(form.name)]
    return f"void {prefix}_{form.name}({', '.join([*inputs, f'double {form.result}[{len(form.entries)}]'])})"


def batch_signature(program: Program, prefix: str, form: Quantity) -> str:
    """Return the prototype of the batch variant without the semicolon; `phi`, `beta` and `geometry` are given once.

    Parameters
    ----------
    program : Program
        Closed forms.
    prefix : str
        Prefix of the function.
    form : Quantity
        The quantity.

    Returns
    -------
    str
        ``void prefix_name_batch(size_t samples, const double *q, ..., double *result)``.
    """
    inputs = [f"const double *{array}" for array in program.needed(form.name)]
    return f"void {prefix}_{form.name}_batch(size_t samples, {', '.join([*inputs, f'double *{form.result}'])})"


def _header(program: Program, prefix: str, forms: Sequence[Quantity]) -> str:
    upper = prefix.upper()
    lines = [
        f"/* Closed forms of robot '{comment(program.name)}', generated by dynident. SI units, matrices row by row. */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stddef.h>",
        "",
    ]
    used = {array for form in forms for array in program.needed(form.name)}
    for array in program.inputs:
        if array not in used:
            continue
        lines.append(f"/* Places in {array}. */")
        for i, (label, own) in enumerate(zip(identifiers(program.inputs[array]), program.inputs[array], strict=True)):
            note = f" /* {comment(own)} */" if label != own else ""
            lines.append(f"#define {upper}_{array.upper()}_{label.upper()} {i}{note}")
        lines.append("")
    for form in forms:
        cost = program.operations(form.name)
        shape = " x ".join(map(str, form.shape))
        lines += [
            f"/* {comment(form.meaning)}, {shape}: {cost['+']} additions, {cost['*']} products, {cost['sin']} sines, "
            f"{cost['cos']} cosines. */",
            f"{signature(program, prefix, form)};",
            f"{batch_signature(program, prefix, form)};",
            "",
        ]
    return "\n".join([*lines, f"#endif /* {upper}_H */", ""])


def dialect(program: Program, prefix: str) -> Dialect:
    """Return how C writes the expressions of a program.

    Parameters
    ----------
    program : Program
        Closed forms.
    prefix : str
        Prefix of the helper functions.

    Returns
    -------
    Dialect
        C99.
    """

    def symbol(name: str) -> str:
        array, place = program.symbols[name]
        return f"{array}[{place}]"

    calls = {"sin": "sin({0})", "cos": "cos({0})", **{op: f"{prefix}_{op}({{0}})" for op in HELPERS}}
    return Dialect(symbol, number, calls)


def local_name(node: Node, count: int) -> str:
    """Return the name of a sub-expression: c1 and s1 for cosine and sine of q[0], t<number> otherwise.

    Parameters
    ----------
    node : Node
        Sub-expression.
    count : int
        How many were named before it.

    Returns
    -------
    str
        Its name.
    """
    if node.op in ("sin", "cos") and node.args[0].op == "symbol" and node.args[0].name.startswith("q["):
        return f"{node.op[0]}{int(node.args[0].name[2:-1]) + 1}"
    return f"t{count}"


def _source(program: Program, prefix: str, forms: Sequence[Quantity]) -> str:
    lines = [
        f"/* Closed forms of robot '{comment(program.name)}', generated by dynident. */",
        f'#include "{prefix}.h"',
        "",
        "#include <math.h>",
        "",
    ]
    style = dialect(program, prefix)
    bodies: list[str] = []
    for form in forms:
        bodies += _function(program, prefix, form, style)
    text = "\n".join(bodies)
    helpers = [body.format(prefix) for op, body in HELPERS.items() if f"{prefix}_{op}(" in text]
    return "\n".join([*lines, *helpers, text])


def _function(program: Program, prefix: str, form: Quantity, style: Dialect) -> list[str]:
    plan = schedule(form.entries, style, local_name)
    lines = [signature(program, prefix, form), "{"]
    lines += [f"    const double {s.name} = {s.text};" for s in plan.statements]
    lines += [f"    {form.result}[{i}] = {text};" for i, text in enumerate(plan.results)]
    arrays = program.needed(form.name)
    once = ("phi", "beta", "geometry")
    calls = [
        array if array in once else f"&{array}[sample * (size_t){len(program.inputs[array])}]" for array in arrays
    ]
    calls.append(f"&{form.result}[sample * (size_t){len(form.entries)}]")
    lines += [
        "}",
        "",
        batch_signature(program, prefix, form),
        "{",
        "    size_t sample;",
        "    for (sample = 0U; sample < samples; sample++)",
        "    {",
        f"        {prefix}_{form.name}({', '.join(calls)});",
        "    }",
        "}",
        "",
    ]
    return lines


def _harness(program: Program, prefix: str, forms: Sequence[Quantity], samples: int, seed: int) -> str:
    """Return a main that compares every function with numbers from `Program.evaluate`."""
    rng = np.random.default_rng(seed)
    data: dict[str, np.ndarray] = {}
    for array, names in program.inputs.items():
        count = 1 if array in ("phi", "beta", "geometry") else samples
        own = program.values.get(array)
        use_own = own is not None and array == "geometry"
        data[array] = np.atleast_2d(own) if use_own and own is not None else rng.uniform(-1.5, 1.5, (count, len(names)))
    lines = [
        f"/* Checks the functions of {prefix}.c on {samples} test vectors each: prints the largest relative errors. */",
        f'#include "{prefix}.h"',
        "",
        "#include <math.h>",
        "#include <stdio.h>",
        "",
    ]
    used = {array for form in forms for array in program.needed(form.name)}
    lines += [_table(f"test_{array}", data[array]) for array in program.inputs if array in used]
    main = ["int main(void)", "{", "    int failed = 0;"]
    for form in forms:
        arrays = program.needed(form.name)
        expected = program.evaluate(form.name, **{array: data[array] for array in arrays})
        count, width = expected.shape[0], len(form.entries)
        lines.append(_table(f"expected_{form.name}", expected.reshape(count, width)))
        lines.append(f"static double computed_{form.name}[{count * width}];\n")
        inputs = ", ".join([f"test_{array}" for array in arrays])
        comma = ", " if inputs else ""
        main += [
            f"    {prefix}_{form.name}_batch({count}U, {inputs}{comma}computed_{form.name});",
            f'    failed += compare("{form.name}", {count * width}U, expected_{form.name}, computed_{form.name});',
        ]
    lines.append(_COMPARE)
    return "\n".join([*lines, *main, "    return (failed == 0) ? 0 : 1;", "}", ""])


def _table(name: str, values: np.ndarray) -> str:
    flat = [number(x) for x in values.ravel()]
    rows = [", ".join(flat[i : i + 6]) for i in range(0, len(flat), 6)]
    return f"static const double {name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};"


_COMPARE = """static int compare(const char *name, const size_t count, const double *expected, const double *computed)
{
    double largest = 1.0;
    double error = 0.0;
    int failed = 1;
    size_t i;
    for (i = 0U; i < count; i++)
    {
        largest = fmax(largest, fabs(expected[i]));
        error = fmax(error, fabs(expected[i] - computed[i]));
    }
    error = error / largest;
    if (error <= 1.0e-9)
    {
        failed = 0;
    }
    (void)printf("%s %.3e\\n", name, error);
    return failed;
}
"""
