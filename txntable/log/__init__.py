"""Delta logs: decide, write, apply; checkpoints; cleanup."""
