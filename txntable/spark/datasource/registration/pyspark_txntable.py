"""Lets Spark find ``format("txntable")``: installed beside the packages, under a name that Spark looks for."""

from txntable.spark.datasource.data_source import TxnTableSource as DefaultSource

__all__ = ["DefaultSource"]
