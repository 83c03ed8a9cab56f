"""Names of settings in messages, as a configuration of confluent-kafka has them: with dots.

Owns which words are names of settings.  Pure.
"""

from __future__ import annotations

import re
from dataclasses import fields

from txntable.consumer.consumer_config import ConsumerConfig
from txntable.producer.producer_config import ProducerConfig

_SETTINGS = frozenset(field.name for config in (ProducerConfig, ConsumerConfig) for field in fields(config))
_UNDERSCORED = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def dotted(text: str) -> str:
    """Return a message whose settings are spelt with dots; all other words stay as they are."""
    return _UNDERSCORED.sub(lambda found: found[0].replace("_", ".") if found[0] in _SETTINGS else found[0], text)
