"""Keeping a warehouse small and fast: compaction of segments and by key, retention, vacuum (PROTOCOL.md §5.7, §5.8)."""
