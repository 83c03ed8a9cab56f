"""How a consumer is a member of its group: the settings that its membership needs, checked and complete.

Values only; must not know of consumers.
"""

from __future__ import annotations

from dataclasses import dataclass

from txntable.coordinator.assignors import DEFAULT_ASSIGNORS, Assignor

DEFAULT_SESSION_TIMEOUT_MS = 45_000
DEFAULT_HEARTBEAT_INTERVAL_MS = 3_000
DEFAULT_MAX_POLL_INTERVAL_MS = 300_000
# Members look for dead ones at most so many times in a session timeout.
_LOOKS_PER_SESSION = 3


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """How a member behaves.

    Attributes
    ----------
    group : str
        Its group.
    instance_id : str or None
        Of a static member, which keeps its partitions over a restart; ``None``: none.
    client_id : str
        For people.
    assignors : tuple of Assignor
        What it supports, the best first.
    session_timeout_ms : int
        Without a heartbeat for longer than this, anyone may expel it.
    heartbeat_interval_ms : int
        How often it writes one, and looks at its assignment.
    max_poll_interval_ms : int
        Without a poll for longer than this, it leaves by itself.
    """

    group: str
    instance_id: str | None = None
    client_id: str = ""
    assignors: tuple[Assignor, ...] = DEFAULT_ASSIGNORS
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    heartbeat_interval_ms: int = DEFAULT_HEARTBEAT_INTERVAL_MS
    max_poll_interval_ms: int = DEFAULT_MAX_POLL_INTERVAL_MS

    @property
    def expel_interval_ms(self) -> int:
        """How often it looks for members that are dead."""
        return max(self.heartbeat_interval_ms, self.session_timeout_ms // _LOOKS_PER_SESSION)
