"""Calls of Java's methods as columns of Spark, by expressions that Spark has for its own encoders.

Owns how they are built.  Classic sessions only.  Must not know what is called, nor why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from txntable.spark.classic_session import java_class

_STATIC = "org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke"
_INVOKE = "org.apache.spark.sql.catalyst.expressions.objects.Invoke"
_LITERAL = "org.apache.spark.sql.catalyst.expressions.Literal"
_LONG = "java.lang.Long"


class JavaExpressions:
    """Columns that call Java; types are named as Spark's are (``LongType``), or are classes of Java.

    Parameters
    ----------
    spark : SparkSession
        Classic.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no public name for it

    def static(self, name: str, returned: str, method: str, *arguments: Column) -> Column:
        """Return what a class's method makes of columns; null where one of them is."""
        found, kind, given = self._class(name), self._type(returned), self._expressions(arguments)
        # Null where an argument is null; nullable; the same for the same arguments; no function of a catalog.
        rules = (self._sequence([]), True, True, True, self._jvm.scala.Option.empty())
        return self._column(java_class(self._jvm, _STATIC)(found, kind, method, given, *rules))

    def invoke(self, target: Column, returned: str, method: str, *arguments: Column) -> Column:
        """Return what a method of a column's values makes of columns; null where one of them is."""
        called, kind, given = self._expression(target), self._type(returned), self._expressions(arguments)
        rules = (self._sequence([]), True, True, True)
        return self._column(java_class(self._jvm, _INVOKE)(called, method, kind, given, *rules))

    def variable(self, value: int, returned: str) -> Column:
        """Return a number of 64 bits that stands in no generated code: another one needs no other code.

        Spark keeps the code that it has compiled, and Java what it made of that, by the code's text.
        """
        held = java_class(self._jvm, _LITERAL)(value, self._type(_LONG))
        # Said to differ from call to call, or it would be put into the code after all.
        rules = (self._sequence([]), self._sequence([]), True, False, False)
        return self._column(java_class(self._jvm, _INVOKE)(held, "longValue", self._type(returned), *rules))

    def _class(self, name: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def _type(self, name: str) -> Any:
        types = self._jvm.org.apache.spark.sql.types
        if "." in name:
            return types.ObjectType(self._class(name))
        return getattr(getattr(types, f"{name}$"), "MODULE$")

    def _sequence(self, values: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(values))

    def _expression(self, column: Column) -> Any:
        return self._jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)  # noqa: SLF001

    def _expressions(self, columns: Sequence[Column]) -> Any:
        return self._sequence([self._expression(column) for column in columns])

    def _column(self, expression: Any) -> Column:
        return ClassicColumn(self._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
