"""The models that are explored: those of a build, those of a run by hand, and the large one, which has no end."""

from __future__ import annotations

from typing import Any

from tests.model.files import FileModel
from tests.model.slots import SlotModel
from tests.model.transactions import transactions
from tests.model.transition_system import Model
from tests.model.world import Size

SMALL = (
    Size("two producers of one id, clock, crashes", (0, 0), has_clock=True, has_crashes=True),
    Size("two topics, a reader and a follower, clock", topics=2, readers=1, has_follower=True, has_clock=True),
    Size(
        "two transactions one after the other, two completers", completers=2, transactions=2, has_lazy_completers=True
    ),
    Size("three transactions one after the other", transactions=3, has_lazy_completers=True),
    Size("two transactions, two topics, a group", transactions=2, topics=2, has_group=True, has_lazy_completers=True),
    Size("two topics, two completers, clock", topics=2, completers=2, has_clock=True),
    Size("a topic and a group, two completers, clock", completers=2, has_group=True, has_clock=True),
    Size("carried: two topics, two completers, clock", topics=2, completers=2, carries=True, has_clock=True),
    Size("carried: two topics, a reader and a follower", topics=2, readers=1, carries=True, has_follower=True),
    Size("carried: two transactions, a reader", transactions=2, readers=1, carries=True),
    Size(
        "carried: two transactions, a topic and a group",
        transactions=2,
        carries=True,
        has_group=True,
        has_lazy_completers=True,
    ),
    Size(
        "carried: two segments, two transactions, late appends and commits",
        transactions=2,
        segments=2,
        carries=True,
        has_late_appends=True,
        has_late_commits=True,
    ),
    Size(
        "carried: a topic and a group, two completers, clock",
        completers=2,
        carries=True,
        has_group=True,
        has_clock=True,
    ),
    Size("carried: two producers of one id, late appends", (0, 0), carries=True, has_late_appends=True),
    Size("shared entries: two ids", (0, 1), carries=True, shares=True),
    Size(
        "carried: vacuum, two completers, clock, crashes",
        completers=2,
        carries=True,
        has_vacuum=True,
        has_clock=True,
        has_crashes=True,
    ),
)
MEDIUM = (
    Size(
        "two producers of one id, clock, crashes, expiry of producers",
        (0, 0),
        has_clock=True,
        has_crashes=True,
        has_expiry=True,
    ),
    Size("two ids", (0, 1), has_lazy_completers=True),
    Size("two producers of one id, lazy completer", (0, 0), has_lazy_completers=True),
    Size("two producers of one id, two completers", (0, 0), completers=2),
    Size("two producers of one id, two topics", (0, 0), topics=2),
    Size("two producers of one id, a topic and a group", (0, 0), has_group=True),
    Size("two producers of one id, two transactions each", (0, 0), transactions=2),
    Size(
        "two transactions, two topics, two completers",
        topics=2,
        completers=2,
        transactions=2,
        has_lazy_completers=True,
    ),
    Size("two transactions, a topic and a group, two completers", completers=2, transactions=2, has_group=True),
    Size("three transactions, two completers", completers=2, transactions=3),
    Size(
        "two transactions, two topics, a reader and a follower", topics=2, readers=1, transactions=2, has_follower=True
    ),
    Size("carried: two transactions, two topics", transactions=2, topics=2, carries=True, has_lazy_completers=True),
    Size("carried: three transactions", transactions=3, carries=True, has_lazy_completers=True),
    Size("carried: two ids", (0, 1), carries=True, has_lazy_completers=True),
    Size("shared entries: two ids, a reader", (0, 1), readers=1, carries=True, shares=True),
    Size("shared entries: two ids, a topic and a group", (0, 1), carries=True, shares=True, has_group=True),
    Size("carried: two producers of one id, a topic and a group", (0, 0), carries=True, has_group=True),
    Size(
        "carried: two transactions, two completers, clock", transactions=2, completers=2, carries=True, has_clock=True
    ),
    Size("carried: two transactions, two topics, two completers", topics=2, completers=2, transactions=2, carries=True),
    Size(
        "carried: two transactions, a topic and a group, two completers",
        completers=2,
        transactions=2,
        carries=True,
        has_group=True,
    ),
    Size(
        "carried: two producers of one id, vacuum, late appends",
        (0, 0),
        carries=True,
        has_vacuum=True,
        has_late_appends=True,
    ),
    Size(
        "carried: two producers of one id, late appends and commits, clock",
        (0, 0),
        carries=True,
        has_late_appends=True,
        has_late_commits=True,
        has_clock=True,
    ),
    Size("carried: two transactions, vacuum, clock", transactions=2, carries=True, has_vacuum=True, has_clock=True),
    Size(
        "carried: two topics, a reader and a follower, clock",
        topics=2,
        readers=1,
        carries=True,
        has_follower=True,
        has_clock=True,
    ),
)
LARGE = Size(
    "two ids, two topics, a group, two completers, a reader and a follower, clock, crashes, expiry of producers",
    (0, 1),
    topics=2,
    completers=2,
    readers=1,
    has_group=True,
    has_clock=True,
    has_expiry=True,
    has_follower=True,
    has_crashes=True,
)

# Actions that only a mutant takes: a rule forbids each of them wherever its program allows it.
FORBIDDEN = frozenset(
    {
        "DECIDE ANEW WHERE IT IS FREE",
        "GO ON TO COMPLETE",
        "PUT THE SAME AT THE NEXT SLOT",
        "TAKE ANOTHER'S ENTRY FOR A LOSS",
        "TAKE EXISTS FOR A CONFLICT",
        "TAKE ITS OWN ENTRY FOR A LOSS",
    }
)


def small_models() -> list[Model[Any]]:
    """Return the models that each build explores to their end."""
    return [*map(transactions, SMALL), SlotModel((1, 2)).model(), FileModel().model()]


def all_models() -> list[Model[Any]]:
    """Return the models that are explored to their end by hand."""
    return [*map(transactions, SMALL), *map(transactions, MEDIUM), SlotModel().model(), FileModel().model()]


def large_model() -> Model[Any]:
    """Return the model that is explored as far as one likes."""
    return transactions(LARGE)
