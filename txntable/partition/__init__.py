"""Partition logs: batches, markers, producer state, and the projection to the public table."""
