"""The demo: a year of flights through transactions, with an abort, a zombie and a re-run."""
