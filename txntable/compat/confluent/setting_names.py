"""Names of settings in messages, as a configuration of confluent-kafka has them: with dots.

Owns which words are names of settings.  Pure.
"""

from __future__ import annotations

import re
from dataclasses import fields

from txntable.consumer.consumer_config import ConsumerConfig
from txntable.errors import InvalidCallError
from txntable.producer.producer_config import ProducerConfig

_SETTINGS = frozenset(field.name for config in (ProducerConfig, ConsumerConfig) for field in fields(config))
_UNDERSCORED = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def with_dots(error: InvalidCallError) -> InvalidCallError:
    """Return the same error, whose message and whose fact `setting` spell settings with dots."""
    # Of the values only names of settings: another is the user's, whatever it says.
    facts = {_dotted(name): _dotted(str(value)) if name == "setting" else value for name, value in error.facts.items()}
    return type(error)(_dotted(error.message), **facts)


def _dotted(text: str) -> str:
    return _UNDERSCORED.sub(lambda found: found[0].replace("_", ".") if found[0] in _SETTINGS else found[0], text)
