"""What the processes' histories show to have happened since a moment: that the blows have not stopped the warehouse.

Only what a process wrote down as returned counts, and only what is a proof: a poll that found nothing is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

COMMITTED, READ, POLLED = "committed", "read a snapshot", "polled records"
PROOFS = (COMMITTED, READ, POLLED)


class Progress:
    """Follows histories from where they end now.

    Parameters
    ----------
    histories : iterable of Path
        Of the processes whose progress counts.
    """

    def __init__(self, histories: Iterable[Path]) -> None:
        self._ends = {history: history.stat().st_size for history in histories}
        self._shown: set[str] = set()

    def shows(self, proof: str) -> bool:
        """Return whether one of :data:`PROOFS` was written down since."""
        if proof not in self._shown:
            for history in self._ends:
                self._follow(history)
        return proof in self._shown

    def _follow(self, history: Path) -> None:
        with history.open("rb") as file:
            file.seek(self._ends[history])
            for line in file:
                if not line.endswith(b"\n"):
                    # It is being written.
                    return
                self._ends[history] += len(line)
                self._shown.add(proof_in(line))


def proof_in(line: bytes) -> str:
    """Return what a line of a history proves; nothing: an empty text."""
    document = json.loads(line)
    operation = document["operation"]
    name, call = document["call"], operation["call"]
    if operation["outcome"] != "OK":
        return ""
    if name == "End" and call["commit"]:
        return COMMITTED
    if name == "Read" and call["level"] == "SNAPSHOT":
        return READ
    if name == "Poll" and call["level"] == "COMMITTED" and call["records"]:
        return POLLED
    return ""
