"""Vacuum as a program of its own, for schedulers and spark-submit: one run, then it exits; it needs no Spark.

    python -m txntable.jobs.vacuum --warehouse s3://bucket/warehouse --execute
    spark-submit jobs/vacuum.py --warehouse s3://bucket/warehouse --execute

The same as ``txntable vacuum``, whose options it has.
"""

from __future__ import annotations

from txntable.cli.plain_help import run_alone
from txntable.compaction.vacuum_command import command


def main() -> None:
    """Vacuum the warehouse that the arguments of the process name, and exit."""
    run_alone(command)


if __name__ == "__main__":
    main()
