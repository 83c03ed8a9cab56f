"""The transaction log, and the completion of what it decides."""
