"""Options of Kafka's tools that are none here, and what is said instead.

Owns the words for who types what they know.  An option that a command has is never looked up.  Must not know of
warehouses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_URL = "there is no broker: --warehouse or TXNTABLE_WAREHOUSE says where the warehouse is"
_FILE = "options of the store are given by --storage-option, and settings by options of their own"
_SETTINGS = "`topics alter` and `warehouse alter` change settings: --config NAME=VALUE and --delete-config NAME"
_NO_REPLICAS = "leave it out: the object store keeps the copies, and there are no brokers"
_BYTES = "leave it out: bytes are printed as text, and --format json has any bytes"
_ONE_TOPIC = "name one topic: there are no patterns, and `txntable topics list` has all names"
_DRY_RUN = "leave it out: what changes or deletes what is there is a dry run until --execute"
_ENDS = "leave it out: a line that cannot be read ends the command, with what to do"

_NAMES = ("--topic", "--group", "--transactional-id")
_FIRST = (*_NAMES, "--time")

INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("--bootstrap-server", "--broker-list", "--zookeeper", "--bootstrap-controller", "-b"), _URL),
    **dict.fromkeys(
        (
            *("--command-config", "--command-property", "--producer.config", "--consumer.config"),
            *("--producer-property", "--consumer-property", "--producer-config", "--consumer-config"),
        ),
        _FILE,
    ),
    **dict.fromkeys(_FIRST, "the command comes before its options"),
    **dict.fromkeys(
        (
            *("--entity-name", "--entity-type", "--add-config", "--topic-config", "--topics"),
            *("--config", "--delete-config"),
        ),
        _SETTINGS,
    ),
    "--topics-with-overrides": "`topics describe` without a name shows what was set, of every topic",
    **dict.fromkeys(
        (
            *("--under-replicated-partitions", "--unavailable-partitions", "--under-min-isr-partitions"),
            *("--at-min-isr-partitions", "--replica-assignment", "--broker-id", "--broker"),
        ),
        _NO_REPLICAS,
    ),
    **dict.fromkeys(("--exclude-internal", "--exclude-internal-topics"), "leave it out: no topic is an internal one"),
    "--topic-partitions": "name topics: each of their partitions is listed",
    "--partitions": "`offsets list --topic NAME` lists every partition; elsewhere --partition names one",
    **dict.fromkeys(("--include", "--whitelist"), _ONE_TOPIC),
    **dict.fromkeys(("--key-deserializer", "--value-deserializer", "--formatter", "--line-reader"), _BYTES),
    "--skip-message-on-error": _ENDS,
    "--start-offset-time": "`transactions describe-producers` shows where each transaction begins",
    "--offset-json-file": "each partition is an option: `--offset PARTITION=OFFSET`, or `--offset PARTITION=latest`",
    "--partition": "a partition is named with what is done to it: `topics delete-records orders --offset 0=5`,"
    " `groups reset-offsets --topic orders:0`",
    "--sync": "a flush waits until its records are there",
    **dict.fromkeys(("--request-required-acks", "--acks"), "every write is durable when it is acknowledged"),
    "--help-all": "--help says everything",
    "--dry-run": _DRY_RUN,
    **dict.fromkeys(("-v", "--verbose"), "say it before the command, `txntable -v …`, or --log-level info behind it"),
}
"""Option -> what to say or to do."""
_WITHOUT_VALUE: Mapping[str, str] = {"--state": "leave it out: every group is listed with its state"}
"""Option that Kafka's tools take without a value, too -> what to do."""
_FENCE = "say `txntable transactions fence ID`, which aborts what is open, too"
_COMMANDS: Mapping[str, str] = {
    "help": "say --help",
    "version": "say --version",
    **dict.fromkeys(("force-terminate", "forceTerminateTransaction"), _FENCE),
    **{
        name: f"say `txntable transactions {name}`" for name in ("abort", "describe-producers", "fence", "find-hanging")
    },
    "abort-transaction": "say `txntable transactions abort`",
    **{name: f"say `txntable groups {name}`" for name in ("delete-offsets", "reset-offsets")},
    "configs": "settings are altered by `topics alter` and `warehouse alter`",
    "delete-records": "say `txntable topics delete-records`",
    "get-offsets": "say `txntable offsets list`",
    "optimize": "say `txntable compact`",
    "purge": "say `txntable erase --purge`",
}
_OF_A_NAME = "a name stands at its place; --help shows what this command takes"
_OF_NO_NAME = "this command takes no such name; --help shows what it takes"
_PLACE = re.compile(r"Got unexpected extra argument.*[(' ]\S*/\S*\)")


def instead_of(
    option: str | None, message: str, commands: Collection[str] = (), *, takes_name: bool | None = None
) -> str | None:
    """Return what is said here in place of what a tool of Kafka's takes; ``None``: nothing is known of it.

    Parameters
    ----------
    option : str, optional
        The option that there is not.
    message : str
        What was wrong with the arguments, where it was no option.
    commands : collection of str, optional
        The commands that can stand where the option stood.
    takes_name : bool, optional
        Whether the command that stands before the option has a place for a name; ``None``: there is no command there.
    """
    if message == f"Option '{option}' requires an argument.":
        return _WITHOUT_VALUE.get(str(option))
    if option is not None:
        verb = option.removeprefix("--")
        if verb in commands:
            return f"it is a command here: `{verb}`, without the dashes"
        if option in _FIRST and takes_name is not None:
            return _of_names(option, takes_name=takes_name)
        return INSTEAD.get(option)
    if _PLACE.match(message):
        return "the warehouse is named by --warehouse or TXNTABLE_WAREHOUSE"
    return next((said for name, said in _COMMANDS.items() if message == f"No such command '{name}'."), None)


def _of_names(option: str, *, takes_name: bool) -> str | None:
    if option not in _NAMES:
        return None
    return _OF_A_NAME if takes_name else _OF_NO_NAME
