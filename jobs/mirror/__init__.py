"""Kafka beside a warehouse: its topics as topics here, and topics here as topics there, each record once."""
