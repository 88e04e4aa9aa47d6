"""Expressions, their derivatives, printers for people, and one compiler: what must be fast is written once and printed."""

from dynident.graph.cache import clear as clear_cache
from dynident.graph.cache import usage as cache_usage
from dynident.graph.calculus import derivative, forward, jacobian, reverse
from dynident.graph.compiled import Compiled
from dynident.graph.expression import (
    Graph,
    Node,
    absolute,
    arctan2,
    both,
    cos,
    either,
    equal,
    evaluate,
    exp,
    floor,
    log,
    maximum,
    minimum,
    opposite,
    power,
    reachable,
    sign,
    sin,
    sqrt,
    tanh,
    total,
    where,
)
from dynident.graph.function import Function
from dynident.graph.machine import Machine, vector_width
from dynident.graph.names import comment, identifier, identifiers
from dynident.graph.operations import OPERATIONS, sympy_functions
from dynident.graph.print_c import c_files, c_function, c_helpers, c_number, c_prototype
from dynident.graph.print_latex import latex_align, latex_equations, latex_number, latex_text
from dynident.graph.print_numpy import numpy_function, numpy_helpers
from dynident.graph.print_routine import compile_routines
from dynident.graph.routine import Routine
from dynident.graph.substitute import rebuilt, substitute

__all__ = [
    "OPERATIONS",
    "Compiled",
    "Function",
    "Graph",
    "Machine",
    "Node",
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
    "clear_cache",
    "comment",
    "compile_routines",
    "cos",
    "derivative",
    "either",
    "equal",
    "evaluate",
    "exp",
    "floor",
    "forward",
    "identifier",
    "identifiers",
    "jacobian",
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
    "power",
    "reachable",
    "rebuilt",
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
]
