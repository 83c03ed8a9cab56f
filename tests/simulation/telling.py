"""What a failed run was, for a person to read, and the file that replays it."""

from __future__ import annotations

import json

from tests.simulation.playing import Played
from tests.simulation.tape import Recording

LAST_LINES = 40
_TOLD = (" does ", " meets ", " rests ", " is killed", "time passes", " is set ", " lands")


def describe(name: str, played: Played) -> str:
    """Return what a failed run was, for a person to read."""
    assert played.failure is not None, "only failures are told"
    said = [f"{number:5d} {line}" for number, line in enumerate(played.trace) if any(word in line for word in _TOLD)]
    last = [f"{number:5d} {line}" for number, line in enumerate(played.trace)][-LAST_LINES:]
    return "\n".join(
        [
            f"world {name}: {len(played.names)} processes, {played.steps} steps, {played.recording.size} chances",
            "-- who did what, and what went wrong",
            *said,
            "-- the last lines",
            *last,
            "-- the failure",
            played.failure.text,
            f"kind: {played.failure.kind}",
        ]
    )


def encode_failure(name: str, recording: Recording) -> str:
    """Return what ``--replay`` reads."""
    return json.dumps({"world": name, "recording": recording.encode()})


def decode_failure(text: str) -> tuple[str, Recording]:
    """Return the world and the recording of a file for ``--replay``."""
    found = json.loads(text)
    return found["world"], Recording.decode(found["recording"])
