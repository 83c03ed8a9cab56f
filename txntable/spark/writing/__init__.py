"""What Spark writes: DataFrames as segments of a transaction."""
