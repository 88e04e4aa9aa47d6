"""The browser workbench: six guided stages from a robot description to a verdict, each by the commands that it shows."""
