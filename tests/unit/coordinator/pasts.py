"""What a row of the builders remembers of its past once its epoch, 5, is decided: spelled out, not computed."""

from __future__ import annotations

from txntable.coordinator.decision import Outcome
from txntable.coordinator.past_decisions import PastDecisions
from txntable.coordinator.transaction import TransactionMetadata


def past_at_five(row: TransactionMetadata) -> PastDecisions:
    """Return it for a row whose last decision, if any, is of epoch 4."""
    if row.decision is None:
        return PastDecisions.parse("N5")
    return PastDecisions.parse("N4C" if row.decision.outcome is Outcome.COMMIT else "N4A")
