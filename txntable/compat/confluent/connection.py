"""Where a client of confluent-kafka's shape works: the warehouse that its configuration names.

Owns two settings, and that a timeout below 0 is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from txntable.errors import InvalidConfigError
from txntable.warehouse.warehouse import Warehouse

SERVERS, OPTIONS = "bootstrap.servers", "storage.options"


def connected(config: Mapping[str, Any] | None, named: Mapping[str, Any]) -> tuple[Warehouse, dict[str, Any]]:
    """Open the warehouse of a configuration, given as a dict, by keywords, or both; return it and the other settings.

    Raises
    ------
    InvalidConfigError
        It names no warehouse.
    WarehouseNotFoundError
        There is none at that place.
    """
    settings = {**(config or {}), **named}
    settings = {name.replace("_", ".") if isinstance(name, str) else name: value for name, value in settings.items()}
    url, options = settings.pop(SERVERS, None), settings.pop(OPTIONS, None)
    if not isinstance(url, str):
        raise InvalidConfigError("say in bootstrap.servers which warehouse: a folder, or s3://bucket/prefix", found=url)
    return Warehouse.open(url, options), settings


def seconds_or_none(timeout: float | None) -> float | None:
    """Return a timeout in seconds; ``None``: as long as it takes."""
    return None if timeout is None or timeout < 0 else timeout
