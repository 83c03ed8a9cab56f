"""Where a client of confluent-kafka's shape works: the warehouse that its configuration names.

Owns the settings that are of this shape alone.  All others are the clients' own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from txntable.compat.confluent.arguments import of_type
from txntable.compat.confluent.setting_names import with_dots
from txntable.errors import InvalidCallError, InvalidConfigError
from txntable.warehouse.warehouse import Warehouse

SERVERS, OPTIONS = "bootstrap.servers", "storage.options"
_OTHER_SERVERS = "metadata.broker.list"
# Of brokers' news, of which there is none; librdkafka does not call stats_cb either while its interval is 0.
_NEVER_CALLED = ("error.cb", "throttle.cb", "stats.cb", "logger")
_GIVES_UP = ("delivery.timeout.ms", "message.timeout.ms")


@dataclass(frozen=True, slots=True)
class Connection:
    """What a configuration, given as a dict, by keywords, or both, says of where a client works.

    Attributes
    ----------
    url : object
        Of the warehouse.
    options : dict
        Of its store.
    settings : dict
        All others, which the client takes.
    wrong : list of InvalidConfigError
        What is wrong with those that the client does not see.
    """

    url: object
    options: dict[str, Any]
    settings: dict[str, Any]
    wrong: list[InvalidConfigError]

    def opened(self, check: Callable[[dict[str, Any]], object]) -> Warehouse:
        """Open the warehouse.

        Parameters
        ----------
        check : callable
            Refuses settings of the client that are wrong.

        Raises
        ------
        InvalidCallError
            A setting is wrong, or several are: all are in the message.
        WarehouseNotFoundError
            There is none at that place.
        """
        wrong: list[InvalidCallError] = list(self.wrong)
        try:
            check(self.settings)
        except InvalidCallError as error:
            wrong.append(with_dots(error))
        if len(wrong) == 1:
            raise wrong[0]
        if wrong:
            raise InvalidConfigError("; ".join(map(str, wrong)))
        return Warehouse.open(str(self.url), self.options)


def connection(config: Mapping[str, Any] | None, named: Mapping[str, Any], *, sends: bool = False) -> Connection:
    """Return what a configuration says.

    Parameters
    ----------
    config, named
        The configuration.
    sends : bool
        Whether the client is a producer: then for how long a message is tried is the store's ``retry_timeout``.

    Raises
    ------
    TypeError
        The configuration is no dict.
    """
    if not named:
        of_type(dict, config, "the configuration")
    given = {**(config or {}), **named}
    settings = {name.replace("_", ".") if isinstance(name, str) else name: value for name, value in given.items()}
    other = settings.pop(_OTHER_SERVERS, None)
    url, options = settings.pop(SERVERS, other), dict(settings.pop(OPTIONS, None) or {})
    for name in _NEVER_CALLED:
        settings.pop(name, None)
    wrong = []
    if not isinstance(url, str):
        wrong.append(
            InvalidConfigError("say in bootstrap.servers which warehouse: a folder, or s3://bucket/prefix", found=url)
        )
    if sends:
        wrong += _bound_retries(str(url), options, settings)
    return Connection(url, options, settings, wrong)


def _bound_retries(url: str, options: dict[str, Any], settings: dict[str, Any]) -> list[InvalidConfigError]:
    """Let a message's timeout be the store's; a folder answers at once, and 0 is none.  Return what is wrong."""
    wrong = []
    for text in [str(settings.pop(name)) for name in _GIVES_UP if name in settings]:
        if not (text.isascii() and text.isdecimal()):
            wrong.append(
                InvalidConfigError("a timeout is a whole number of ms; correct it", setting=_GIVES_UP[0], value=text)
            )
        elif "://" in url and not url.startswith("file:") and int(text) > 0:
            options.setdefault("retry_timeout", f"{text}ms")
    return wrong
