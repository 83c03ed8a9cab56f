"""Errors keep their facts, their code and what the caller does about them."""

from __future__ import annotations

import pickle

import pytest

import txntable
from txntable.coordinator import errors
from txntable.coordinator.error_kinds import shown


def _kinds(kind: type[errors.TxnTableError]) -> list[type[errors.TxnTableError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in _kinds(below))]


_KINDS = [kind for kind in _kinds(errors.TxnTableError) if kind.__module__ == "txntable"]


def test_every_error_is_a_name_of_the_package() -> None:
    assert {kind.__name__ for kind in _KINDS} == set(txntable.errors.__all__)
    assert all(getattr(txntable, kind.__name__) is kind for kind in _KINDS)


def test_error_of_a_users_own_keeps_the_name_of_its_module() -> None:
    class OwnError(errors.ProducerFencedError):
        pass

    assert OwnError.__module__ == __name__


def test_message_ends_with_its_facts_and_leaves_out_what_is_none() -> None:
    error = errors.ProducerFencedError("a newer producer has the id: close this one", epoch=4, stored=None)

    assert str(error) == "a newer producer has the id: close this one epoch=4"
    assert error.facts == {"epoch": 4}


class Silent:
    """Does not tell what it is."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "told"),
    [("x", "'x'"), (10**5_000, "<a int that cannot be shown>"), (Silent(), "<a Silent that ")],
    ids=["text", "long number", "silent"],
)
def test_value_that_was_not_acceptable_is_shown_without_an_error_of_its_own(value: object, told: str) -> None:
    assert shown(value).startswith(told)


@pytest.mark.parametrize("kind", _KINDS)
def test_error_survives_pickling_with_its_kind_and_facts(kind: type[errors.TxnTableError]) -> None:
    copy = pickle.loads(pickle.dumps(kind("something failed: try again", position=3)))

    assert type(copy) is kind
    assert (str(copy), copy.facts) == ("something failed: try again position=3", {"position": 3})


@pytest.mark.parametrize("kind", _KINDS)
def test_error_tells_at_most_one_thing_to_do(kind: type[errors.TxnTableError]) -> None:
    assert kind.retriable + kind.txn_requires_abort + kind.fatal <= 1
