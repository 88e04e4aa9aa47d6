"""Moved to another package."""

raise ImportError(
    "dynident.testbench is now dynident_lab.testbench: run  pip install 'dynident[lab]'  and import it from there"
)
