"""Heartbeats: where they lie, and whose age they tell."""

from __future__ import annotations

from tests.doubles.fault_plan import Operation
from tests.simulation.site import Site
from txntable.format.layout import heartbeat_path
from txntable.groups.heartbeats import beat, forget, last_beats
from txntable.storage.object_store import ObjectStore


def test_path_is_the_hash_of_the_names_so_that_any_name_will_do() -> None:
    assert heartbeat_path("g", "m") == (
        "system/heartbeats/fba64e230471378f99d18dd5c271ba76/8c85580fb7e5e66ae43439185be98233"
    )
    assert heartbeat_path("a/../b", "=").count("/") == 3


def test_last_beats_tell_the_store_s_time_of_each_and_leave_out_who_has_none() -> None:
    site = Site()
    store: ObjectStore = site.store()
    beat(store, "g", "early")
    site.advance_ms(500)
    beat(store, "g", "late")
    beat(store, "h", "other")

    found = last_beats(store, "g", ["early", "late", "other"])

    assert found.keys() == {"early", "late"}
    assert found["late"] - found["early"] == 500


def test_heartbeats_cost_a_put_each_and_a_head_for_each_member_asked_for() -> None:
    store = Site().store()

    beat(store, "g", "m")
    last_beats(store, "g", ["m", "n"])

    assert [step.operation for step in store.steps] == [Operation.PUT, Operation.HEAD, Operation.HEAD]


def test_forgotten_heartbeat_is_gone_and_forgetting_it_again_is_no_error() -> None:
    store = Site().store()
    beat(store, "g", "m")

    forget(store, "g", "m")
    forget(store, "g", "m")

    assert last_beats(store, "g", ["m"]) == {}
