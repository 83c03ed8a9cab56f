"""The JVM of a classic Spark session: what PySpark has no public name for, and which versions of it were tested.

Owns how classes and objects of the JVM are found.  Must not know what they are wanted for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of Spark and of Delta, with which all that is called and is no public interface was tested.
_KNOWN_VERSIONS = frozenset({("4.1.4", "4.4.0"), ("4.2.0", "4.4.0")})
PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""The class of Spark that reads and writes Parquet."""
UNTOLD = (Py4JError, PySparkException, TypeError, AttributeError)
"""What asking a JVM for something that it does not have raises."""
_DELTA = "io.delta.package$"


def is_classic(spark: SparkSession) -> bool:
    """Return whether each of our threads has one of the JVM, in which Spark's settings of the call are kept."""
    if "connect" in type(spark).__module__:
        return False
    return isinstance(spark.sparkContext._gateway, ClientServer)  # noqa: SLF001  PySpark has no public name for it


def is_known(spark: SparkSession) -> bool:
    """Return whether a classic session is of versions that were tested."""
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no public name for it
    with suppress(*UNTOLD):
        return (spark.version, str(java_object(jvm, _DELTA).VERSION())) in _KNOWN_VERSIONS
    return False


def has_classes(jvm: Any, names: Iterable[str]) -> bool:
    """Return whether the JVM has all classes of these names."""
    return all(isinstance(java_class(jvm, name), JavaClass) for name in names)


def java_class(jvm: Any, name: str) -> Any:
    """Return a class of the JVM by its name, or a package where there is no such class."""
    found = jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def java_object(jvm: Any, name: str) -> Any:
    """Return the object of Scala that has a class of this name."""
    return getattr(java_class(jvm, name), "MODULE$")


def statement_kinds(spark: SparkSession, query: str) -> Iterator[str]:
    """Yield the names of the nodes of a statement, as Spark's own parser reads it; none of a Connect session's.

    Parameters
    ----------
    spark : SparkSession
        Whose parser is asked.
    query : str
        SQL; raises what Spark does where it is none.
    """
    if "connect" in type(spark).__module__:
        return
    session: Any = spark._jsparkSession  # noqa: SLF001  PySpark has no public name for it
    yield from _kinds(session.sessionState().sqlParser().parsePlan(query))


def _kinds(plan: Any) -> Iterator[str]:
    kind = plan.getClass().getSimpleName()
    yield kind
    if kind == "ExplainCommand":
        # What is explained is no child of it, and analysed all the same.
        yield from _kinds(plan.logicalPlan())
    for nodes in (plan.children(), plan.innerChildren()):
        for number in range(nodes.size()):
            yield from _kinds(nodes.apply(number))
