"""Moved to another package."""

raise ImportError(
    "dynident.robots is now dynident_papers.robots: run  pip install 'dynident[papers]'  and import it from there"
)
