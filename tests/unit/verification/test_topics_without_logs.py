"""Topics of which nothing is left that tells of them: they are found by what transactions and groups name."""

from __future__ import annotations

import re

import pytest

from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import Site
from tests.unit.producer.producing import started
from tests.unit.verification.stored import U, damages, delete_all, verified
from txntable.format.layout import OFFSET_LOG_ROOT, commit_path
from txntable.format.records import TopicPartition
from txntable.verification.damage import DamageKind
from txntable.warehouse.stored_warehouse import verify_stored
from txntable.warehouse.warehouse import Warehouse


@pytest.mark.parametrize("what", ["", "/_segments/_delta_log", "/_segments"])
def test_topic_that_is_lost_is_found_by_what_transactions_name(site: Site, warehouse: Warehouse, what: str) -> None:
    """Bug: one was told to restore the whole warehouse, where the public table had all that was committed."""
    delete_all(site, f"topics/u{what}")

    (found,) = (one for one in damages(site) if (one.kind, one.path) == (DamageKind.LOG_MISSING, U))
    assert "Delete nothing of the topic's public table" in found.remedy
    assert "whole warehouse" not in found.remedy


def test_each_folder_that_is_lost_is_found_but_that_of_a_topic_which_nothing_names(
    site: Site, warehouse: Warehouse
) -> None:
    backup = site.objects.snapshot()
    unnoticed = set()
    for folder in {path.rsplit("/", depth)[0] for path in backup for depth in range(1, path.count("/") + 1)}:
        delete_all(site, folder)
        if not damages(site):
            unnoticed.add(folder)
        for path in backup.keys() - site.objects.snapshot().keys():
            site.objects.put(path, backup[path].data)

    # Nothing was ever committed there: its public table, which shows nothing, is made again by anyone.
    assert unnoticed == {"topics/raw", "topics/raw/_delta_log"}


def test_topic_that_is_lost_is_found_by_the_offsets_of_groups(site: Site) -> None:
    admin = site.create().admin()
    for name in ("read", "unread", "deleted"):
        admin.create_topic(name)
    for name in ("read", "deleted"):
        admin.alter_consumer_group_offsets("g", {TopicPartition(name, 0): 0})
    admin.delete_topic("deleted")
    assert damages(site) == []

    for name in ("read", "unread"):
        delete_all(site, f"topics/{name}")

    (found,) = damages(site)
    assert (found.kind, found.path) == (DamageKind.LOG_MISSING, "topics/read/_segments")
    assert found.problem == "group g names the topic, and its segment log is not there"


def test_topic_that_is_lost_is_found_by_an_older_decision_also_when_it_is_asked_for(site: Site) -> None:
    warehouse = site.create()
    for name in ("first", "second"):
        warehouse.admin().create_topic(name)
    producer = started(warehouse)
    for name in ("first", "second"):
        with producer.transaction() as transaction:
            transaction.send(name, value=b"x")
    delete_all(site, "topics/first")

    for topics in (None, ["first"]):
        (found,) = verified(site, topics).damages
        assert (found.kind, found.path) == (DamageKind.LOG_MISSING, "topics/first/_segments")
        assert re.match(r"the decision at \d+ names the topic", found.problem)
    assert list(verified(site, ["second"]).damages) == []


def test_topic_that_is_created_during_a_verification_is_not_taken_for_a_lost_one(site: Site) -> None:
    warehouse = site.create()
    warehouse.admin().create_topic("old")
    beside = site.open()

    def progress(done: str) -> None:
        if "topics/old" in done and "new" not in beside.admin().list_topics():
            beside.admin().create_topic("new")
            beside.admin().alter_consumer_group_offsets("g", {TopicPartition("new", 0): 0})

    assert list(verify_stored(MemoryStore(site.objects), None, progress, site.time).damages) == []
    assert "new" in beside.admin().list_topics()


@pytest.mark.parametrize("asked", [None, ["lost"]])
def test_topic_that_was_lost_is_found_by_a_decision_also_when_another_one_was_made_over_it(
    site: Site, asked: list[str] | None
) -> None:
    warehouse = site.create()
    lost = warehouse.admin().create_topic("lost").topic_id
    with started(warehouse) as producer, producer.transaction() as transaction:
        transaction.send("lost", value=b"x")
    delete_all(site, "topics/lost")
    site.open().admin().create_topic("lost")

    (found,) = verified(site, asked).damages

    assert (found.kind, found.path) == (DamageKind.LOG_COVERED, "topics/lost/_segments")
    assert re.match(
        rf"the decision at \d+ names an earlier topic of the name, {lost}, whose log was lost", found.problem
    )


def test_topic_that_was_deleted_before_another_one_of_its_name_is_not_lost(site: Site) -> None:
    warehouse = site.create()
    for _ in range(2):
        warehouse.admin().create_topic("lost")
        with started(warehouse) as producer, producer.transaction() as transaction:
            transaction.send("lost", value=b"x")
        warehouse.admin().delete_topic("lost")

    assert damages(site) == []


def test_topic_that_is_made_anew_while_it_is_verified_is_not_lost(site: Site) -> None:
    site.create().admin().create_topic("lost")
    made: list[str] = []

    def make_anew(done: str) -> None:
        # The topics were read by now, and the transaction log is read once more.
        if done.startswith(OFFSET_LOG_ROOT) and not made:
            warehouse = site.open()
            warehouse.admin().delete_topic("lost")
            made.append(warehouse.admin().create_topic("lost").topic_id)
            with started(warehouse) as producer, producer.transaction() as transaction:
                transaction.send("lost", value=b"x")

    found = verify_stored(MemoryStore(site.objects), progress=make_anew, environment=site.time)

    assert made
    assert list(found.damages) == []


def test_topic_whose_deletion_is_cleaned_out_of_the_log_is_not_lost(site: Site) -> None:
    warehouse = site.create()
    for is_last in (False, True):
        warehouse.admin().create_topic("lost")
        with started(warehouse) as producer, producer.transaction() as transaction:
            transaction.send("lost", value=b"x")
        if not is_last:
            warehouse.admin().delete_topic("lost")
    log = warehouse.topic_log("lost").segments
    version = log.refresh().version
    log.write_checkpoint()
    assert version is not None
    for below in range(version):
        site.objects.delete(commit_path("topics/lost/_segments", below))

    assert damages(site) == []
