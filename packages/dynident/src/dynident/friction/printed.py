"""A law as text for other programs: its very expression in C and in LaTeX."""

from __future__ import annotations

from dynident.friction.forms import CHANNELS, Point
from dynident.friction.law import FrictionLaw
from dynident.graph.expression import Graph
from dynident.graph.function import Function
from dynident.graph.names import identifier
from dynident.graph.print_c import c_files
from dynident.graph.print_latex import latex_equations, latex_text

_GREEK = {"tau": r"\tau", "alpha": r"\alpha", "beta": r"\beta", "delta": r"\delta"}


def law_to_c(law: FrictionLaw, name: str = "friction") -> dict[str, str]:
    """Print a law as C99.

    Parameters
    ----------
    law : FrictionLaw
        Any law, one of your own included.
    name : str
        Name of the function and of the two files.

    Returns
    -------
    dict of str to str
        Texts of ``name.h`` and ``name.c`` with ``void name(const double x[4], const double p[k], double f[1])``: x is
        velocity, position, load and temperature, p has the order of `law.parameters`.
    """
    graph, own = Graph(), identifier(name)
    x = Point(*graph.symbols("x", len(CHANNELS)))
    p = dict(zip(law.parameters, graph.symbols("p", len(law.parameters)), strict=True))
    inputs = {"x": len(CHANNELS), "p": len(p)}
    about = f"friction '{law.name}': x is {', '.join(CHANNELS)}; p is {', '.join(p)}"
    return c_files(own, [Function(own, inputs, {"f": [law.expression(graph, x, p)]})], about)


def law_to_latex(law: FrictionLaw) -> str:
    """Print a law as a LaTeX equation.

    Parameters
    ----------
    law : FrictionLaw
        Any law, one of your own included.

    Returns
    -------
    str
        An ``align`` environment, which needs amsmath.
    """
    short = [name.rsplit(".", maxsplit=1)[-1] for name in law.parameters]

    def symbol(name: str) -> str:
        plain = name.rsplit(".", maxsplit=1)[-1]
        if short.count(plain) > 1:  # two parts of a sum use the same letter
            return rf"\mathrm{{{latex_text(name)}}}"
        head, rest = plain[:1], plain[1:]
        return _GREEK.get(plain) or (rf"{head}_{{\mathrm{{{latex_text(rest)}}}}}" if rest else head)

    return "\n".join(latex_equations([("f", law.expression(Graph()))], symbol))
