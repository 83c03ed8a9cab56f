"""The reference of errors: one table for each kind, which says what the caller does, from the tree of classes."""

from __future__ import annotations

from tools.documentation.tables import first_paragraph, prose, table
from txntable import errors
from txntable.errors import TxnTableError

_INTRODUCTION = """# Errors

All errors are `txntable.TxnTableError` and can be imported from `txntable`. They are organised by what the caller does.
Codes are Kafka's where Kafka has one. `error.code`, `error.message` and `error.facts` are for programs;
`error.retriable`, `error.txn_requires_abort` and `error.fatal` say the same as the kinds below.
"""


def page() -> str:
    """Return the page, which has every class that users can import."""
    classes = [getattr(errors, name) for name in errors.__all__]
    kinds = [TxnTableError, *(each for each in classes if _is_kind(each))]
    parts = [_INTRODUCTION]
    for kind in kinds:
        members = [each for each in classes if each not in kinds and _kind_of(each, kinds) is kind]
        own = [kind] if "code" in vars(kind) and kind is not TxnTableError else []
        if own or members:
            title = "Others" if kind is TxnTableError else kind.__name__
            said = "What the message says." if kind is TxnTableError else prose(kind.__doc__)
            rows = [(f"`{each.__name__}`", f"`{each.code}`", _meaning(each)) for each in [*own, *members]]
            parts.append(f"## {title}\n\n{said}\n\n{table(('error', 'code', 'when'), rows)}")
    return "\n".join(parts)


def _is_kind(error: type[TxnTableError]) -> bool:
    return error.__bases__ == (TxnTableError,) and any(error in each.__bases__ for each in _all_errors())


def _all_errors() -> list[type[TxnTableError]]:
    return [getattr(errors, name) for name in errors.__all__]


def _kind_of(error: type[TxnTableError], kinds: list[type[TxnTableError]]) -> type[TxnTableError]:
    return next(each for each in error.__mro__ if each in kinds)


def _meaning(error: type[TxnTableError]) -> str:
    return first_paragraph(error.__doc__)
