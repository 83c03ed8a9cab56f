"""Options of Kafka's tools that are none here, and what is said instead.

Owns the words for who types what they know.  An option that a command has is never looked up.  Must not know of
warehouses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_URL = "there is no broker: --warehouse or TXNTABLE_WAREHOUSE says where the warehouse is"
_FILE = "options of the store are given by --storage-option, and settings by options of their own"
_SETTINGS = "settings of a topic are altered by `txntable topics alter TOPIC --config NAME=VALUE`"

INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("--bootstrap-server", "--broker-list", "--zookeeper", "--bootstrap-controller"), _URL),
    **dict.fromkeys(
        (
            *(
                "--command-config",
                "--command-property",
                "--producer.config",
                "--consumer.config",
                "--producer-property",
            ),
            "--consumer-property",
        ),
        _FILE,
    ),
    **dict.fromkeys(("--topic", "--group", "--time", "--transactional-id"), "the command comes before its options"),
    **{
        f"--{verb}": f"it is a command here: `{verb}`, without the dashes"
        for verb in ("list", "create", "delete", "describe", "alter", "reset-offsets", "delete-offsets", "abort")
    },
    **dict.fromkeys(("--entity-name", "--entity-type", "--add-config", "--topic-config"), _SETTINGS),
    "--offset-json-file": "each partition is an option: `--offset PARTITION=OFFSET`, or `--offset PARTITION=latest`",
    "--sync": "a flush waits until its records are there",
    "--request-required-acks": "every write is durable when it is acknowledged",
    "--help-all": "--help says everything",
}
"""Option -> what to say or to do."""
_COMMANDS: Mapping[str, str] = {"help": "say --help", "version": "say --version"}
_PLACE = re.compile(r"Got unexpected extra argument.*[(' ]\S*/\S*\)")


def instead_of(option: str | None, message: str) -> str | None:
    """Return what is said here in place of what a tool of Kafka's takes; ``None``: nothing is known of it.

    Parameters
    ----------
    option : str, optional
        The option that there is not.
    message : str
        What was wrong with the arguments, where it was no option.
    """
    if option is not None:
        return INSTEAD.get(option)
    if _PLACE.match(message):
        return "where the warehouse is says --warehouse or TXNTABLE_WAREHOUSE"
    return next((said for name, said in _COMMANDS.items() if message == f"No such command '{name}'."), None)
