"""dynident around a real machine: controllers, campaigns, friction and thermal test bench, servo analysis, fleets, FMU."""
