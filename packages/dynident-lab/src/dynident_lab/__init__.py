"""dynident for real machines: controllers, campaigns, friction and thermal test bench, servo analysis, fleets, FMU."""
