"""The settings of ``txntable.jobs.pipeline``: a TOML file, and options that are stronger than it.

Owns what may stand in the file, and that what is wrong with it is told before Spark starts: a setting that is unknown
or of another kind, a function that cannot be found.

    group = "delays"
    sources = ["flights"]
    targets = ["delays"]
    function = "flights_pipeline:delays_of"
    max_offsets_per_partition = 1000000

In place of ``targets`` and ``function``, a query for each target; the sources are views of their names:

    [sql]
    delays = "SELECT carrier, avg(dep_delay) AS delay FROM flights GROUP BY carrier"

Its other settings are those of :class:`txntable.spark.pipelines.pipeline_config.PipelineConfig`.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from txntable.errors import InvalidConfigError
from txntable.spark.pipelines.pipeline import Transform
from txntable.spark.pipelines.pipeline_config import PipelineConfig
from txntable.spark.pipelines.transforms import by_function, by_sql

_LISTS, _INTEGERS = {"sources", "targets"}, {field.name for field in fields(PipelineConfig) if "int" in str(field.type)}
_EITHER = {"function", "sql"}
_TEXTS = {field.name for field in fields(PipelineConfig)} - _LISTS - _INTEGERS
_KINDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(_LISTS, (list, "a list of texts")),
    **dict.fromkeys(_INTEGERS, (int, "an integer")),
    **dict.fromkeys(_TEXTS, (str, "a text")),
    "function": (str, "module:function"),
    "sql": (dict, "a table of a query for each target"),
}


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """A pipeline, ready to run.

    Attributes
    ----------
    config : PipelineConfig
        What is read and written.
    transform : callable
        What becomes of it.
    """

    config: PipelineConfig
    transform: Transform


def read_settings(file: Path | None, options: Mapping[str, Any]) -> PipelineSettings:
    """Return the pipeline that a file and options describe.

    Parameters
    ----------
    file : Path or None
        TOML; the function's module may stand beside it.
    options : Mapping of str to object
        Stronger than the file; what is ``None`` or empty was not said.

    Raises
    ------
    InvalidConfigError
        The file cannot be read, or a setting is not acceptable; the message names it.
    """
    given = {} if file is None else _read(file)
    said = {name: value for name, value in options.items() if value not in (None, [], {})}
    if said.keys() & _EITHER:
        given = {name: value for name, value in given.items() if name not in _EITHER}
    given |= said
    for name, value in given.items():
        _check(name, value)
    function, queries = given.pop("function", None), given.pop("sql", None)
    if (function is None) == (queries is None):
        raise InvalidConfigError("a pipeline has either a function or sql; give one of them", setting="function, sql")
    if queries is not None:
        # Written beside each other they could differ; an output without a query would stay empty.
        state = [given["state"]] if "state" in given else []
        given.setdefault("targets", [target for target in queries if target not in state])
    lists = {name: tuple(given[name]) for name in _LISTS if name in given}
    config = PipelineConfig(**{"group": "", "sources": (), **given, **lists})
    if queries is None:
        return PipelineSettings(config, by_function(find_function(str(function), file), config))
    if set(queries) != set(config.outputs):
        raise InvalidConfigError(
            "every topic that is written has a query, and no other", sql=",".join(queries), written=config.outputs
        )
    return PipelineSettings(config, by_sql(queries))


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfigError("the file of the pipeline cannot be read; mend it", file=file, cause=error) from error


def _check(name: str, value: object) -> None:
    if name not in _KINDS:
        raise InvalidConfigError(
            "a pipeline has no such setting; take one of those known", setting=name, known=", ".join(sorted(_KINDS))
        )
    kind, words = _KINDS[name]
    inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    # bool is a subclass of int, and no number here.
    if not isinstance(value, kind) or isinstance(value, bool) or not all(isinstance(each, str) for each in inner):
        raise InvalidConfigError(
            "a setting of the pipeline is of another kind; mend it", setting=name, expected=words, found=repr(value)
        )


def find_function(name: str, file: Path | None = None) -> Callable[..., object]:
    """Return the function that ``module:function`` names; the module may stand beside `file`.

    Raises
    ------
    InvalidConfigError
        There is no such module or function.
    """
    module_name, colon, function_name = name.partition(":")
    beside = [] if file is None else [str(file.resolve().parent)]
    sys.path.extend(folder for folder in beside if folder not in sys.path)
    if not module_name or not colon or not function_name:
        raise InvalidConfigError("a function is named as module:function", function=name)
    try:
        found = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise InvalidConfigError(
            "the function of the pipeline cannot be found; put its module on PYTHONPATH, or beside the file",
            function=name,
            cause=error,
        ) from error
    if not callable(found):
        raise InvalidConfigError("what is named is no function", function=name, found=type(found).__name__)
    function: Callable[..., object] = found
    return function
