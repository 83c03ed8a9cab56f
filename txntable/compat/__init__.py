"""Kafka clients of others, over a warehouse."""
