"""At most once loses, at least once doubles, exactly once does neither: the example says so, by real kills."""

from __future__ import annotations

from pathlib import Path

from examples.delivery_guarantees import compare


def test_guarantees_lose_and_double_what_their_names_say_when_killed_at_the_same_record(tmp_path: Path) -> None:
    found = compare(str(tmp_path / "warehouse"))

    # Records 5 to 8 are a batch, and 7 is where the process dies: (lost, doubled).
    assert found == {"at most once": (2, 0), "at least once": (0, 2), "exactly once": (0, 0)}
