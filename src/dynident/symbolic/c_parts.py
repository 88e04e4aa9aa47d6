"""Parts of the generated C that are the same for all robots: helper functions and the harness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.symbolic.program import Program, Quantity

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


def harness(program: Program, prefix: str, forms: Sequence[Quantity], samples: int, seed: int) -> str:
    """Return a main that compares every function with numbers from `Program.evaluate`.

    Parameters
    ----------
    program : Program
        Closed forms.
    prefix : str
        Prefix of the functions.
    forms : sequence of Quantity
        What to check.
    samples : int
        Test vectors each.
    seed : int
        Seed of the test vectors.

    Returns
    -------
    str
        C source.
    """
    rng = np.random.default_rng(seed)
    data: dict[str, np.ndarray] = {}
    for array, names in program.inputs.items():
        count = 1 if array in ("phi", "beta", "geometry") else samples
        own = program.values.get(array)
        use_own = own is not None and array in ("geometry", "x")  # not phi: random ones test more
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
    int failed = 0;
    size_t i;
    for (i = 0U; i < count; i++)
    {
        largest = fmax(largest, fabs(expected[i]));
    }
    for (i = 0U; i < count; i++)
    {
        const double relative = fabs(expected[i] - computed[i]) / largest;
        error = fmax(error, relative);
        if (!(relative <= 1.0e-9)) /* also when it is not a number */
        {
            failed = 1;
        }
    }
    (void)printf("%s %.3e\\n", name, error);
    return failed;
}
"""
