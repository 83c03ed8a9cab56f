"""No value that is handed to a public call harms a warehouse: what is refused is refused with a word, before it is put.

A value that is not acceptable is a :class:`TxnTableError`, and never any other error but Python's own for a wrong kind:
a ``TypeError``, for what cannot be walked, called or be a key.  More examples with ``HYPOTHESIS_PROFILE=explore``.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import txntable
from tests.fuzz.argument import COLUMNS, Argument
from tests.fuzz.hostile_values import Value
from tests.fuzz.public_calls import CALLS, NOT_CALLED, PUBLIC, VALUES, arguments, target
from tests.fuzz.reading_all import require_whole
from tests.fuzz.stage import Stage
from tests.simulation.site import Site
from txntable.consumer.consumer_config import ConsumerSettings
from txntable.errors import TxnTableError
from txntable.warehouse.warehouse import Warehouse

ROOT = Path(__file__).parents[2]
_EXPLORES = settings.get_current_profile_name() == "explore"
# Of one function on one warehouse, before that is looked at.
_MOST_CALLS = 8
_EXAMPLES = 200 if _EXPLORES else 2
# Parts of what is public that are made by other calls, or hold values only.
_MADE_BY_OTHERS = {
    "ConsumerRecord",
    "OffsetAndTimestamp",
    "OffsetRange",
    "RecordMetadata",
    "IsolationLevel",
    "TxnTableError",
}
_ONLY_HELD = {"OffsetAndMetadata", "TopicPartition", "ConsumerRebalanceListener"}


def public_functions(kind: type) -> Mapping[str, Callable[..., Any]]:
    return {name: member for name, member in inspect.getmembers(kind, callable) if not name.startswith("_")}


# -- everything that is public is here ----------------------------------------------------------


def test_every_public_class_is_fuzzed_or_holds_values_only() -> None:
    named = {kind.__name__ for kind in (*PUBLIC, *VALUES)} - {"Admin", "TransactionCoordinator"}

    errors = set(txntable.errors.__all__)
    assert set(txntable.__all__) - errors == (named | _MADE_BY_OTHERS | _ONLY_HELD) - errors


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_public_function_is_fuzzed_or_says_why_not(kind: type) -> None:
    functions = {f"{kind.__name__}.{name}" for name in public_functions(kind)}
    listed = {name for name in (*CALLS, *NOT_CALLED) if name.startswith(f"{kind.__name__}.")}

    assert functions - listed == set()
    assert listed - functions == set()


@pytest.mark.parametrize("call", CALLS)
def test_every_argument_of_a_public_function_has_values(call: str) -> None:
    owner, name = call.split(".")
    kind = next(each for each in PUBLIC if each.__name__ == owner)
    function = getattr(kind, name, None)
    if function is None or call == "Warehouse.consumer":
        return
    parameters = inspect.signature(function).parameters
    named = [name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    expected = [name for name in named if name not in ("self", "unnamed")]

    assert list(CALLS[call]) == expected


def test_every_setting_of_a_consumer_has_values() -> None:
    assert set(CALLS["Warehouse.consumer"]) == set(ConsumerSettings.__annotations__)


@pytest.mark.parametrize("kind", VALUES)
def test_every_setting_has_values(kind: type) -> None:
    assert list(VALUES[kind]) == list(inspect.signature(kind).parameters)


# -- calls ----------------------------------------------------------------------------------------


@st.composite
def given_arguments(draw: st.DrawFn, wanted: Mapping[str, Argument]) -> dict[str, Value]:
    """Return values for arguments, hostile ones for one or two of them."""
    names = list(wanted)
    hostile = set(draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))) if names else set()
    return {name: draw(one.hostile if name in hostile else one.sound) for name, one in wanted.items()}


def fill(warehouse: Warehouse) -> None:
    """Give a warehouse two topics, records, groups, a member and an open transaction."""
    admin = warehouse.admin()
    admin.create_topic("t", partitions=2, schema=COLUMNS)
    admin.create_topic("raw")
    stage = Stage(lambda: warehouse)
    for batch_id in (6, 7):
        stage.producer.send("raw", value=b"v", key=b"k")
        stage.producer.commit_transaction()
        stage.producer.begin_transaction(batch_id)
        stage.producer.send("t", row={"x": 2, "y": "b"}, partition=1)
    admin.alter_consumer_group_offsets("idle", {txntable.TopicPartition("t", 0): 1})


def make_site() -> Site:
    """Such a warehouse in memory."""
    site = Site()
    fill(site.create())
    return site


@pytest.fixture(scope="module")
def template() -> Site:
    return make_site()


def make_call(stage: Stage, call: str, values: Mapping[str, Value]) -> None:
    """Make one call; what it refuses, it refuses with an error of ours."""
    function = target(stage, call)
    words, named = arguments(stage, call, values)
    try:
        answer = function(*words, **named)
        if call == "Producer.transaction":
            with answer as transaction:
                transaction.send("t", row={"x": 3, "y": "c"}, partition=0)
        elif hasattr(answer, "read_all"):
            answer.read_all()
    except TxnTableError as error:
        # Whoever prints it must be able to.
        str(error).encode(errors="backslashreplace")
    except TypeError:
        # Python's own word for what cannot be walked, or be a key.
        return


def end_what_is_open(stage: Stage) -> None:
    """Commit what the calls have left, or abort it."""
    for end in (stage.producer.commit_transaction, stage.producer.abort_transaction, stage.producer.close):
        try:
            end()
        except TxnTableError:
            continue
    for consumer in (stage.consumer, stage.reader):
        try:
            consumer.close()
        except TxnTableError:
            continue


@pytest.mark.parametrize("call", [call for call, wanted in CALLS.items() if wanted])
@settings(max_examples=_EXAMPLES)
@given(data=st.data())
def test_hostile_values_are_refused_with_a_word_and_the_warehouse_goes_on(
    call: str, data: st.DataObject, template: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    calls = data.draw(st.lists(given_arguments(CALLS[call]), min_size=1, max_size=_MOST_CALLS))
    site = template.copy()
    stage = Stage(site.open)
    with chdir(tmp_path_factory.getbasetemp()):
        for values in calls:
            make_call(stage, call, values)
        end_what_is_open(stage)

    site.advance_ms(60_000)
    require_whole(site.open, thoroughly=_EXPLORES)


@settings(max_examples=20 if _EXPLORES else 1)
@given(data=st.data())
def test_fresh_process_goes_on_with_a_warehouse_after_a_hostile_call_of_every_function(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    url = str(tmp_path_factory.mktemp("fuzz") / "warehouse")
    warehouse = Warehouse.create(url, durability="page-cache")
    fill(warehouse)
    with chdir(tmp_path_factory.getbasetemp()):
        for call in data.draw(st.permutations(sorted(CALLS))):
            stage = Stage(partial(Warehouse.open, url, durability="page-cache"))
            make_call(stage, call, data.draw(given_arguments(CALLS[call])))
            end_what_is_open(stage)

    words = [sys.executable, "-m", "tests.fuzz.reading_all", url]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=_EXAMPLES * 10)
@given(data=st.data())
def test_hostile_settings_are_refused_with_a_word(kind: type, data: st.DataObject) -> None:
    values = data.draw(given_arguments(VALUES[kind]))
    try:
        kind(**{name: value.make() for name, value in values.items()})
    except TxnTableError as error:
        str(error).encode(errors="backslashreplace")
