"""Reading committed records: one topic, or all topics at one version of the transaction log."""
