"""Names of confluent-kafka's clients: each is here, or the page about migrating says that it is not."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from txntable.compat import confluent
from txntable.compat.confluent.kafka_error_codes import KafkaErrorCodes

confluent_kafka, confluent_admin = (import_module(f"confluent_kafka{part}") for part in ("", ".admin"))
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "migrate-from-kafka.md"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if name[0].islower()}


@pytest.mark.parametrize("name", ["Producer", "Consumer", "AdminClient", "Message", "TopicPartition", "KafkaError"])
def test_call_that_is_not_here_is_in_the_table(name: str) -> None:
    theirs = getattr(confluent_kafka, name, None) or getattr(confluent_admin, name)
    fields = getattr(getattr(confluent, name), "__dataclass_fields__", {})

    missing = public(theirs) - public(getattr(confluent, name)) - set(fields)

    text = PAGE.read_text(encoding="utf-8")
    assert [each for each in sorted(missing) if f"`{each}`" not in text and f".{each}`" not in text] == []


def test_numbers_of_errors_are_theirs() -> None:
    theirs = {name: each for name, each in vars(confluent_kafka.KafkaError).items() if type(each) is int}

    assert theirs == {name: each for name, each in vars(KafkaErrorCodes).items() if type(each) is int}
    assert {confluent_kafka.KafkaError(number).name(): number for number in theirs.values()} == theirs
