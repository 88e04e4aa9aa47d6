"""Closed forms: derivation, base parameters, printers for C, NumPy, numba and LaTeX."""
