"""Members of consumer groups: joining, heartbeats, assignments."""
