"""Causes are told before what follows from them, which nobody is told to repair first."""

from __future__ import annotations

import pytest

from txntable.format.layout import OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT
from txntable.verification.causes import in_order
from txntable.verification.damage import Damage, DamageKind

S = "topics/u/_segments"
OWED = Damage(DamageKind.INCOMPLETE, S, "owed")


def remedies(*damages: Damage) -> list[tuple[DamageKind, bool]]:
    """What is told in order, each with whether it is to be left until another one is repaired."""
    return [(one.kind, one.remedy.startswith("nothing yet")) for one in in_order(damages)]


def test_lost_end_of_a_partition_log_is_told_before_the_work_that_is_owed_for_it() -> None:
    end = Damage(DamageKind.LOG_END, S, "lost")

    assert remedies(OWED, end) == [(DamageKind.LOG_END, False), (DamageKind.INCOMPLETE, True)]
    assert f"`{S}`" in in_order([OWED, end])[1].remedy


@pytest.mark.parametrize(
    ("cause", "follows"),
    [
        (Damage(DamageKind.LOG_END, TRANSACTION_LOG_ROOT, "lost"), True),
        (Damage(DamageKind.GUARD, f"{TRANSACTION_LOG_ROOT}/_delta_log/1.json", "another's"), True),
        (Damage(DamageKind.LOG_END, "topics/v/_segments", "lost"), False),
        (Damage(DamageKind.LOG_END, OFFSET_LOG_ROOT, "lost"), False),
        (Damage(DamageKind.ENTRY_MISSING, "topics/u/_delta_log/1.json", "of the public table"), False),
        (Damage(DamageKind.ENTRY_MISSING, f"{S}/_delta_log/1.json", "harmless", read_on_from=7), False),
    ],
)
def test_work_that_is_owed_follows_from_the_logs_that_it_is_seen_by(cause: Damage, follows: bool) -> None:
    assert remedies(OWED, cause) == [(cause.kind, False), (DamageKind.INCOMPLETE, follows)]


@pytest.mark.parametrize("root", [OFFSET_LOG_ROOT, TRANSACTION_LOG_ROOT])
def test_offsets_without_decision_follow_from_either_log(root: str) -> None:
    found = Damage(DamageKind.COMMITTED_OFFSET, OFFSET_LOG_ROOT, "of nobody")

    assert remedies(found, Damage(DamageKind.LOG_END, root, "lost"))[1] == (DamageKind.COMMITTED_OFFSET, True)


def test_damage_that_stands_alone_is_repaired_by_itself() -> None:
    assert remedies(OWED) == [(DamageKind.INCOMPLETE, False)]
