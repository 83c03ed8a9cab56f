"""Programs to read and run, each about one idea."""
