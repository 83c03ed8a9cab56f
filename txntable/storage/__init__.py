"""The one interface to storage: its contract, and the stores that keep it."""
