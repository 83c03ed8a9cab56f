"""The mutants: seeded faults of the protocol, each of which the simulation or the checker must find.

A mutant is a fault of the real code at the place where a rule of PROTOCOL.md lives.  Not in here: what only makes
the code slow, or what a second rule makes harmless by itself; then both are broken at once.
"""

from __future__ import annotations

from tests.mutants.group_mutants import GROUP_MUTANTS
from tests.mutants.log_mutants import LOG_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.partition_mutants import PARTITION_MUTANTS
from tests.mutants.transaction_mutants import TRANSACTION_MUTANTS
from tests.mutants.upkeep_mutants import UPKEEP_MUTANTS

_ALL = (*LOG_MUTANTS, *TRANSACTION_MUTANTS, *PARTITION_MUTANTS, *UPKEEP_MUTANTS, *GROUP_MUTANTS)
_NOT_FOUND_YET: frozenset[str] = frozenset()

MUTANTS: tuple[Mutant, ...] = tuple(mutant for mutant in _ALL if mutant.name not in _NOT_FOUND_YET)
"""Those that runs have found."""
UNDECIDED: tuple[Mutant, ...] = tuple(mutant for mutant in _ALL if mutant.name in _NOT_FOUND_YET)
"""Those that no run has found yet: each is a hole of the simulation, or harmless; longer searches will tell."""
