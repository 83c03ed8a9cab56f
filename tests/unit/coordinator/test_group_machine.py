"""Any order of joins, leaves, expiries, releases and growing topics: what must hold all the same."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.coordinator.groups import GroupLog, topic_id_of
from txntable.coordinator.assignment import NamedPartition
from txntable.coordinator.assignors import Assignor
from txntable.coordinator.errors import StaleMemberEpochError, TxnTableError, UnknownMemberIdError
from txntable.coordinator.group import GroupTopic
from txntable.coordinator.group_fencing import check_member
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.group_state import GroupState

SESSION_MS = 10_000


class Group(RuleBasedStateMachine):
    """One group, its members, and what each of them froze when it read."""

    def __init__(self) -> None:
        super().__init__()
        self.log = GroupLog(topics={"a": GroupTopic(topic_id_of("a0"), 3), "b": GroupTopic(topic_id_of("b0"), 2)})
        self.made = 0
        self.now_ms = 0
        self.heartbeats: dict[str, int] = {}
        self.frozen: list[GroupMetadata] = []
        # Who has owned what since when, as an observer of every row sees it: a break begins a new tenure.
        self.tenures: dict[NamedPartition, tuple[str, int]] = {}
        self.tenures_at_read: list[dict[NamedPartition, tuple[str, int]]] = []

    def _observe(self) -> None:
        owned = {} if self.log.row is None else self.log.owned
        now = {partition: name for name, partitions in owned.items() for partition in partitions}
        assert len(now) == sum(map(len, owned.values())), "a partition has two owners"
        for partition in self.tenures.keys() - now.keys():
            del self.tenures[partition]
        for partition, name in now.items():
            if self.tenures.get(partition, (None, 0))[0] != name:
                self.tenures[partition] = (name, self.log.head)

    @rule(
        topics=st.frozensets(st.sampled_from("ab"), min_size=1),
        assignor=st.sampled_from(Assignor),
        static=st.sampled_from([None, None, None, "i", "j"]),
    )
    def join(self, topics: frozenset[str], assignor: Assignor, static: str | None) -> None:
        self.made += 1
        name, replaced = f"m{self.made}", {} if self.log.row is None else self.log.row.members
        old = next((m for m in replaced.values() if static is not None and m.instance_id == static), None)
        assignors = (assignor, *(other for other in Assignor if other is not assignor))
        self.log.join(name, topics=topics, assignors=assignors, instance_id=static, now_ms=self.now_ms)
        self.heartbeats[name] = self.now_ms
        if old is not None:
            assert old.member_id not in self.log.members
        self._observe()

    @precondition(lambda self: self.log.members)
    @rule(data=st.data(), topics=st.frozensets(st.sampled_from("ab"), min_size=1))
    def subscribe(self, data: st.DataObject, topics: frozenset[str]) -> None:
        name = data.draw(st.sampled_from(self.log.members))
        assert self.log.row is not None
        member = self.log.row.members[name]
        self.log.join(
            name, topics=topics, assignors=member.assignors, instance_id=member.instance_id, now_ms=member.joined_ms
        )
        self._observe()

    @precondition(lambda self: self.log.members)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.log.leave(data.draw(st.sampled_from(self.log.members)))
        self._observe()

    @precondition(lambda self: self.log.members)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.log.members))
        owned = self.log.owned[name]
        some = data.draw(st.frozensets(st.sampled_from(owned))) if owned else frozenset()
        kept = self.log.look(name).partitions
        assert self.log.release(name, *some).partitions.items() >= kept.items()
        self._observe()

    @rule(passed_ms=st.sampled_from([1_000, SESSION_MS, SESSION_MS + 1]), data=st.data())
    def time_passes(self, passed_ms: int, data: st.DataObject) -> None:
        self.now_ms += passed_ms
        for name in self.log.members:
            if data.draw(st.booleans()):
                self.heartbeats[name] = self.now_ms
        before, fresh = self.log.members, [n for n in self.log.members if self.heartbeats[n] == self.now_ms]
        gone = self.log.expel(self.heartbeats, self.now_ms)
        assert not set(gone) & set(fresh)
        assert set(self.log.members) == set(before) - set(gone)
        self._observe()

    @rule(topic=st.sampled_from("ab"), change=st.sampled_from(["grow", "again", "gone"]))
    def topic_changes(self, topic: str, change: str) -> None:
        known = self.log.topics[topic]
        again = GroupTopic(topic_id_of(f"{topic}{self.log.head}"), 2)
        grown = again if known is None else GroupTopic(known.topic_id, known.partitions + 1)
        before = known if known is None else dict(self.tenures)
        self.log.refresh({topic: {"grow": grown, "again": again, "gone": None}[change]})
        if change == "again" and before is not None:
            # The same numbers of another topic: nobody's tenure goes on.
            self.tenures = {p: tenure for p, tenure in self.tenures.items() if p[0] != topic}
        self._observe()

    @precondition(lambda self: self.log.members)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        assert self.log.row is not None
        name = data.draw(st.sampled_from(self.log.members))
        self.frozen.append(self.log.metadata(name, self.log.row.members[name].instance_id))
        self.tenures_at_read.append(dict(self.tenures))

    @precondition(lambda self: self.frozen)
    @rule(data=st.data(), topic=st.sampled_from("ab"), number=st.integers(0, 4))
    def commit_what_was_read(self, data: st.DataObject, topic: str, number: int) -> None:
        which = data.draw(st.integers(0, len(self.frozen) - 1))
        metadata, partition = self.frozen[which], (topic, number)
        then, now = self.tenures_at_read[which].get(partition), self.tenures.get(partition)
        owned_since = then is not None and then == now and then[0] == metadata.member_id
        try:
            check_member(self.log.row, metadata, [partition], transactional=True)
        except UnknownMemberIdError:
            assert metadata.member_id not in self.log.members
        except StaleMemberEpochError:
            assert not owned_since
        except TxnTableError:
            assert metadata.instance_id is not None
            assert metadata.member_id not in self.log.members
        else:
            assert owned_since

    @rule()
    def settle(self) -> None:
        """Everyone gives up what it has to: then all that is subscribed to is owned, and nothing is left to do."""
        self.log.release_all()
        row = self.log.row
        if row is not None and row.members:
            assert row.state is GroupState.STABLE
            wanted = {
                (name, number)
                for name, topic in row.topics.items()
                if name in row.subscribed_topics
                for number in range(topic.partitions)
            }
            assert {partition for each in self.log.owned.values() for partition in each} == wanted
            assert all(partition[0] in m.topics for m in row.members.values() for partition in m.owned)
        self._observe()

    @invariant()
    def generations_only_rise_and_owners_are_members(self) -> None:
        if self.log.row is not None:
            assert {name for name, _ in self.tenures.values()} <= set(self.log.members)
            assert self.log.row.state is GroupState.EMPTY or self.log.members


Group.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestGroup = Group.TestCase
