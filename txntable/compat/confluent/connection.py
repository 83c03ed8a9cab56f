"""Where a client of confluent-kafka's shape works: the warehouse that its configuration names.

Owns the settings that are of this shape alone, and that a timeout below 0 is none.  All others are the clients' own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txntable.errors import InvalidConfigError
from txntable.warehouse.warehouse import Warehouse

SERVERS, OPTIONS = "bootstrap.servers", "storage.options"
_OTHER_SERVERS = "metadata.broker.list"
# Of brokers' news, of which there is none; librdkafka does not call stats_cb either while its interval is 0.
_NEVER_CALLED = ("error.cb", "throttle.cb", "stats.cb", "logger")
_GIVES_UP = ("delivery.timeout.ms", "message.timeout.ms")


def connected(
    config: Mapping[str, Any] | None, named: Mapping[str, Any], *, sends: bool = False
) -> tuple[Warehouse, dict[str, Any]]:
    """Open the warehouse of a configuration, given as a dict, by keywords, or both; return it and the other settings.

    Parameters
    ----------
    config, named
        The configuration.
    sends : bool
        Whether the client is a producer: then for how long a message is tried is the store's ``retry_timeout``.

    Raises
    ------
    InvalidConfigError
        It names no warehouse.
    WarehouseNotFoundError
        There is none at that place.
    """
    given = {**(config or {}), **named}
    settings = {name.replace("_", ".") if isinstance(name, str) else name: value for name, value in given.items()}
    other = settings.pop(_OTHER_SERVERS, None)
    url, options = settings.pop(SERVERS, other), dict(settings.pop(OPTIONS, None) or {})
    if not isinstance(url, str):
        raise InvalidConfigError("say in bootstrap.servers which warehouse: a folder, or s3://bucket/prefix", found=url)
    for name in _NEVER_CALLED:
        settings.pop(name, None)
    if sends:
        _bound_retries(url, options, settings)
    return Warehouse.open(url, options), settings


def _bound_retries(url: str, options: dict[str, Any], settings: dict[str, Any]) -> None:
    """Let a message's timeout be the store's; a folder answers at once, and 0 is none."""
    given = [str(settings.pop(name)) for name in _GIVES_UP if name in settings]
    for text in given:
        if not (text.isascii() and text.isdecimal()):
            raise InvalidConfigError("a timeout is a whole number of ms; correct it", setting=_GIVES_UP[0], value=text)
        if "://" in url and not url.startswith("file:") and int(text) > 0:
            options.setdefault("retry_timeout", f"{text}ms")


def seconds_or_none(timeout: float | None) -> float | None:
    """Return a timeout in seconds; ``None``: as long as it takes."""
    return None if timeout is None or timeout < 0 else timeout
