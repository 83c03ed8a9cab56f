"""Kafka's configuration dictionaries: names with dots or underscores, values as text, settings that are not here.

Owns that nothing in one is passed over: a setting is taken under our name, or refused by its own with what to do
instead.  What a value means and its bounds are the client's config's.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from txntable.coordinator.error_kinds import shown
from txntable.errors import InvalidConfigError

_STORE = "leave it out: requests go to an object store, whose options are given when the warehouse is opened"
_KEYS = "leave it out: who may read and write is the store's business; its keys are storage options"
_RETRIES = "leave it out: the storage option retry_timeout says for how long a request is made again"
_BYTES = "leave it out: give bytes to send and take them from the records, or use a topic with columns"
_MEMORY = "leave it out: batch_size bounds what a partition buffers"
_TOPIC = "leave it out here: it is a setting of the topic"
_GROUP = "leave it out: there is one group protocol; partition_assignment_strategy names the assignors"
_CALLABLE = "leave it out: give the callable to the call that it is about"

ELSEWHERE: Mapping[str, str] = {
    "acks": "leave it out: what is acknowledged is durable in the store, always",
    "allow_auto_create_topics": "leave it out: topics are created by the admin client",
    "bootstrap_servers": "leave it out: the warehouse's URL says where it is",
    "broker_address_family": _STORE,
    "buffer_memory": _MEMORY,
    "client_id": "leave it out: a producer is known by its transactional id",
    "compression_codec": "give compression_type",
    "check_crcs": "leave it out: segments of up to 4 MiB are verified always, larger ones by compaction",
    "connections_max_idle_ms": _STORE,
    "delivery_timeout_ms": _RETRIES,
    "enable_partition_eof": "leave it out: compare position with end_offsets",
    "enable_auto_offset_store": "leave it out: what poll has returned is what is committed",
    "error_cb": "leave it out: errors are raised by the call that they are about",
    "fetch_max_wait_ms": "leave it out: poll(timeout_ms=…) says how long it waits",
    "fetch_min_bytes": "leave it out: poll returns as soon as there is something",
    "group_protocol": _GROUP,
    "group_remote_assignor": _GROUP,
    "interceptor_classes": "leave it out: there are no interceptors",
    "key_deserializer": _BYTES,
    "key_serializer": _BYTES,
    "max_block_ms": _RETRIES,
    "max_in_flight_requests_per_connection": "leave it out: order is kept, whatever is under way",
    "message_max_bytes": "give max_request_size",
    "message_timeout_ms": _RETRIES,
    "metric_reporters": "leave it out: there are no metrics reporters",
    "on_delivery": _CALLABLE,
    "partitioner_class": "give partitioner: 'default', 'round_robin' or a callable",
    "queue_buffering_max_kbytes": _MEMORY,
    "queue_buffering_max_messages": _MEMORY,
    "queue_buffering_max_ms": "give linger_ms",
    "rebalance_cb": _CALLABLE,
    "receive_buffer_bytes": _STORE,
    "reconnect_backoff_ms": _RETRIES,
    "request_timeout_ms": _RETRIES,
    "retries": _RETRIES,
    "retry_backoff_ms": _RETRIES,
    "security_protocol": _KEYS,
    "send_buffer_bytes": _STORE,
    "socket_timeout_ms": _STORE,
    "statistics_interval_ms": "leave it out: there are no statistics",
    "transaction_two_phase_commit_enable": "leave it out: every transaction can be prepared",
    "value_deserializer": _BYTES,
    "value_serializer": _BYTES,
}
"""What to do about settings of Kafka's clients that have no counterpart."""

_OF_ONE_KIND = {"sasl_": _KEYS, "ssl_": _KEYS, "topic_": _TOPIC, "socket_": _STORE}
_BOOLEANS = {"true": True, "false": False}


def kafka_settings(given: Mapping[str, object], known: Mapping[str, type]) -> dict[str, object]:
    """Return the settings of one of Kafka's configuration dictionaries under our names.

    Parameters
    ----------
    given : Mapping of str to object
        Names with dots (``"transactional.id"``) or underscores; numbers and booleans may be text, as in a properties
        file.
    known : Mapping of str to type
        The client's settings, and what the text of one is read as: ``int``, ``bool``, ``tuple`` (parted by commas), or
        ``object``: as it is.

    Raises
    ------
    InvalidConfigError
        A name is unknown, or has no counterpart: the message says what to do instead.  Or one is given twice.
    """
    if not isinstance(given, Mapping):
        raise InvalidConfigError("settings are given as a dict, or by name", found=shown(given))
    found: dict[str, object] = {}
    for name, value in given.items():
        own = name.replace(".", "_") if isinstance(name, str) else ""
        check_known([own if own in known else name], known)
        if own in found:
            raise given_twice([own])
        found[own] = _read(value, known[own])
    return found


def check_known(names: Iterable[object], known: Mapping[str, type]) -> None:
    """Refuse names that are no settings of a client, with what to do instead.

    Raises
    ------
    InvalidConfigError
        One of them is none.
    """
    for name in names:
        if name not in known:
            raise _refused(name, name.replace(".", "_") if isinstance(name, str) else "", known)


def given_twice(names: Iterable[str]) -> InvalidConfigError:
    """Return the error of settings that are given more than once."""
    return InvalidConfigError("a setting is given twice; give it once", setting=",".join(sorted(names)))


def _refused(name: object, own: str, known: Mapping[str, type]) -> InvalidConfigError:
    remedy = ELSEWHERE.get(own) or next((said for start, said in _OF_ONE_KIND.items() if own.startswith(start)), None)
    if remedy is not None:
        return InvalidConfigError(f"this client has no such setting; {remedy}", setting=shown(name))
    close = get_close_matches(own, known, n=1)
    meant = f"did you mean {close[0].replace('_', '.')}?" if close else "leave it out, or use one of the known ones"
    listed = ",".join(sorted(each.replace("_", ".") for each in known))
    return InvalidConfigError(f"this client has no such setting; {meant}", setting=shown(name), known=listed)


def _read(value: object, kind: type) -> object:
    """Return a value that may be text; what it cannot be read as is refused by the client's config."""
    if not isinstance(value, str):
        return value
    if kind is tuple:
        return tuple(part.strip() for part in value.split(","))
    if kind is bool:
        return _BOOLEANS.get(value.casefold(), value)
    digits = value.removeprefix("-")
    # The longest number that any setting takes has 19 digits.
    return int(value) if kind is int and digits.isascii() and digits.isdecimal() and len(digits) < 20 else value
