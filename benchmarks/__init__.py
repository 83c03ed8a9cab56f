"""What it costs: each figure is a ratio within one run."""
