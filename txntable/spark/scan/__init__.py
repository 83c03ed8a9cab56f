"""What Spark reads: ranges of offsets as DataFrames and views."""
