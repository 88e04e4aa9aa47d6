"""Estimators, one file each, all with the protocol of scikit-learn."""
