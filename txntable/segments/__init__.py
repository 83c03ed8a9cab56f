"""Segments: Parquet files of records, their columns, statistics and digests, written and read."""
