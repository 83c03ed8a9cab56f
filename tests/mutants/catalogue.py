"""The mutants: seeded faults of the protocol, each of which the simulation or the checker must find.

A mutant is a fault of the real code at the place where a rule of PROTOCOL.md lives.  Not in here: what only makes
the code slow, or what a second rule makes harmless by itself; then both are broken at once.
"""

from __future__ import annotations

from tests.mutants.group_mutants import GROUP_MUTANTS
from tests.mutants.log_mutants import LOG_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.outcome_mutants import OUTCOME_MUTANTS
from tests.mutants.partition_mutants import PARTITION_MUTANTS
from tests.mutants.transaction_mutants import TRANSACTION_MUTANTS
from tests.mutants.upkeep_mutants import UPKEEP_MUTANTS

MUTANTS: tuple[Mutant, ...] = (
    *LOG_MUTANTS,
    *TRANSACTION_MUTANTS,
    *OUTCOME_MUTANTS,
    *PARTITION_MUTANTS,
    *UPKEEP_MUTANTS,
    *GROUP_MUTANTS,
)
