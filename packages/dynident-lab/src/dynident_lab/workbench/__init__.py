"""The browser workbench: six guided stages from a robot description to a verdict, each with its commands shown."""
