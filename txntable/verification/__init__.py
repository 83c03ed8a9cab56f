"""Verification of a whole warehouse: every rule of PROTOCOL.md that can be checked from outside."""
