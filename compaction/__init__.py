"""Merging of small segments, retention and vacuum."""
