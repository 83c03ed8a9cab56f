"""What a job leaves of the session of the program that it runs in."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from txntable.jobs.session import spark_session


def test_session_of_a_program_is_the_active_one_again_when_a_job_in_its_process_has_ended(spark: Any) -> None:
    """Spark looks for a stream's data source in the session that is active, whichever the stream is of."""
    spark.range(1).createOrReplaceTempView("of_the_program")

    with spark_session("job") as session:
        assert not session.catalog.tableExists("of_the_program")
        session.createDataFrame([(1,)], "n int").collect()

    active = SparkSession.getActiveSession()
    assert active is not None
    assert active.catalog.tableExists("of_the_program")
