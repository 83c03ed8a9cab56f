"""The producer: batches, partitions, transactions."""
