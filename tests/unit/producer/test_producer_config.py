"""Settings of a producer: what each may be, and what is said when it is not."""

from __future__ import annotations

import pytest

from tests.simulation.site import Site
from txntable.errors import InvalidConfigError
from txntable.producer.producer_config import LARGEST_BATCH_SIZE

REFUSED = [
    ("transaction_timeout_ms", "60000"),
    ("transaction_timeout_ms", None),
    ("enable_idempotence", "yes"),
    ("linger_ms", -1),
    ("linger_ms", 1.5),
    ("linger_ms", True),
    ("batch_size", 0),
    ("batch_size", LARGEST_BATCH_SIZE + 1),
    ("batch_size", "1"),
    ("max_request_size", -1),
    ("max_request_size", None),
    ("partitioner", "sticky"),
    ("partitioner", None),
    ("partitioner_ignore_keys", 1),
    ("compression_type", "brotli"),
    ("compression_type", "uncompressed"),
    ("compression_type", None),
]


@pytest.mark.parametrize(("setting", "value"), REFUSED)
def test_value_that_is_not_allowed_is_refused_by_name_with_what_is(site: Site, setting: str, value: object) -> None:
    with pytest.raises(InvalidConfigError, match="invalid value; correct it") as refused:
        site.open().producer(**{setting: value})  # type: ignore[arg-type]

    assert refused.value.facts["setting"] == setting
    assert refused.value.facts["value"] == repr(value)
    assert refused.value.facts["allowed"]


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"transactional_id": "etl", "linger_ms": 5}, "leave linger_ms out"),
        ({"transactional_id": "etl", "enable_idempotence": False}, "leave enable_idempotence on"),
        ({"partitioner": "round_robin", "partitioner_ignore_keys": True}, "leave one of the two settings out"),
        ({"partitioner": lambda *_: 0, "partitioner_ignore_keys": True}, "leave one of the two settings out"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_with_the_remedy(
    site: Site, settings: dict, remedy: str
) -> None:
    with pytest.raises(InvalidConfigError, match=remedy):
        site.open().producer(**settings)


@pytest.mark.parametrize("transactional_id", ["", "\ud800", "x" * 32_768, 7])
def test_transactional_id_that_is_none_is_refused_when_the_producer_is_made(site: Site, transactional_id: str) -> None:
    """Bug: it was refused by init_transactions, after a program had read its input."""
    warehouse = site.open()
    for make in (warehouse.producer, lambda name: warehouse.batch_writer(name, lambda *_: None)):
        with pytest.raises(InvalidConfigError, match="leave transactional_id out") as refused:
            make(transactional_id)
        assert refused.value.facts["setting"] == "transactional_id"
