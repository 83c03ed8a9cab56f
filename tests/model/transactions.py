"""The model of transactions: the whole transition table, for the sizes that are explored.

Decision, verification, enrolment, append, marker, last stable offset, offsets of a group, projection,
fencing, time-out, completion by anyone, with COMPLETE or with the id's next entry, expiry of producers, readers;
decisions that carry uploaded segments, vacuum.
"""

from __future__ import annotations

from tests.model.carried_invariants import CarriedInvariants
from tests.model.completing import Completing
from tests.model.forgetting import Forgetting
from tests.model.invariants import Invariants
from tests.model.knowing import Knowing
from tests.model.producing import Producing
from tests.model.reading import Reading
from tests.model.transition_system import Model
from tests.model.vacuuming import Vacuuming
from tests.model.world import Logs, Size, World


def transactions(size: Size, defects: frozenset[str] = frozenset()) -> Model[World]:
    """Return the model of a size.

    Parameters
    ----------
    size : Size
        How many of everything.
    defects : frozenset of str
        Mutants that are no missing rule (:class:`Producing`, :class:`Knowing` and so on).
    """
    logs = Logs(size)
    parts = (
        Producing(logs, defects),
        Forgetting(logs),
        Knowing(logs, defects),
        Completing(logs, defects),
        Reading(logs),
        Vacuuming(logs, defects),
    )
    actions = tuple(action for part in parts for action in part.actions())
    found = (Invariants(logs), CarriedInvariants(logs))
    always = tuple(each for one in found for each in one.of_every_world())
    at_rest = tuple(each for one in found for each in one.of_worlds_at_rest())
    return Model(size.name, logs.initial(), actions, always, at_rest)
