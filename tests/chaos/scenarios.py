"""The catalogue of scenarios; each can be run alone: ``python -m tests.chaos --scenario NAME``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.chaos.limits import Limits
from tests.chaos.premises import (
    ACCOUNTS,
    BALANCES,
    COPIERS,
    CREW,
    CREW_IDS,
    EVENTS,
    FOLLOWERS,
    KEEP_MS,
    KEPT,
    KEYED_CONFIG,
    MERCHANTS,
    MIRROR,
    SCRATCH,
    SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    Site,
)
from tests.chaos.scenario import FirstBlow, Kind, Scenario, TopicPlan
from tests.checker.operations import Topics
from txntable.format.warehouse_settings import WarehouseSettings

_MONEY = Topics(accounts=frozenset(ACCOUNTS), copies={MIRROR: (EVENTS, COPIERS)})
_TOPICS = {topic: TopicPlan() for topic in (*ACCOUNTS, EVENTS, MIRROR)}
_COPIER_IDS = ("copier ann", "copier bob", "copier cid")

# A day is five seconds; half of what the partition logs keep is for an upload; then comes what no log names.
_SHORT_DAYS = Limits(guard_ms=500, day_ms=5_000, segments_ms=8_000, unnamed_ms=9_000, checkpoint_entries=10)
_LONGER_THAN_ALL_MS = 11_000
_SHORT_SETTINGS = {
    "transaction_max_timeout_ms": TRANSACTION_TIMEOUT_MS,
    "transactional_id_expiration_ms": 8_000,
    "producer_id_expiration_ms": 4_000,
    "vacuum_retention_ms": 6_000,
    "snapshot_retention_ms": 2_000,
}

SCENARIOS: Mapping[str, Scenario] = {
    "everyday": Scenario(
        "money that moves, events that are copied, upkeep, and admins that take ids away",
        {
            "teller": ("ann", "bob"),
            CREW: ("one",),
            "double": ("one", "two"),
            "batcher": ("one", "two"),
            "counter": ("one", "two"),
            "appender": ("idempotent", "plain"),
            "copier": ("ann", "bob", "cid"),
            "follower": ("ann", "bob"),
            "reader": ("one",),
            "watcher": ("read_committed", "read_uncommitted"),
            "compactor": ("one",),
            "coordinator": ("one", "two"),
            "vacuum": ("one",),
            "admin": ("one",),
        },
        _TOPICS,
        _MONEY,
        (COPIERS, FOLLOWERS),
        ("ann", "bob", *CREW_IDS, "double", "batcher", "counter", *_COPIER_IDS),
    ),
    "sleepers": Scenario(
        "vacuums, compaction, jobs, consumers and writers that sleep for longer than each retention, beside who took "
        "their places; a day is seconds",
        {
            "teller": ("ann", "bob"),
            "double": ("one", "two"),
            "appender": ("idempotent",),
            "copier": ("ann", "bob"),
            "follower": ("ann",),
            "reader": ("one",),
            "watcher": ("read_committed",),
            "compactor": ("one",),
            "coordinator": ("one", "two"),
            "vacuum": ("one", "two"),
        },
        _TOPICS,
        replace(_MONEY, forgetful=True),
        (COPIERS, FOLLOWERS),
        ("ann", "bob", "double", *_COPIER_IDS[:2]),
        limits=_SHORT_DAYS,
        settings=_SHORT_SETTINGS,
        first_blows=[
            FirstBlow(kind, _LONGER_THAN_ALL_MS, role)
            for kind, role in (
                (Kind.DOUBLE, "vacuum"),
                (Kind.DOUBLE, "compactor"),
                (Kind.PAUSE, "coordinator"),
                (Kind.DOUBLE, "copier"),
                (Kind.DOUBLE, "teller"),
                (Kind.PAUSE, "reader"),
            )
        ],
        pauses_ms=(300, 4_000, 8_000, _LONGER_THAN_ALL_MS),
    ),
    "late": Scenario(
        "puts that a server has failed, and does later: into slots that others have, or that were cleaned up",
        {
            "teller": ("ann", "bob"),
            "double": ("one", "two"),
            "appender": ("idempotent",),
            "copier": ("ann", "bob"),
            "follower": ("ann",),
            "reader": ("one",),
            "watcher": ("read_committed",),
            "compactor": ("one",),
            "coordinator": ("one",),
            "vacuum": ("one",),
        },
        _TOPICS,
        replace(_MONEY, forgetful=True),
        (COPIERS, FOLLOWERS),
        ("ann", "bob", "double", *_COPIER_IDS[:2]),
        limits=_SHORT_DAYS,
        settings=_SHORT_SETTINGS,
        pauses_ms=(300, 4_000),
        stores=("s3",),
        held=True,
    ),
    "clocks": Scenario(
        "the same on machines whose clocks are hours ahead or behind, and are set; a folder's own clock jumps, too",
        {
            "teller": ("ann", "bob"),
            "appender": ("idempotent",),
            "copier": ("ann", "bob"),
            "reader": ("one",),
            "watcher": ("read_committed",),
            "compactor": ("one",),
            "coordinator": ("one", "two"),
            "vacuum": ("one", "two"),
        },
        _TOPICS,
        replace(_MONEY, forgetful=True),
        (COPIERS,),
        ("ann", "bob", *_COPIER_IDS[:2]),
        limits=_SHORT_DAYS,
        settings=_SHORT_SETTINGS,
        first_blows=[FirstBlow(Kind.DOUBLE, 4_000, "vacuum"), FirstBlow(Kind.PAUSE, 4_000, "vacuum")],
        pauses_ms=(300, 4_000, 8_000),
        clocks=True,
    ),
    "erasing": Scenario(
        "compaction by key, retention, deletion of records and changed settings beside transactions",
        {
            "keeper": ("k", "l", "m"),
            "eraser": ("one", "two"),
            "reader": ("one",),
            "watcher": ("read_committed", "read_uncommitted"),
            "coordinator": ("one",),
            "vacuum": ("one",),
            "admin": ("one",),
        },
        {topic: TopicPlan(config) for topic, config in KEYED_CONFIG.items()},
        Topics(compacted=frozenset({BALANCES, KEPT})),
        ids=("k", "l", "m"),
        first_blows=(FirstBlow(Kind.KILL, 0, "eraser"), FirstBlow(Kind.DOUBLE, 4_000, "eraser")),
        pauses_ms=(20, 300, 4_000),
    ),
    "exchange": Scenario(
        "prepared transactions, and an external database that decides them",
        {
            "merchant": ("one", "four", "three", "five"),
            "reader": ("one",),
            "watcher": ("read_committed",),
            "compactor": ("one",),
            "coordinator": ("one", "two"),
        },
        {topic: TopicPlan() for topic in (*ACCOUNTS, EVENTS)},
        Topics(accounts=frozenset(ACCOUNTS)),
        ids=MERCHANTS,
        first_blows=(FirstBlow(Kind.KILL, 0, "merchant"), FirstBlow(Kind.DOUBLE, 4_000, "merchant")),
        pauses_ms=(20, 300, 4_000),
    ),
    "founding": Scenario(
        "partitions, columns and settings that change, and a topic that is deleted and made again, in transactions",
        {
            "founder": ("one", "two", "three"),
            "reader": ("one",),
            "watcher": ("read_committed",),
            "compactor": ("one",),
            "coordinator": ("one",),
        },
        {topic: TopicPlan() for topic in (*ACCOUNTS, EVENTS)},
        Topics(accounts=frozenset(ACCOUNTS), scratch=frozenset({SCRATCH})),
        ids=("founder one", "founder two", "founder three"),
        first_blows=(FirstBlow(Kind.KILL, 0, "founder"), FirstBlow(Kind.DOUBLE, 4_000, "founder")),
        pauses_ms=(20, 300, 4_000),
    ),
    "streams": Scenario(
        "compaction, retention and deletion of records beside Delta's own readers: deltalake's here, a stream and a "
        "change feed of delta-spark where a session is at hand (tests/spark/test_streams_beside_upkeep.py)",
        {
            "teller": ("ann", "bob"),
            "appender": ("idempotent", "plain"),
            "trimmer": ("one",),
            "compactor": ("one",),
            "coordinator": ("one",),
            "deltalake": ("one",),
            "reader": ("one",),
            "watcher": ("read_committed",),
        },
        {
            **{topic: TopicPlan() for topic in ACCOUNTS},
            EVENTS: TopicPlan({"segment.bytes": "20000", "retention.ms": str(KEEP_MS)}),
        },
        # Of accounts no record goes.
        Topics(accounts=frozenset(ACCOUNTS)),
        ids=("ann", "bob"),
        first_blows=(
            FirstBlow(Kind.KILL, 0, "compactor"),
            FirstBlow(Kind.DOUBLE, 3_000, "compactor"),
            FirstBlow(Kind.KILL, 0, "teller"),
            FirstBlow(Kind.KILL, 0, "trimmer"),
        ),
        pauses_ms=(20, 300, 4_000),
    ),
    "static": Scenario(
        "static members that copy in transactions: killed, restarted in turn, resumed beside who took their place",
        {
            "appender": ("idempotent", "plain"),
            "static": ("ann", "bob", "cid"),
            "watcher": ("read_committed",),
            "reader": ("one",),
            "coordinator": ("one",),
        },
        {topic: TopicPlan() for topic in (EVENTS, MIRROR)},
        Topics(copies={MIRROR: (EVENTS, COPIERS)}),
        (COPIERS,),
        _COPIER_IDS,
        first_blows=(
            FirstBlow(Kind.DOUBLE, SESSION_TIMEOUT_MS + 2_000, "static"),
            *(FirstBlow(Kind.KILL, 0, "static") for _ in range(3)),
            FirstBlow(Kind.DOUBLE, 300, "static"),
        ),
    ),
}

_ONE_MINUTE_MS, _SOAK_TIMEOUT_MS = 60_000, 30_000
_KEPT_A_MINUTE = TopicPlan({"segment.bytes": "20000", "retention.ms": str(_ONE_MINUTE_MS)})
# Longer than who rests: a view that is older than the guard is opened anew, and nobody would measure anything else.
_SOAK_DAYS = Limits(guard_ms=2_500, day_ms=25_000, segments_ms=40_000, unnamed_ms=45_000, checkpoint_entries=10)
_SOAK_SETTINGS = {
    "transaction_max_timeout_ms": _SOAK_TIMEOUT_MS,
    "transactional_id_expiration_ms": _ONE_MINUTE_MS,
    "producer_id_expiration_ms": _ONE_MINUTE_MS,
    "vacuum_retention_ms": 25_000,
    "snapshot_retention_ms": 10_000,
}

SOAK = Scenario(
    "everything at once for as long as it takes to see what grows: records, log entries, ids and offsets all come to "
    "their end within minutes, one of each role lives from the first moment to the last, others are killed and paused",
    {
        "teller": ("ann", "bob"),
        "appender": ("idempotent",),
        "copier": ("ann", "bob"),
        "follower": ("ann",),
        "reader": ("one",),
        "watcher": ("read_committed",),
        "deltalake": ("one",),
        "compactor": ("one",),
        "coordinator": ("one",),
        "vacuum": ("one",),
    },
    dict.fromkeys(_TOPICS, _KEPT_A_MINUTE),
    Topics(copies={MIRROR: (EVENTS, COPIERS)}, forgetful=True),
    (COPIERS, FOLLOWERS),
    ("ann", "bob", *_COPIER_IDS[:2]),
    limits=_SOAK_DAYS,
    settings=_SOAK_SETTINGS,
    pauses_ms=(300, 4_000),
    stores=("s3",),
    rests=25,
    transaction_timeout_ms=_SOAK_TIMEOUT_MS,
    spared=frozenset(
        {("teller", "ann"), ("copier", "ann"), ("follower", "ann"), ("reader", "one"), ("watcher", "read_committed")}
        | {("deltalake", "one"), ("compactor", "one"), ("coordinator", "one"), ("vacuum", "one")}
    ),
)
"""For ``make soak`` alone."""


def scenario_of(site: Site) -> Scenario:
    """Return what happens at a site."""
    return {**SCENARIOS, "soak": SOAK}[site.scenario].on(site.url)


def create(site: Site) -> None:
    """Create the warehouse of a site, and its topics."""
    scenario = scenario_of(site)
    admin = site.create(WarehouseSettings(**scenario.settings)).admin()
    for topic, plan in scenario.topics.items():
        admin.create_topic(topic, partitions=plan.partitions, schema=plan.schema, config=plan.config)
