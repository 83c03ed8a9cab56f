"""The data source `txntable`: reads, writes and streams by name."""
