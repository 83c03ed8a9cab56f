"""A consumer's place in its group as it goes by it.

Owns that what the membership learns meanwhile, maybe in the background, counts from the next poll on: that one makes
it what the consumer goes by.
"""

from __future__ import annotations

from txntable.coordinator.group_request import GroupMetadata, MemberAssignment
from txntable.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    TxnTableError,
    UnknownMemberIdError,
)
from txntable.groups.group_client import GroupClient
from txntable.groups.member_config import MemberConfig
from txntable.groups.membership import Membership
from txntable.offsets.group_commit import GroupCommit
from txntable.runtime.environment import Environment

_NO_MEMBER = (UnknownMemberIdError, GroupIdNotFoundError, FencedMemberEpochError)


class GroupPlace:
    """Who a consumer is in its group.

    Parameters
    ----------
    config : MemberConfig, optional
        ``None``: it is no member, ever.
    groups : GroupClient
        Makes the requests.
    environment : Environment
        Says how long ago something was.

    Attributes
    ----------
    membership : Membership or None
        What the group knows of it.
    joins : int
        How often it has become a member.
    """

    def __init__(self, config: MemberConfig | None, groups: GroupClient, environment: Environment) -> None:
        self.membership = None if config is None else Membership(config, groups, environment)
        self.joins = 0
        self._applied: MemberAssignment | None = None

    @property
    def applied(self) -> MemberAssignment | None:
        """What the consumer goes by; ``None``: it is no member (yet, or any more)."""
        return self._applied

    @applied.setter
    def applied(self, told: MemberAssignment | None) -> None:
        self.joins += self._applied is None and told is not None
        self._applied = told

    @property
    def metadata(self) -> GroupMetadata | None:
        """Who commits now; ``None``: it is no member."""
        return None if self.applied is None else self.applied.metadata

    def polled(self, *, works: bool = False) -> None:
        """Take note of a sign of life; `works`: of the beginning of work of any length."""
        if self.membership is not None:
            self.membership.polled(works=works)

    def require_unfenced(self) -> None:
        """Refuse who was fenced, and has nothing left to commit; raises as :meth:`Membership.require_unfenced`."""
        if self.membership is not None:
            self.membership.require_unfenced()

    def refused(self, error: TxnTableError, commit: GroupCommit) -> None:
        """Take note that the group refused a commit, where that says that this is no member any more."""
        current = self.metadata
        is_about_now = (
            commit.member is not None and current is not None and commit.member.member_id == current.member_id
        )
        if self.membership is not None and isinstance(error, FencedInstanceIdError):
            self.membership.fence(error)
        elif self.membership is not None and is_about_now and isinstance(error, _NO_MEMBER):
            self.membership.forget()
