"""Tests of many runs, in parts: a build makes the first of them, `make nightly` the others."""

from __future__ import annotations

from typing import Any

import pytest


def parts(count: int, of_a_build: int) -> list[Any]:
    """Return the numbers of the parts, as arguments of a test; part *n* of a list is ``list[n::count]``.

    Parameters
    ----------
    count : int
        Of all parts.
    of_a_build : int
        How many of them a build runs.
    """
    return [
        pytest.param(part, marks=[] if part < of_a_build else [pytest.mark.nightly], id=f"part {part} of {count}")
        for part in range(count)
    ]
