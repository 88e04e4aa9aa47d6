"""Expressions, their derivatives, printers for people, and one compiler: what must be fast is written once and printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.graph.cache import clear as clear_cache
from dynident.graph.cache import usage as cache_usage
from dynident.graph.calculus import derivative, derivative_matrix, forward, reverse
from dynident.graph.compiled import Compiled
from dynident.graph.elementary import (
    absolute,
    arctan2,
    both,
    cos,
    either,
    equal,
    exp,
    floor,
    log,
    maximum,
    minimum,
    opposite,
    power,
    sign,
    sin,
    sqrt,
    tanh,
    where,
)
from dynident.graph.expression import Graph, Node, evaluate_nodes, reachable, substitute, total
from dynident.graph.function import Function
from dynident.graph.machine import SLOW, MachineCode, vector_width
from dynident.graph.operations import OPERATIONS, sympy_functions
from dynident.graph.text import parse, write_text

if TYPE_CHECKING:
    from dynident.graph.names import comment, identifier, identifiers
    from dynident.graph.print_c import c_files, c_function, c_helpers, c_number, c_prototype
    from dynident.graph.print_latex import latex_align, latex_equations, latex_number, latex_text
    from dynident.graph.print_python import casadi_function, casadi_helpers, numpy_function, numpy_helpers
    from dynident.graph.print_routine import compile_routines
    from dynident.graph.products import Products
    from dynident.graph.routine import Place, Routine

# Printers for people and routines are imported on first use: most computations need none of them.
_LATER = {
    "names": "comment identifier identifiers",
    "print_c": "c_files c_function c_helpers c_number c_prototype",
    "print_latex": "latex_align latex_equations latex_number latex_text",
    "print_python": "casadi_function casadi_helpers numpy_function numpy_helpers",
    "print_routine": "compile_routines",
    "products": "Products",
    "routine": "Place Routine",
}

__all__ = [
    "OPERATIONS",
    "SLOW",
    "Compiled",
    "Function",
    "Graph",
    "MachineCode",
    "Node",
    "Place",
    "Products",
    "Routine",
    "absolute",
    "arctan2",
    "both",
    "c_files",
    "c_function",
    "c_helpers",
    "c_number",
    "c_prototype",
    "cache_usage",
    "casadi_function",
    "casadi_helpers",
    "clear_cache",
    "comment",
    "compile_routines",
    "cos",
    "derivative",
    "derivative_matrix",
    "either",
    "equal",
    "evaluate_nodes",
    "exp",
    "floor",
    "forward",
    "identifier",
    "identifiers",
    "latex_align",
    "latex_equations",
    "latex_number",
    "latex_text",
    "log",
    "maximum",
    "minimum",
    "numpy_function",
    "numpy_helpers",
    "opposite",
    "parse",
    "power",
    "reachable",
    "reverse",
    "sign",
    "sin",
    "sqrt",
    "substitute",
    "sympy_functions",
    "tanh",
    "total",
    "vector_width",
    "where",
    "write_text",
]

guard(globals(), fast=("Compiled", "Function", "Graph", "Node", "Routine", "c_number", "latex_number"), later=_LATER)
