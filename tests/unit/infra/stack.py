"""The template as CloudFormation understands it: its short tags read, its functions resolved to values.

Owns no expectation.  A parameter, condition or attribute that nothing names is a ``KeyError``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[3] / "infra" / "warehouse.yaml"
_GONE = object()


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads ``!Sub x`` as ``{"Fn::Sub": x}``."""


def _tagged(loader: _Loader, tag: str, node: yaml.Node) -> Any:
    value: Any
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_scalar(node)
    if tag == "GetAtt":
        value = value.split(".")
    return {tag if tag == "Ref" else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _tagged)


def template(path: Path = FILE) -> dict[str, Any]:
    """Return the template with its functions as mappings, as JSON would have them."""
    text = path.read_text()
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
        raise ValueError("CloudFormation takes no aliases")
    loaded: dict[str, Any] = yaml.load(text, _Loader)
    return loaded


def resolved(value: Any, values: Mapping[str, Any], mappings: Mapping[str, Any]) -> Any:
    """Return a part of the template with its functions resolved; ``values`` has conditions and attributes too."""

    def inner(part: Any) -> Any:
        if isinstance(part, list):
            return [each for each in map(inner, part) if each is not _GONE]
        if not isinstance(part, dict):
            return part
        name, argument = next(iter(part.items()), ("", None))
        if name in functions:
            return functions[name](argument)
        return {name: found for name, each in part.items() if (found := inner(each)) is not _GONE}

    def substituted(given: Any) -> str:
        text, own = given if isinstance(given, list) else (given, {})
        known = {**values, **inner(own)}
        return re.sub(r"\$\{([^}]+)\}", lambda match: str(known[match[1]]), text)

    functions: dict[str, Callable[[Any], Any]] = {
        "Ref": lambda name: _GONE if name == "AWS::NoValue" else values[name],
        "Fn::GetAtt": lambda path: values[".".join(path)],
        "Fn::If": lambda given: inner(given[1] if values[given[0]] else given[2]),
        "Fn::FindInMap": lambda path: mappings[path[0]][path[1]][path[2]],
        "Fn::Sub": substituted,
    }
    return inner(value)
