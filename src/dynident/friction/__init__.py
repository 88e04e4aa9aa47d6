"""What resists: joint terms that are linear in their parameters."""

from dynident.friction.terms import ASYMMETRIC, SYMMETRIC, TERMS, JointTerm, check_terms

__all__ = ["ASYMMETRIC", "SYMMETRIC", "TERMS", "JointTerm", "check_terms"]
