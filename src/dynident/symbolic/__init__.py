"""Closed forms: derivation on shared expressions, base parameters, programs in C, NumPy and LaTeX."""

from dynident.arguments import guard
from dynident.symbolic.derivation import DEFAULT, QUANTITIES, derive
from dynident.symbolic.print_c import CSources, to_c
from dynident.symbolic.print_latex import to_latex
from dynident.symbolic.print_python import to_casadi, to_numpy
from dynident.symbolic.program import Operations, Program, Quantity
from dynident.symbolic.regroup import Coefficient, Regrouping
from dynident.symbolic.write import model_program, numeric_operations, operation_table, write_model, write_program

__all__ = [
    "DEFAULT",
    "QUANTITIES",
    "CSources",
    "Coefficient",
    "Operations",
    "Program",
    "Quantity",
    "Regrouping",
    "derive",
    "model_program",
    "numeric_operations",
    "operation_table",
    "to_c",
    "to_casadi",
    "to_latex",
    "to_numpy",
    "write_model",
    "write_program",
]

guard(globals())
