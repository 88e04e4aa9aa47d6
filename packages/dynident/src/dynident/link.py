"""Moved to another package."""

raise ImportError("dynident.link is now dynident_lab.link: run  pip install 'dynident[lab]'  and import it from there")
