"""A topic with a segment of every status, on which rewrites are decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.unit.log.world import World
from tests.unit.partition.history import TOPIC_ID, History, topic_settings
from txntable.log.actions import Action, Add, Remove, Txn
from txntable.partition.batch import ProducerEpoch
from txntable.partition.markers import Control
from txntable.partition.rewriting import (
    Rewrite,
    RewriteDecision,
    RewriteRequest,
    decide_rewrite,
)
from txntable.topics.topic_log import TopicLog

ANN, BOB, CID, DAN, EVE = (ProducerEpoch(7 + number, 0) for number in range(5))
MERGED_THROUGH = f"merged_through/{TOPIC_ID}"
DAY_MS = 86_400_000


@dataclass
class Site:
    """Partition 0: a plain segment, Ann's and Cid's committed, Bob's aborted, Dan's open; partition 1: Ann's."""

    history: History
    plain: str
    ann: str
    ann_elsewhere: str
    bob: str
    cid: str
    dan: str

    def decided(self, *rewrites: Rewrite, **more: Sequence[str]) -> RewriteDecision:
        logs, public = self.history.topic.segments, self.history.topic.public.table
        request = RewriteRequest(TOPIC_ID, rewrites, **{name: tuple(paths) for name, paths in more.items()})
        return decide_rewrite(logs.fold, logs.table, public, request, self.history.time_ms)

    def merge(self, *sources: str, partition: int = 0, left_out_for: int = 0) -> Rewrite:
        return replace(self.history.merged(partition, sources), left_out_for=left_out_for)

    def write(self, actions: Sequence[Action]) -> None:
        self.history.commit(lambda table: actions)


def settled_site(policy: str = "compact") -> Site:
    history = History(TopicLog(World().process().context, "t"), tick_ms=10)
    history.create(replace(topic_settings(), config={"cleanup.policy": policy}))
    history.append(None, [(0, 2)], transactional=False)
    for producer in (ANN, BOB, CID):
        history.append(producer, [(0, 2), *([(1, 2)] if producer is ANN else [])], transactional=True)
    for producer in (ANN, BOB, CID):
        history.decide(producer, Control.ABORT if producer is BOB else Control.COMMIT)
    history.append(DAN, [(0, 2)], transactional=True)
    history.publish()
    plain, ann, ann_elsewhere, bob, cid, dan = history.segments
    return Site(history, plain, ann, ann_elsewhere, bob, cid, dan)


def adds(decision: RewriteDecision) -> list[Add]:
    return [a for a in decision.actions if isinstance(a, Add) and a.partition_values["_control"] is None]


def removed(decision: RewriteDecision) -> set[str]:
    return {action.path for action in decision.actions if isinstance(action, Remove)}


def raised(decision: RewriteDecision) -> list[int]:
    return [a.version for a in decision.actions if isinstance(a, Txn) and a.app_id == MERGED_THROUGH]


def lose(site: Site, path: str) -> None:
    row = site.history.topic.segments.table.files.get(path)
    assert row is not None
    site.write([Remove(path, 9, False, row.partition_values, row.size)])
