"""Pipelines: a transaction from input topics to output topics, by DataFrames."""
