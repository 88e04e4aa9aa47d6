"""Commands of dynident-papers, registered in the group ``dynident.commands``."""
