"""The offset log: committed offsets of consumer groups."""
