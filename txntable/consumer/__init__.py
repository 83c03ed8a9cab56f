"""The consumer: positions, fetches, commits."""
