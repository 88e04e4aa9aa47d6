"""Friction laws fitted to logs: one axis, a whole robot, and the choice between laws."""
