"""The coordinator job as a program of its own, for schedulers and spark-submit; it needs no Spark.

    python -m txntable.jobs.coordinator --warehouse s3://bucket/warehouse --once
    spark-submit jobs/coordinator.py --warehouse s3://bucket/warehouse

The same as ``txntable transactions run``, whose options it has.
"""

from __future__ import annotations

from txntable.cli.connection import on_warehouse
from txntable.cli.coordinator_run import run
from txntable.cli.plain_help import run_alone


def main() -> None:
    """Run the coordinator as the arguments of the process say, and exit."""
    run_alone(on_warehouse(run))


if __name__ == "__main__":
    main()
