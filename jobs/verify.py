"""Verification as a program of its own, for schedulers and spark-submit: one look at everything; it needs no Spark.

    python -m txntable.jobs.verify --warehouse s3://bucket/warehouse
    spark-submit jobs/verify.py --warehouse s3://bucket/warehouse --metrics cloudwatch

The same as ``txntable warehouse verify``, whose options it has.  It writes nothing, and needs a reader's permissions.
"""

from __future__ import annotations

from txntable.cli.connection import on_warehouse
from txntable.cli.plain_help import run_alone
from txntable.cli.warehouse import verify


def main() -> None:
    """Verify the warehouse that the arguments of the process name, and exit."""
    run_alone(on_warehouse(verify))


if __name__ == "__main__":
    main()
