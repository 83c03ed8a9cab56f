"""What users build on, as lines of text: names and signatures, commands and their options, settings, errors, metrics.

Owns what counts as public: what the reference documents, since that is what a user can know.  Takes all of it from the
code, and nothing from the reference's text.  Pure.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any

import txntable
from tools.documentation.api_reference import NAMES
from tools.documentation.command_reference import commands
from tools.documentation.configuration_reference import DATACLASSES
from txntable import errors
from txntable.format.topic_config import TOPIC_CONFIG
from txntable.telemetry.opentelemetry import COUNTERS, GAUGES, METER, instrument_name

_STARS: Mapping[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def lines() -> list[str]:
    """Return the whole interface, a line for each thing, in order."""
    return sorted({*_python(), *_errors(), *_commands(), *_settings(), *_metrics()})


def _python() -> Iterator[str]:
    yield from (f"python txntable.{name}" for name in txntable.__all__)
    for _, paths in NAMES.values():
        for path in paths:
            module, _, name = path.rpartition(".")
            found = getattr(import_module(module), name, None)
            if inspect.isclass(found):
                yield from _of_class(path, found)
            elif callable(found):
                yield f"python {path}{_signature(found)}"
            else:
                exported = getattr(import_module(path), "__all__", ())
                yield from (f"python {path}.{each}" for each in exported)


def _of_class(path: str, kind: type) -> Iterator[str]:
    if dataclasses.is_dataclass(kind):
        yield from (f"python {path}.{field.name}" for field in dataclasses.fields(kind) if field.name[0] != "_")
    if issubclass(kind, tuple):
        yield from (f"python {path}.{name}" for name in getattr(kind, "_fields", ()))
    if issubclass(kind, Enum):
        yield from (f"python {path}.{member.name} = {member.value!r}" for member in kind)
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_") or any(name in vars(base) for base in (object, tuple, str, BaseException, Enum)):
            continue
        if isinstance(member, property):
            yield f"python {path}.{name}"
        elif callable(getattr(kind, name)):
            yield f"python {path}.{name}{_signature(getattr(kind, name))}"


def _signature(called: Any) -> str:
    # Names, order and whether one may be left out: annotations and defaults may be told in other words.
    shown: list[str] = []
    for parameter in inspect.signature(called).parameters.values():
        star = _STARS.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not any(each.startswith("*") for each in shown):
            shown.append("*")
        optional = "" if parameter.default is parameter.empty else "=…"
        shown.append(f"{star}{parameter.name}{optional}")
    return f"({', '.join(shown)})"


def _errors() -> Iterator[str]:
    for name in errors.__all__:
        kind = getattr(errors, name)
        traits = [
            trait for trait in ("retriable", "txn_requires_abort", "fatal") if getattr(kind, trait, False) is True
        ]
        yield " ".join(
            [f"error {name} {kind.code}", f"is {'/'.join(base.__name__ for base in kind.__bases__)}", *traits]
        )


def _commands() -> Iterator[str]:
    for path, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                yield f"command {path} <{parameter.name}>{'' if parameter.required else ' optional'}"
            elif not parameter.hidden:
                flags = "|".join([*parameter.opts, *parameter.secondary_opts])
                yield f"command {path} {flags}{'' if parameter.is_flag else ' VALUE'}"


def _settings() -> Iterator[str]:
    yield from (f"setting of a topic: {name} = {key.default}" for name, key in TOPIC_CONFIG.items())
    for title, _, kind, shown in DATACLASSES:
        for field in dataclasses.fields(kind):
            if shown is None or field.name in shown:
                yield f"setting of {title[0].lower()}{title[1:]}: {field.name}{_default(field)}"


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return "" if callable(field.default) else f" = {field.default}"
    return "" if field.default_factory is dataclasses.MISSING else f" = {field.default_factory()}"


def _metrics() -> Iterator[str]:
    for name, (unit, _) in COUNTERS.items():
        yield f"metric {name} in {unit}, as an instrument {instrument_name(name)}"
    yield from (f"metric {METER}.{name} in {unit}" for name, (unit, *_) in GAUGES.items())
