"""Moved to another package."""

raise ImportError("dynident.fleet is now dynident_lab.fleet: run  pip install 'dynident[lab]'  and import it from there")
