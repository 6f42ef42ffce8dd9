"""Statements about programs, and their proofs for all sizes."""
