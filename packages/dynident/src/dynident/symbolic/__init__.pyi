from .derivation import derive as derive
from .printers import to_c as to_c
from .printers import to_casadi as to_casadi
from .printers import to_latex as to_latex
from .printers import to_numpy as to_numpy
from .program import Program as Program
from .program import Quantity as Quantity
from .write import operation_table as operation_table
from .write import write_model as write_model
from .write import write_program as write_program

__all__ = [
    "Program",
    "Quantity",
    "derive",
    "operation_table",
    "to_c",
    "to_casadi",
    "to_latex",
    "to_numpy",
    "write_model",
    "write_program",
]
