"""What a process counts, for observability systems that collect it."""
