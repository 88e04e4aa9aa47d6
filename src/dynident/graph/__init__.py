"""Expressions, their derivatives, and one compiler: what must be fast is written once and printed as machine code."""

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
from dynident.graph.print_routine import compile_routines
from dynident.graph.routine import Routine
from dynident.graph.substitute import rebuilt, substitute

__all__ = [
    "Compiled",
    "Function",
    "Graph",
    "Machine",
    "Node",
    "Routine",
    "absolute",
    "arctan2",
    "both",
    "compile_routines",
    "cos",
    "derivative",
    "either",
    "equal",
    "evaluate",
    "exp",
    "floor",
    "forward",
    "jacobian",
    "log",
    "maximum",
    "minimum",
    "opposite",
    "power",
    "reachable",
    "rebuilt",
    "reverse",
    "sign",
    "sin",
    "sqrt",
    "substitute",
    "tanh",
    "total",
    "vector_width",
    "where",
]
