"""Programs to read and run, each on one idea."""
