"""A lakehouse table format with Kafka's transactions on object storage."""
