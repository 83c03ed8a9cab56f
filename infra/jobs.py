"""The jobs that a deployment runs on EMR Serverless: which program, how often, under which role, with which settings.

Pure.  Owns the names of the artifacts that :mod:`txntable.infra.package` makes and the template's schedules refer to.
"""

from __future__ import annotations

from dataclasses import dataclass

ENVIRONMENT_ARCHIVE = "txntable-environment.tar.gz"
ENVIRONMENT_FOLDER = "environment"
"""What the archive is unpacked as, in the working folder of the driver and of each executor."""

PYTHON = "/usr/bin/python3.11"
"""EMR's own interpreter, for whose version the archive is made."""

_DELTA_JARS = "/usr/share/aws/delta/lib/delta-spark.jar,/usr/share/aws/delta/lib/delta-storage.jar"


@dataclass(frozen=True, slots=True)
class Job:
    """One scheduled program.

    Attributes
    ----------
    name : str
        In the template.
    description : str
        For people.
    entry_point : str
        Below ``artifacts/``.
    arguments : tuple of str
        After ``--warehouse``.
    role : str
        The template's name of its role.
    every : str
        A schedule expression.
    timeout_minutes : int
        After which EMR ends it; it harms nothing.
    condition : str, optional
        The template's condition under which there is a schedule at all.
    """

    name: str
    description: str
    entry_point: str
    arguments: tuple[str, ...]
    role: str
    every: str
    timeout_minutes: int = 60
    condition: str | None = None


JOBS = (
    Job(
        "Coordinator",
        "Ends transactions that timed out, completes what was decided, expires and cleans up",
        "jobs/coordinator.py",
        ("--once",),
        "MaintenanceJobRole",
        "rate(15 minutes)",
    ),
    Job(
        "Compaction",
        "Merges small segments, compacts by key, applies retention",
        "jobs/compact.py",
        ("--once",),
        "MaintenanceJobRole",
        "rate(1 hour)",
        timeout_minutes=360,
    ),
    Job(
        "Vacuum",
        "Deletes files that nothing needs any more",
        "jobs/vacuum.py",
        ("--execute",),
        "MaintenanceJobRole",
        "rate(1 day)",
        timeout_minutes=360,
    ),
    Job(
        "Pipeline",
        "One transaction of the pipeline: what is new is read, transformed and committed",
        "jobs/pipeline.py",
        ("--config", "pipeline.toml", "--once"),
        "PipelineJobRole",
        "rate(10 minutes)",
        timeout_minutes=180,
        condition="HasPipeline",
    ),
)


def submit_parameters(artifacts: str, job: Job) -> str:
    """Return the options of spark-submit.

    Parameters
    ----------
    artifacts : str
        URL of the folder that :mod:`txntable.infra.package` filled.
    job : Job
        Which.
    """
    path = f"./{ENVIRONMENT_FOLDER}"
    settings = {
        "spark.archives": f"{artifacts}/{ENVIRONMENT_ARCHIVE}#{ENVIRONMENT_FOLDER}",
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": PYTHON,
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": PYTHON,
        "spark.emr-serverless.driverEnv.PYTHONPATH": path,
        "spark.executorEnv.PYSPARK_PYTHON": PYTHON,
        "spark.executorEnv.PYTHONPATH": path,
        "spark.jars": _DELTA_JARS,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    if job.condition == "HasPipeline":
        settings["spark.files"] = "${PipelineConfig}"
    return " ".join(f"--conf {name}={value}" for name, value in settings.items())
