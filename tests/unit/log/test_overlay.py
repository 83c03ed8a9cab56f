"""An overlay reads as what it lies over once the same was done to that, and leaves it as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txntable.log.overlay import Overlay

_KEYS = st.integers(0, 4)
_CHANGES = st.lists(st.tuples(st.sampled_from(["set", "pop", "setdefault", "del"]), _KEYS, st.integers()), max_size=12)


def change(mapping: Any, what: str, key: int, value: int) -> object:
    """Do one thing to a mapping; return what it answers."""
    match what:
        case "set":
            mapping[key] = value
            return None
        case "pop":
            return mapping.pop(key, None)
        case "setdefault":
            return mapping.setdefault(key, value)
    try:
        del mapping[key]
    except KeyError:
        return KeyError
    return None


@given(st.dictionaries(_KEYS, st.integers()), _CHANGES)
def test_overlay_answers_as_a_copy_would_and_its_base_stays(base: dict[int, int], changes: list) -> None:
    copy, kept = dict(base), dict(base)
    over: Overlay[int, int] = Overlay(base)

    for each in changes:
        assert change(over, *each) == change(copy, *each)
        assert (dict(over), len(over), sorted(over)) == (copy, len(copy), sorted(copy))
        assert [key in over for key in range(5)] == [key in copy for key in range(5)]
    assert base == kept


def test_values_that_can_be_changed_are_laid_over_too() -> None:
    base: dict[str, dict[str, int]] = {"a": {"x": 1}}
    over = Overlay(base, Overlay)  # type: ignore[arg-type]

    over["a"]["y"] = 2
    over.setdefault("b", {})["z"] = 3

    assert {key: dict(value) for key, value in over.items()} == {"a": {"x": 1, "y": 2}, "b": {"z": 3}}
    assert base == {"a": {"x": 1}}


def test_what_was_deleted_is_not_there() -> None:
    over = Overlay({"a": 1})
    del over["a"]

    with pytest.raises(KeyError):
        over["a"]
    assert not over
