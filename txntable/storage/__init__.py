"""The one door to storage: its contract, and the stores that keep it."""
