"""Files beside the entries of a log that other engines read in their place, and that nobody of us writes.

Owns their names, which are Delta's: checkpoints in parts or of the second version, merged entries, checksums of
versions, entries of a commit service.  Whatever else lies in the folder means nothing to any engine.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from txntable.verification.damage import DamageKind

_UUID = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_VERSION = r"(?P<version>\d{20})"
_MEANINGS: tuple[tuple[re.Pattern[str], DamageKind, str], ...] = tuple(
    (re.compile(pattern), kind, f"{what}: other software wrote it")
    for pattern, kind, what in (
        (rf"{_VERSION}\.checkpoint\.\d{{10}}\.\d{{10}}\.parquet", DamageKind.FOREIGN_CHECKPOINT, "a part of one"),
        (
            rf"{_VERSION}\.checkpoint\.{_UUID}\.(parquet|json)",
            DamageKind.FOREIGN_CHECKPOINT,
            "one of the second version",
        ),
        (r"_sidecars/.+\.parquet", DamageKind.FOREIGN_CHECKPOINT, "a file that one of the second version names"),
        (rf"\d{{20}}\.{_VERSION}\.compacted\.json", DamageKind.FOREIGN_LOG_FILE, "entries merged into one"),
        (rf"{_VERSION}\.crc", DamageKind.FOREIGN_LOG_FILE, "what the table is like at a version"),
        (rf"(_commits|_staged_commits)/{_VERSION}\.{_UUID}\.json", DamageKind.FOREIGN_LOG_FILE, "an entry elsewhere"),
    )
)


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file that an engine would read in place of entries.

    Attributes
    ----------
    path : str
        The object.
    kind : DamageKind
        Which damage it is.
    problem : str
        What it is, for people.
    version : int or None
        Of the log, the last one that it tells of; ``None``: its name does not say.
    """

    path: str
    kind: DamageKind
    problem: str
    version: int | None


def foreign_files(folder: str, paths: Iterable[str]) -> Iterator[ForeignFile]:
    """Yield such files.

    Parameters
    ----------
    folder : str
        Of the log.
    paths : iterable of str
        Everything in it and below.
    """
    for path in paths:
        name = path.removeprefix(f"{folder}/")
        for pattern, kind, problem in _MEANINGS:
            if match := pattern.fullmatch(name):
                version = match.groupdict().get("version")
                yield ForeignFile(path, kind, problem, None if version is None else int(version))
