"""Moved to another package."""

raise ImportError(
    "dynident.reproduce is now dynident_papers.reproduce: run  pip install 'dynident[papers]'  and import it from there"
)
