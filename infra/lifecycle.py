"""Which lifecycle rules of a bucket would destroy a warehouse.

Pure.  The protocol deletes by itself, and only what no log names any more; whatever else deletes or moves current
objects by their age takes data that is in use.  Rules are dictionaries as S3's API returns them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNREADABLE_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""What is there cannot be read before it was restored, which takes hours: a read fails."""

LEAST_UPLOAD_DAYS = 2
"""An upload may last a day and a half before its segment is refused: half of the partition logs' retention."""

# What expires here is nobody's: a killed probe's object, and the heartbeat of a member that has been silent for a day.
_MAY_EXPIRE = ("system/probe/", "system/heartbeats/")


@dataclass(frozen=True, slots=True)
class Danger:
    """One rule that endangers the warehouse.

    Attributes
    ----------
    rule : str
        Its id.
    what : str
        What it would do, and what to do about it.
    """

    rule: str
    what: str

    def __str__(self) -> str:
        return f"rule {self.rule!r} {self.what}"


def dangers(rules: Sequence[Mapping[str, Any]], prefix: str) -> list[Danger]:
    """Return what the rules of a bucket would do to the warehouse in it.

    Parameters
    ----------
    rules : sequence of mapping
        ``Rules`` of GetBucketLifecycleConfiguration; empty when there is no configuration.
    prefix : str
        The warehouse's, without slashes at its ends; empty: the whole bucket.
    """
    enabled = (rule for rule in rules if rule.get("Status") == "Enabled" and reaches(rule, prefix))
    return [Danger(str(rule.get("ID", "")), what) for rule in enabled for what in _deeds(rule, prefix)]


def reaches(rule: Mapping[str, Any], prefix: str) -> bool:
    """Return whether a rule, enabled or not, applies to objects of the warehouse, which have no tags."""
    chosen = rule.get("Filter", {})
    both = chosen.get("And", chosen)
    if both.get("Tag") or both.get("Tags"):
        return False
    root, wanted = f"{prefix}/" if prefix else "", _prefix(rule)
    return wanted.startswith(root) or root.startswith(wanted)


def _prefix(rule: Mapping[str, Any]) -> str:
    chosen = rule.get("Filter", {})
    return str(chosen.get("And", chosen).get("Prefix", rule.get("Prefix", "")))


def _deeds(rule: Mapping[str, Any], prefix: str) -> Iterator[str]:
    root = f"{prefix}/" if prefix else ""
    harmless = any(_prefix(rule).startswith(root + folder) for folder in _MAY_EXPIRE)
    expiration = rule.get("Expiration", {})
    if {"Days", "Date"} & expiration.keys() and not harmless:
        yield "deletes objects by age: logs and segments that are in use; take the warehouse out of its filter"
    moves = [*rule.get("Transitions", ()), *([rule["Transition"]] if "Transition" in rule else ())]
    for storage_class in sorted({move["StorageClass"] for move in moves} & UNREADABLE_CLASSES):
        yield f"moves objects to {storage_class}, where they cannot be read; take the warehouse out of its filter"
    upload_days = rule.get("AbortIncompleteMultipartUpload", {}).get("DaysAfterInitiation", LEAST_UPLOAD_DAYS)
    if upload_days < LEAST_UPLOAD_DAYS:
        yield f"aborts uploads that are still under way; give them {LEAST_UPLOAD_DAYS} days or more"
