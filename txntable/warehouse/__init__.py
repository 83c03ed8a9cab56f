"""The warehouse: where everything else is opened from."""
