"""The model of transactions: the whole transition table, for the sizes that are explored.

Decision, verification, enrolment, append, marker, last stable offset, offsets of a group, projection,
fencing, time-out, completion by anyone, expiry of producers, readers.
"""

from __future__ import annotations

from tests.model.completing import Completing
from tests.model.invariants import Invariants
from tests.model.producing import Producing
from tests.model.reading import Reading
from tests.model.transition_system import Model
from tests.model.world import Logs, Size, World


def transactions(size: Size, defects: frozenset[str] = frozenset()) -> Model[World]:
    """Return the model of a size.

    Parameters
    ----------
    size : Size
        How many of everything.
    defects : frozenset of str
        Mutants that are no missing rule (:class:`Completing`).
    """
    logs = Logs(size)
    invariants = Invariants(logs)
    actions = (*Producing(logs).actions(), *Completing(logs, defects).actions(), *Reading(logs).actions())
    return Model(size.name, logs.initial(), actions, invariants.of_every_world(), invariants.of_worlds_at_rest())
