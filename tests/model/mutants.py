"""Models that lack a rule, and the invariant that then fails: each invariant can be seen to be able to.

Some rules are defended twice, and such a mutant lacks both.  ``SLOW`` take seconds each.  ``LOOSE``
are rules whose absence alone breaks nothing in these models, with what holds in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.model.breadth_first import BreadthFirst, Exploration
from tests.model.completing import (
    APPENDED_AGAIN,
    BY_DECISION,
    OF_ANY_DECISION,
    OF_THE_ROW_IT_KNEW,
    OWN_COMMIT,
    PASSED_OVER,
    TORN,
    WITHOUT_SEGMENTS,
)
from tests.model.files import FileModel
from tests.model.knowing import ONE_TOPIC
from tests.model.producing import CARRIED_ALONG
from tests.model.slots import SlotModel
from tests.model.transactions import transactions
from tests.model.transition_system import Model
from tests.model.vacuuming import SPARES_ALL
from tests.model.world import Size


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault of the protocol.

    Attributes
    ----------
    invariant : str
        What it breaks.
    build : callable
        The model in which it shows; with what its effects do wrong, where no rule is missing.
    rules : tuple of str
        That it lacks.
    says : str
        What is wrong, where no rule is missing.
    idle : tuple of str
        Actions that the fault does not need, left out to find it sooner: each way without them is one with them.
    """

    invariant: str
    build: Callable[[], Model[Any]]
    rules: tuple[str, ...] = ()
    says: str = ""
    idle: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What is wrong."""
        return self.says or "without " + ", ".join(f"'{rule}'" for rule in self.rules)

    def explore(self) -> Exploration:
        """Look for a shortest way to break this one invariant."""
        model = self.build().without(self.rules)
        only = replace(
            model,
            actions=tuple(each for each in model.actions if each.name not in self.idle),
            invariants=tuple(each for each in model.invariants if each.name == self.invariant),
            at_rest=tuple(each for each in model.at_rest if each.name == self.invariant),
        )
        return BreadthFirst(only).explore()


def _sized(name: str, ids: tuple[int, ...] = (0,), **more: Any) -> Callable[[], Model[Any]]:
    return partial(transactions, Size(name, ids, **more))


def _wrong(says: str, size: Size) -> Callable[[], Model[Any]]:
    return partial(transactions, size, frozenset({says}))


_TWO_OF_AN_ID = _sized("two producers of one id", (0, 0), has_clock=True)
_TWO_COMPLETERS = _sized("two transactions, two completers", transactions=2, completers=2)
_EXPIRING = _sized("two producers of one id, expiry", (0, 0), has_clock=True, has_expiry=True)
_TWO_TOPICS = _sized("two topics, clock", topics=2, has_clock=True)
_GROUP = _sized("group, clock", has_group=True, has_clock=True)
_READ = _sized("two topics, reader", topics=2, readers=1)
_FOLLOWED = _sized("two ids, follower", (0, 1), has_follower=True)

_SERIES = Size("two transactions", transactions=2)
_SERIES_TOPICS = Size("two transactions, two topics", transactions=2, topics=2)
_SERIES_GROUP = Size("two transactions, a topic and a group", transactions=2, has_group=True)
_SERIES_CARRIED = Size("carried: two transactions", transactions=2, carries=True)
_SERIES_COMPLETERS = Size("two transactions, two completers", transactions=2, completers=2)

_CARRIED = Size("carried: two completers, clock", transactions=2, completers=2, carries=True, has_clock=True)
_CARRIED_IDS = Size("carried: two ids, two completers", (0, 1), completers=2, carries=True)
_CARRIED_LATE = _sized("carried: late appends", carries=True, has_late_appends=True)
_CARRIED_DOUBT = _sized("carried: late commits", carries=True, has_late_commits=True)
_CARRIED_LATE_TWO = _sized("carried: two of an id, late appends", (0, 0), carries=True, has_late_appends=True)
_CARRIED_VACUUM = Size("carried: vacuum, clock", carries=True, has_vacuum=True, has_clock=True)

_SHARED_IDS = Size("shared entries: two ids", (0, 1), carries=True, shares=True)
_SHARED_ID = _sized("shared entries: two producers of one id", (0, 0), carries=True, shares=True)

_MARKED = "replaced only when S has what it owes"
_SHOWN = "replaced only when P shows it"
_SETTLED = "replaced only when the offsets are settled"
_THIS = "what is known is of this very decision"
_NOTHING_OWED = "who is complete, or went on, is owed nothing"
_ALL_OR_NONE = "all or none of a transaction is visible"

_T_SLOT = "T: exactly the next slot"
_S_SLOT = "S: exactly the next slot"
_UNVERIFIED = ("T says ONGOING, of this epoch", "T says that the partition is enrolled")
_C_SLOT = "completion: exactly the next slot"

_YOUNG_ANSWER = "an answer counts only for a view younger than the guard"
_YOUNG_PUT = "a put counts only for a view younger than the guard"
_SLOTS = SlotModel((1, 2), twice=False).model
_TWO_EACH = SlotModel((2, 2), twice=False).model
_CREATED_AGAIN = SlotModel((1, 3), twice=False).model
_DELIVERED_AGAIN = SlotModel((1, 3)).model
_IDLE = (
    "ANSWER UNKNOWN",
    "CLEAN UP WHAT WAS CREATED AGAIN",
    "PUT, AND LOSE THE ANSWER",
    "REOPEN",
    "REOPEN AND FIND THE SLOT FREE",
    "REOPEN AND LOOK",
    "REOPEN, AND DO NOT KNOW",
)
_FILES = FileModel().model

_ONCE = "a carried segment is appended once, with its marker"
_HAS_FILE = "what is carried or live has its file"
_MAY_APPEND = "an upload of an epoch that may still append is spared"
_MAY_CARRY = "an upload that a decision may carry is spared"

_CARRYING = (
    Mutant(_ONCE, _wrong(WITHOUT_SEGMENTS, _CARRIED), says=WITHOUT_SEGMENTS),
    Mutant("all or none of a transaction is visible", _wrong(WITHOUT_SEGMENTS, _CARRIED), says=WITHOUT_SEGMENTS),
    Mutant(_ONCE, _wrong(APPENDED_AGAIN, _CARRIED_IDS), says=APPENDED_AGAIN),
    Mutant(_ONCE, partial(transactions, _CARRIED), ("only above decided_through",)),
    Mutant(_ONCE, partial(transactions, _CARRIED), ("only an open transaction is decided",)),
    Mutant(
        "all or none of a transaction is visible",
        partial(transactions, _CARRIED),
        ("markers, projection and offsets come before COMPLETE",),
    ),
    Mutant("what is only carried holds back nothing", _wrong(OWN_COMMIT, _CARRIED), says=OWN_COMMIT),
    Mutant("sequences have no gap", _CARRIED_LATE, ("after an append in doubt only an abort follows",)),
    Mutant(_ONCE, _CARRIED_LATE, ("after an append in doubt only an abort follows",)),
    Mutant(
        "what was told to be aborted is not committed",
        _CARRIED_DOUBT,
        ("a commit in doubt is followed by an abort in T",),
    ),
    Mutant("a transaction has one decision", _CARRIED_DOUBT, ("a late commit: exactly its slot",)),
    Mutant("offsets are dense", _CARRIED_LATE_TWO, ("a late put: exactly its slot",)),
    Mutant("a zombie decides nothing", _CARRIED_LATE_TWO, ("the row is of this epoch",)),
    Mutant(_HAS_FILE, partial(transactions, _CARRIED_VACUUM), (_MAY_APPEND,)),
    Mutant(
        _HAS_FILE,
        partial(transactions, _CARRIED_VACUUM),
        (_MAY_CARRY,),
        "vacuum goes by the row's epoch, not by that of its decision",
    ),
    Mutant(
        _HAS_FILE, partial(transactions, _CARRIED_VACUUM), (_MAY_APPEND, _MAY_CARRY), "vacuum asks no decision of T"
    ),
    Mutant("an upload that nothing can name is deleted", _wrong(SPARES_ALL, _CARRIED_VACUUM), says=SPARES_ALL),
)

_KNOWN = (
    Mutant(_NOTHING_OWED, partial(transactions, _SERIES), (_SHOWN,)),
    Mutant(_ALL_OR_NONE, partial(transactions, _SERIES), (_SHOWN,)),
    Mutant(_NOTHING_OWED, _TWO_OF_AN_ID, (_SHOWN,), "another's init goes by what S has, not by what P shows"),
    Mutant("data that nothing will end", partial(transactions, _SERIES), (_MARKED, _SHOWN)),
    Mutant("data that nothing will end", _TWO_OF_AN_ID, (_MARKED, _SHOWN), "another's init looks neither at S nor P"),
    Mutant(_NOTHING_OWED, partial(transactions, _SERIES_GROUP), (_SETTLED,)),
    Mutant("offsets are committed iff the outputs are", partial(transactions, _SERIES_GROUP), (_SETTLED,)),
    Mutant(_NOTHING_OWED, _wrong(ONE_TOPIC, _SERIES_TOPICS), says=ONE_TOPIC),
    Mutant(_NOTHING_OWED, _sized("three transactions", transactions=3), (_THIS,)),
    Mutant(
        _NOTHING_OWED,
        _sized("two producers of one id, two transactions", (0, 0), transactions=2),
        (_THIS,),
        "another's init goes by an older decision that it saw complete",
    ),
    Mutant(_ONCE, _sized("carried: three transactions", transactions=3, carries=True), (_THIS,)),
    Mutant(_ONCE, _wrong(CARRIED_ALONG, _SERIES_CARRIED), says=CARRIED_ALONG),
    Mutant(_NOTHING_OWED, _wrong(OF_ANY_DECISION, _SERIES_COMPLETERS), says=OF_ANY_DECISION),
    Mutant("data that nothing will end", _wrong(OF_THE_ROW_IT_KNEW, _SERIES), says=OF_THE_ROW_IT_KNEW),
    Mutant(
        "an epoch is given once, and never falls",
        _wrong(OF_THE_ROW_IT_KNEW, Size("two of an id", (0, 0))),
        says=OF_THE_ROW_IT_KNEW,
    ),
    Mutant(_NOTHING_OWED, partial(transactions, _SERIES), ("markers, projection and offsets come before COMPLETE",)),
)

_SHARED = (
    Mutant(_ONCE, _wrong(TORN, _SHARED_IDS), says=TORN),
    Mutant(_ALL_OR_NONE, _wrong(TORN, _SHARED_IDS), says=TORN),
    Mutant("an epoch is given once, and never falls", _SHARED_ID, ("two requests of one id share no entry",)),
)

QUICK = (
    Mutant("a transaction has one decision", _TWO_OF_AN_ID, (_T_SLOT,)),
    Mutant("an epoch is given once, and never falls", _TWO_OF_AN_ID, (_T_SLOT,)),
    Mutant("a zombie decides nothing", _TWO_OF_AN_ID, ("the row is of this epoch",)),
    Mutant("a transaction ends once in a topic", _TWO_COMPLETERS, (_C_SLOT,)),
    Mutant("a transaction ends once in a topic", _TWO_COMPLETERS, ("only above decided_through",)),
    Mutant("offsets are dense", _sized("two ids", (0, 1)), (_S_SLOT,)),
    Mutant("no data of an epoch above its marker", _TWO_OF_AN_ID, (_S_SLOT,)),
    Mutant("no data of an epoch above its marker", _EXPIRING, ("T is read after the log that is decided on",)),
    Mutant(
        "no data of an epoch above its marker",
        _TWO_OF_AN_ID,
        ("T says ONGOING, of this epoch", "an older epoch is refused"),
    ),
    Mutant("P is exactly what S shows", _TWO_COMPLETERS, (_C_SLOT,)),
    Mutant("what was published stays", _TWO_COMPLETERS, ("reflects only rises",)),
    Mutant("the last stable offset never falls", _TWO_COMPLETERS, ("reflects only rises",)),
    Mutant("only committed data are visible", _sized("two producers of one id", (0, 0)), (_T_SLOT,)),
    Mutant(
        "all or none of a transaction is visible",
        _TWO_TOPICS,
        ("markers, projection and offsets come before COMPLETE",),
    ),
    Mutant("data that nothing will end", _TWO_OF_AN_ID, ("a decided transaction is completed first",)),
    Mutant(
        "data that nothing will end",
        _TWO_OF_AN_ID,
        ("only an open transaction is decided", "the row is of this epoch"),
    ),
    Mutant("data that nothing will end", _TWO_OF_AN_ID, ("only ONGOING times out",)),
    Mutant("data that nothing will end", _TWO_OF_AN_ID, ("T says ONGOING, of this epoch",)),
    Mutant("data that nothing will end", _TWO_TOPICS, ("T says that the partition is enrolled",)),
    Mutant(
        "data that nothing will end",
        _wrong(PASSED_OVER, Size("two topics", topics=2, has_clock=True)),
        says=PASSED_OVER,
    ),
    Mutant("offsets are committed iff the outputs are", _GROUP, ("settled also where none is pending",)),
    Mutant("offsets are committed iff the outputs are", _GROUP, _UNVERIFIED),
    Mutant(
        "the latest request counts", _wrong(BY_DECISION, Size("offsets", (0, 1), 0, has_group=True)), says=BY_DECISION
    ),
    Mutant("a snapshot has all of each transaction", _READ, ("a snapshot opens no table that is behind its position",)),
    Mutant(
        "the last stable offset never passes open data", _FOLLOWED, ("a reader does not pass the last stable offset",)
    ),
    Mutant("a view has what was there when it was asked for", _SLOTS, (_YOUNG_ANSWER,)),
    # At version 0 there is nothing below that could be named.
    Mutant("a view is of the one log", _TWO_EACH, (_YOUNG_ANSWER,), idle=_IDLE[1:]),
    Mutant("a commit is in the log once", _SLOTS, ("the same slot again, never the next",)),
    Mutant("a commit that was given up is not in the log", _SLOTS, ("exists is settled by reading the slot",)),
    Mutant("what is believed is in the log", _SLOTS, ("entries are kept for many guards",)),
    Mutant("a commit that was given up is not in the log", _SLOTS, ("a slot that is still free gets the same again",)),
    Mutant(
        "a commit that was given up is not in the log",
        _CREATED_AGAIN,
        ("another's entry in the slot proves nothing",),
        "another's entry in the slot proves a loss",
        _IDLE,
    ),
    Mutant(
        "a commit that was given up is not in the log",
        _DELIVERED_AGAIN,
        ("its own entry in the slot proves no loss",),
        "its own entry in the slot proves a loss, and a put is delivered twice",
        _IDLE,
    ),
    Mutant(
        "a view has what was there when it was asked for",
        _CREATED_AGAIN,
        ("what it was started from is still there",),
        idle=_IDLE,
    ),
    # PROTOCOL.md asks for what the reader started from; the code, by HEAD, for anything in its slot.
    Mutant(
        "a view has what was there when it was asked for",
        _CREATED_AGAIN,
        ("what it was started from was not created again",),
        idle=_IDLE,
    ),
    Mutant("a name is registered once", _FILES, ("an old upload is refused",)),
    Mutant("a name is registered once", _FILES, ("a name with a tombstone is refused",)),
    Mutant("a name is registered once", _FILES, ("a live name is answered and not added again",)),
    Mutant("a name is registered once", _FILES, ("tombstones are kept for S's retention",)),
    Mutant("a live name has its file", _FILES, (_S_SLOT,)),
    Mutant("a live name has its file", _FILES, ("what goes is tombstoned first",)),
    Mutant("a public name has its file", _FILES, ("S and P are judged once more",)),
    Mutant("a live name is not tombstoned", _FILES, ("a name that went live is not tombstoned",)),
    *_CARRYING,
    *_KNOWN,
    *_SHARED,
    Mutant("everything decided is complete", _sized("nobody completes", completers=0), says="nobody completes"),
    Mutant("everything is stable", _sized("crashes", has_crashes=True), says="nobody times out"),
)

SLOW = (
    Mutant("what is believed is in the log", _SLOTS, (_YOUNG_PUT,)),
    Mutant("what is believed is in the log", _SLOTS, (_YOUNG_PUT, "a stale view is not written through")),
    Mutant("what is believed is in the log", _SLOTS, ("the head, or the next entry names it",)),
)
MUTANTS = QUICK + SLOW

LOOSE = {
    "a stale view is not written through": "what was put through one is not believed; the rule spares the request",
    "an entry names the one below": "a view that is too old is not followed; the rule finds what a store or a hand did",
    _MARKED: "P takes its number over from S: P at a decision says that S has it; without both, data are left open",
    "an older epoch is refused": "appends are verified against T, which has the newer epoch before any marker",
    "no open transaction with data is forgotten": "of epochs, appends are verified against T; the rule keeps sequences",
}
