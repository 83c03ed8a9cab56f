"""Entries of another warehouse above the end of a public table: what other engines see of them ends."""

from __future__ import annotations

import json

import pytest

from tests.doubles.memory_store import MemoryStore
from tests.simulation.site import TWO_COLUMNS, Site, published
from tests.unit.reading import TOPIC, commit, plain, transactional
from tests.unit.upkeep.coordinating import run_once
from txntable.format.layout import commit_path, public_root
from txntable.verification.damage import DamageKind
from txntable.warehouse.stored_warehouse import verify_stored

ROOT = public_root(TOPIC)


def site_with(*accounts: str, started: int = 0) -> Site:
    made = Site(started=started)
    made.create().admin().create_topic(TOPIC, partitions=1, schema=TWO_COLUMNS)
    producer = transactional(made.open())
    for account in accounts:
        commit(producer, account)
    producer.close()
    return made


def files_for_others(site: Site) -> set[str]:
    """What a reader shows that folds every entry."""
    live: set[str] = set()
    objects = site.objects.snapshot()
    version = 0
    while (found := objects.get(commit_path(ROOT, version))) is not None:
        for line in found.data.decode().splitlines():
            action = json.loads(line)
            live |= {action["add"]["path"]} if "add" in action else set()
            live -= {action["remove"]["path"]} if "remove" in action else set()
        version += 1
    return live


def our_files(site: Site) -> set[str]:
    return {add.path for add in site.open().topic_log(TOPIC).public.refresh().files}


@pytest.mark.parametrize("count", [1, 2])
def test_entries_of_another_warehouse_are_told_and_the_job_undoes_what_others_see_of_them(
    count: int,
) -> None:
    """Bug: as long as nothing was committed to the topic, other engines showed foreign records, and all was well."""
    site, another = site_with("ann", "bob"), site_with("eve", "fay", "gus", "hal", "ida", started=500)
    end = site.open().topic_log(TOPIC).public.refresh().next_version
    for version in range(end, end + count):
        site.objects.put(commit_path(ROOT, version), another.objects.snapshot()[commit_path(ROOT, version)].data)
    assert files_for_others(site) != our_files(site)

    (found,) = verify_stored(MemoryStore(site.objects), environment=site.time).damages
    report = run_once(site)

    assert (found.kind, found.path) == (DamageKind.FOREIGN_END, commit_path(ROOT, end + count - 1))
    assert (report.published_topics, report.failures) == (1, 0)
    assert files_for_others(site) == our_files(site)
    assert list(verify_stored(MemoryStore(site.objects), environment=site.time).damages) == []
    assert [row["account"] for row in published(site.open(), TOPIC)] == ["ann", "bob"]
    plain(site.open(), "new")
    assert [row["account"] for row in published(site.open(), TOPIC)] == ["ann", "bob", "new"]
    assert run_once(site).published_topics == 0
