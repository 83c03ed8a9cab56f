"""Topics as tables of a catalog of SQL engines: AWS Glue, a Hive metastore, Unity Catalog."""
