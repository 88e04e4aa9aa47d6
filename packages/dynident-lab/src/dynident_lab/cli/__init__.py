"""Commands of dynident-lab, registered in the group ``dynident.commands``."""
