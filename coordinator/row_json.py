"""The JSON of the rows that the coordinator keeps: strict in what it reads, one spelling in what it writes.

A row is a JSON object with ``v``.  An unknown ``v`` or field is a newer format and is refused;
what is missing or of another type is damage.  ``null`` is never written: the field is left out.
Must not know which rows there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from coordinator.errors import DamagedDataError, InvalidRequestError, UnsupportedFormatError

ROW_FORMAT = 1

Fields = Mapping[str, type | tuple[type, ...]]


def check_name(name: str, what: str) -> str:
    """Return `name` when it can be stored and found again.

    Parameters
    ----------
    name : str
        A transactional id, a group, a batch name.
    what : str
        What the message calls it.

    Raises
    ------
    InvalidRequestError
        It is empty, no text, or no valid Unicode: give another name.
    """
    if not isinstance(name, str) or not name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise InvalidRequestError(f"{what} must be a non-empty string of valid unicode", name=repr(name))
    return name


def encode_key(*parts: str) -> str:
    """Return a row's key: its parts as a JSON array, always spelt the same way."""
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def encode_row(fields: Mapping[str, object]) -> str:
    """Return a row's JSON: ``v``, then `fields` in their order without those that are ``None``."""
    stored = {name: value for name, value in fields.items() if value is not None}
    return json.dumps({"v": ROW_FORMAT, **stored}, ensure_ascii=False, separators=(",", ":"))


def decode_row(text: str, what: str, required: Fields, optional: Fields) -> dict[str, Any]:
    """Return a row's fields.

    Parameters
    ----------
    text : str
        What :func:`encode_row` wrote.
    what : str
        What the messages call the row.
    required, optional : Fields
        The type of each field; ``bool`` never passes for ``int``.

    Returns
    -------
    dict
        Every optional field is there; ``None`` when it was left out.

    Raises
    ------
    DamagedDataError
        It is no JSON object, or a field is missing or of another type.
    UnsupportedFormatError
        Its ``v`` or one of its fields is unknown: use a newer version of this software.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DamagedDataError("a stored row is no json", row=what) from error
    if not isinstance(document, dict) or "v" not in document:
        raise DamagedDataError("a stored row is no object with a version", row=what)
    version = document.pop("v")
    if version != ROW_FORMAT or isinstance(version, bool):
        raise UnsupportedFormatError(
            "a row was written under a format that this version does not know: use a newer version",
            row=what,
            v=version,
            known=ROW_FORMAT,
        )
    return decode_object(document, what, required, optional)


def decode_object(document: object, what: str, required: Fields, optional: Fields) -> dict[str, Any]:
    """Return the fields of an object inside a row; like :func:`decode_row`, without ``v``.

    Raises
    ------
    DamagedDataError
        It is no object, or a field is missing or of another type.
    UnsupportedFormatError
        One of its fields is unknown: use a newer version of this software.
    """
    if not isinstance(document, dict):
        raise DamagedDataError("a stored row holds something that is no object", row=what)
    for name in document:
        if name not in required and name not in optional:
            raise UnsupportedFormatError(
                "a row has a field that this version does not know: use a newer version", row=what, field=name
            )
    fields: dict[str, Any] = dict.fromkeys(optional)
    for name, kind in {**optional, **required}.items():
        if name in document:
            _check_type(document[name], kind, what, name)
            fields[name] = document[name]
        elif name in required:
            raise DamagedDataError("a stored row lacks a field", row=what, field=name)
    return fields


def _check_type(value: object, kind: type | tuple[type, ...], what: str, name: str) -> None:
    # bool is a subclass of int: `true` would pass for an epoch.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DamagedDataError("a stored row has a field of another type", row=what, field=name, value=repr(value))
