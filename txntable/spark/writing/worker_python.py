"""Which Python Spark's workers run: what a write says when it is one that cannot run our code.

Found out when a job has failed for it: on a cluster nobody could look before, and a job that succeeds pays nothing.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from txntable.errors import MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANNOT_RUN = re.compile(r"No module named '(?:txntable|pyarrow|numpy)|PYTHON_VERSION_MISMATCH|PACKAGE_NOT_INSTALLED")


def unfit_python(error: Exception, spark: SparkSession) -> MissingDependencyError | None:
    """Return what to tell of a job that failed because its Python has none of our code; ``None``: of another cause.

    Parameters
    ----------
    error : Exception
        Spark's.
    spark : SparkSession
        That ran the job, classic or Connect.
    """
    if _CANNOT_RUN.search(str(error)) is None:
        return None
    # Over Spark Connect only the server knows.
    context = None if "connect" in type(spark).__module__ else spark.sparkContext
    return MissingDependencyError(
        "spark's python workers run another python than this program, one that cannot run txntable; set PYSPARK_PYTHON"
        " to one that has it, before the session begins",
        workers=getattr(context, "pythonExec", None),
        program=sys.executable,
    )
