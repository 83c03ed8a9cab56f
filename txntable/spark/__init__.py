"""Spark: distributed writes and reads. The only part of txntable that imports pyspark."""
