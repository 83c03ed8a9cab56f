"""Entry points for spark-submit, and the demo."""
