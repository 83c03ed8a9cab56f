"""A topic whose partition log is gone: it is damage, never a topic that was not there, nor one that was deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.site import Site
from tests.unit.admin.group_members import committed_offset
from tests.unit.reading import TOPIC, accounts_in, commit, leave_open, site_with_topic, transactional
from tests.unit.upkeep.coordinating import decide_only, run_once
from txntable.admin.upkeep import Duty
from txntable.errors import DamagedDataError, TopicAlreadyExistsError
from txntable.format.records import TopicPartition
from txntable.upkeep.transaction_coordinator import CoordinatorConfig
from txntable.warehouse.warehouse import Warehouse

GROUP = "readers"
REMEDY = f"the topic has lost its partition log.* restore its folder from a backup.* topic={TOPIC}"


@pytest.fixture
def site() -> Site:
    """A topic with committed records, and a group that has read some of them."""
    made, warehouse = site_with_topic()
    commit(transactional(warehouse), "ann")
    warehouse.admin().alter_consumer_group_offsets(GROUP, {TopicPartition(TOPIC, 0): 1})
    return made


def lose(site: Site, what: str = "/_segments/_delta_log") -> Warehouse:
    """Delete a folder of the topic; return a process that has not seen it before."""
    for meta in site.objects.below(f"topics/{TOPIC}{what}"):
        site.objects.delete(meta.path)
    return site.open()


def unreadable(warehouse: Warehouse) -> list[str]:
    return [one.where for one in warehouse.admin().check_upkeep() if one.duty is Duty.READ]


@pytest.mark.parametrize(
    "call",
    [
        lambda warehouse: warehouse.admin().create_topic(TOPIC),
        lambda warehouse: warehouse.admin().create_topic(TOPIC, validate_only=True),
        lambda warehouse: warehouse.admin().describe_topics(),
        lambda warehouse: warehouse.admin().delete_topic(TOPIC),
        lambda warehouse: warehouse.producer().send(TOPIC, row={"account": "bob", "amount": 1}),
        lambda warehouse: warehouse.consumer().assign([TopicPartition(TOPIC, 0)]),
        lambda warehouse: warehouse.read_arrow(TOPIC),
        lambda warehouse: warehouse.snapshot().read_arrow(TOPIC),
    ],
)
@pytest.mark.parametrize("what", ["/_segments/_delta_log", "/_segments"])
def test_topic_that_has_lost_its_log_is_damaged_for_everyone(
    site: Site, what: str, call: Callable[[Warehouse], object]
) -> None:
    warehouse = lose(site, what)
    left = site.objects.snapshot().keys()

    with pytest.raises(DamagedDataError, match=REMEDY):
        call(warehouse)

    assert not [path for path in site.objects.snapshot().keys() - left if path.startswith("topics/")]


def test_lists_name_a_lost_topic(site: Site) -> None:
    site.open().admin().create_topic("whole")

    assert lose(site).admin().list_topics() == [TOPIC, "whole"]


def test_topic_is_created_when_what_was_left_of_a_lost_one_is_deleted_and_nothing_names_it(site: Site) -> None:
    warehouse = lose(site, "")
    site.objects.put(f"topics/{TOPIC}/notes.txt", b"somebody's")

    with pytest.raises(DamagedDataError, match=r"delete-offsets.*run --once.* topic="):
        warehouse.admin().create_topic(TOPIC)
    warehouse.admin().delete_consumer_group_offsets(GROUP, [TopicPartition(TOPIC, 0)])
    with pytest.raises(DamagedDataError, match=r"delete-offsets.*run --once.* topic="):
        warehouse.admin().create_topic(TOPIC)
    assert run_once(site).failures
    given_up = site.open().coordinator(CoordinatorConfig(given_up_topics=(TOPIC,))).run_once()

    assert given_up.failures == 0
    assert warehouse.admin().create_topic(TOPIC).partitions == 1


@pytest.mark.parametrize("opens", ["job", "producer"])
@pytest.mark.parametrize("what", ["", "/_segments/_delta_log"])
def test_what_was_decided_is_not_complete_before_a_lost_topic_is_restored(what: str, opens: str) -> None:
    site, warehouse = site_with_topic()
    decide_only(warehouse, leave_open(warehouse, "ann", transactional_id="etl"))
    backup = site.objects.snapshot()
    lose(site, what)

    if opens == "job":
        assert run_once(site).failures
    else:
        with pytest.raises(DamagedDataError, match=REMEDY):
            site.open().producer("etl").init_transactions()
    for path in backup.keys() - site.objects.snapshot().keys():
        site.objects.put(path, backup[path].data)

    assert run_once(site).failures == 0
    assert accounts_in(site.open().read_arrow(TOPIC)) == ["ann"]


@pytest.mark.parametrize("is_named", [False, True])
def test_topic_that_another_creates_at_the_same_time_is_not_taken_for_a_lost_one(is_named: bool) -> None:
    site, warehouse = site_with_topic()
    store = warehouse.store
    listed = store.list

    def create_beside(prefix: str) -> object:
        if prefix == "topics/new":
            admin = site.open().admin()
            admin.create_topic("new")
            if is_named:
                admin.alter_consumer_group_offsets(GROUP, {TopicPartition("new", 0): 0})
                warehouse.completer.offsets.refresh()
            store.list = listed  # type: ignore[method-assign]
        return listed(prefix)

    store.list = create_beside  # type: ignore[method-assign,assignment]
    with pytest.raises(TopicAlreadyExistsError):
        warehouse.admin().create_topic("new")


@pytest.mark.parametrize("what", ["", "/_segments/_delta_log", "/_segments"])
def test_offsets_in_a_lost_topic_stay_and_the_job_says_so(
    site: Site, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    backup = site.objects.snapshot()
    lose(site, what)

    report = run_once(site)

    assert report.failures
    assert report.expired_offsets == 0
    assert f"topic={TOPIC}: the topic has lost its partition log" in caplog.text
    for path in backup.keys() - site.objects.snapshot().keys():
        site.objects.put(path, backup[path].data)
    assert committed_offset(site, TopicPartition(TOPIC, 0), GROUP) == 1


@pytest.mark.parametrize("what", ["", "/_segments/_delta_log", "/_segments"])
def test_check_finds_a_lost_topic_that_groups_have_offsets_in(site: Site, what: str) -> None:
    assert unreadable(site.open()) == []

    assert unreadable(lose(site, what)) == [f"topic {TOPIC}"]
