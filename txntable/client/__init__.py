"""What users hold: producers, consumers, administration."""
