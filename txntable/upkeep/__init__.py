"""The coordinator job: timeouts, completion, expiry and cleanup, in rounds."""
