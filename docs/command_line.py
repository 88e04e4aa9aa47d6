"""The application with all commands, for the pages of reference/commands."""

from dynident.cli import application

app = application()
