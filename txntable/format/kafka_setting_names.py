"""Settings of Kafka's clients that are none here: other names of ours, those that change nothing, and the refused.

Owns the decision for each.  A setting is *harmless* where the client does what its value asks for anyway, or where it
tunes connections to brokers, which a program does not see; all others are refused, with what to do instead.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_STORE = "leave it out: requests go to an object store, whose options are given when the warehouse is opened"
_KEYS = "leave it out: who may read and write is the store's business; its keys are storage options"
_RETRIES = "leave it out: the storage option retry_timeout says for how long a request is made again"
_BYTES = "leave it out: give bytes to send and take them from the records, or use a topic with columns"
_MEMORY = "leave it out: batch_size bounds what a partition buffers"
_TOPIC = "leave it out here: it is a setting of the topic"
_GROUP = "leave it out: there is one group protocol; partition_assignment_strategy names the assignors"
# Whoever stores offsets when a record is done must not be brought to commit it before.
_PROCESSED = "set enable.auto.commit=false, and commit(offsets=…) what has been processed, in place of storing offsets"
_CALLABLE = "leave it out: give the callable to the call that it is about"

ALIASES: Mapping[str, str] = {
    "auto_commit_enable": "enable_auto_commit",
    "compression_codec": "compression_type",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "message_max_bytes": "max_request_size",
    "queue_buffering_max_ms": "linger_ms",
    "topic_metadata_refresh_interval_ms": "metadata_max_age_ms",
}
"""librdkafka's names of settings that are here; each counts where the client has the setting that it stands for."""


@dataclass(frozen=True, slots=True)
class Harmless:
    """Which values of a setting change nothing.

    Attributes
    ----------
    why : str
        What happens anyway.
    values : tuple of str
        These, as text in small letters; none: see `least`.
    least : int or None
        Whole numbers from here on; ``None``, and no `values`: any value.
    instead : str or None
        What to do where another value was meant; ``None``: give one of these.
    """

    why: str
    values: tuple[str, ...] = ()
    least: int | None = None
    instead: str | None = None

    @property
    def taken(self) -> str:
        """The values, for people."""
        return "|".join(self.values) if self.values else "any" if self.least is None else f"from {self.least} on"

    def takes(self, value: object) -> bool:
        """Return whether a value, maybe given as text, changes nothing."""
        text = str(value).casefold()
        if self.values:
            return text in self.values
        return self.least is None or (text.isascii() and text.isdecimal() and int(text[:20]) >= self.least)


_BROKERS = Harmless("there are no connections to brokers that it could tune")
_DURABLE = Harmless("what is acknowledged is durable in the store, always", ("all", "-1"))
_AGAIN = Harmless("a request is made again until the storage option retry_timeout has passed", least=1)
_ORDER = Harmless("order is kept, whatever is under way", least=1)
_BATCHES = Harmless("it tunes batches, which batch.size bounds here")
_AHEAD = Harmless("it tunes what is read ahead, which fetch.max.bytes bounds here")
_LOGS = Harmless("logs go to Python's logging, below the logger txntable")

HARMLESS: Mapping[str, Harmless] = {
    "acks": _DURABLE,
    "allow_auto_create_topics": Harmless("topics are created by the admin client", ("false",)),
    "api_version_request": _BROKERS,
    "batch_num_messages": _BATCHES,
    "broker_address_family": _BROKERS,
    "broker_address_ttl": _BROKERS,
    "broker_version_fallback": _BROKERS,
    "client_dns_lookup": _BROKERS,
    "client_id": Harmless("a producer is known by its transactional id"),
    "client_rack": _BROKERS,
    "compression_level": Harmless("the codec's own level is taken", ("-1",)),
    "connections_max_idle_ms": _BROKERS,
    "coordinator_query_interval_ms": _BROKERS,
    "debug": _LOGS,
    "delivery_report_only_error": Harmless("on_delivery is called for each record", ("false",)),
    "enable_auto_offset_store": Harmless("what poll has returned is what is committed", ("true",), instead=_PROCESSED),
    "enable_gapless_guarantee": Harmless("a batch that fails ends its transaction, or its producer", ("false",)),
    "enable_metrics_push": Harmless("metrics() returns what is counted"),
    "enable_partition_eof": Harmless("compare position with get_watermark_offsets", ("false",)),
    "fetch_error_backoff_ms": _BROKERS,
    "fetch_max_wait_ms": Harmless("poll says how long it waits"),
    "fetch_min_bytes": Harmless("poll returns as soon as there is something", ("1",)),
    "fetch_queue_backoff_ms": _AHEAD,
    "fetch_wait_max_ms": Harmless("poll says how long it waits"),
    "group_protocol": Harmless("there is one group protocol", ("classic", "consumer")),
    "group_protocol_type": Harmless("groups are of consumers", ("consumer",)),
    "log_connection_close": _LOGS,
    "log_level": _LOGS,
    "max_in_flight": _ORDER,
    "max_in_flight_requests_per_connection": _ORDER,
    "message_send_max_retries": _AGAIN,
    "metadata_max_age_ms": _BROKERS,
    "offset_store_method": Harmless("offsets are kept in the warehouse", ("broker",)),
    "queue_buffering_backpressure_threshold": _BATCHES,
    "queued_max_messages_kbytes": _AHEAD,
    "queued_min_messages": _AHEAD,
    "receive_buffer_bytes": _BROKERS,
    "receive_message_max_bytes": _BROKERS,
    "reconnect_backoff_jitter_ms": _BROKERS,
    "reconnect_backoff_max_ms": _BROKERS,
    "reconnect_backoff_ms": _BROKERS,
    "request_required_acks": _DURABLE,
    "request_timeout_ms": _BROKERS,
    "retries": _AGAIN,
    "retry_backoff_max_ms": _BROKERS,
    "retry_backoff_ms": _BROKERS,
    "security_protocol": Harmless("who may read and write is the store's business", ("plaintext",)),
    "send_buffer_bytes": _BROKERS,
    "socket_keepalive_enable": _BROKERS,
    "socket_max_fails": _BROKERS,
    "socket_nagle_disable": _BROKERS,
    "socket_receive_buffer_bytes": _BROKERS,
    "socket_send_buffer_bytes": _BROKERS,
    "socket_timeout_ms": _BROKERS,
    "statistics_interval_ms": Harmless("there are no statistics; metrics() returns what is counted", ("0",)),
    "sticky_partitioning_linger_ms": _BATCHES,
    "topic_metadata_propagation_max_ms": _BROKERS,
    "topic_metadata_refresh_fast_interval_ms": _BROKERS,
    "topic_metadata_refresh_interval_ms": _BROKERS,
    "topic_metadata_refresh_sparse": _BROKERS,
}
"""Settings that are taken with these values, and refused with others."""

ELSEWHERE: Mapping[str, str] = {
    "bootstrap_servers": "leave it out: the warehouse's URL says where it is",
    "buffer_memory": _MEMORY,
    "check_crcs": "leave it out: segments of up to 4 MiB are verified always, larger ones by compaction",
    "delivery_timeout_ms": _RETRIES,
    "error_cb": "leave it out: errors are raised by the call that they are about",
    "group_remote_assignor": _GROUP,
    "interceptor_classes": "leave it out: there are no interceptors",
    "key_deserializer": _BYTES,
    "key_serializer": _BYTES,
    "max_block_ms": _RETRIES,
    "message_timeout_ms": _RETRIES,
    "metric_reporters": "leave it out: there are no metrics reporters",
    "on_commit": "leave it out: a commit is durable when it returns, and one that fails is raised",
    "on_delivery": _CALLABLE,
    "partitioner_class": "give partitioner: 'default', 'round_robin' or a callable",
    "queue_buffering_max_kbytes": _MEMORY,
    "queue_buffering_max_messages": _MEMORY,
    "rebalance_cb": _CALLABLE,
    "stats_cb": "leave it out: there are no statistics; metrics() returns what is counted",
    "transaction_two_phase_commit_enable": (
        "leave it out: every transaction can be prepared, by prepare_transaction() of a Warehouse's producer"
    ),
    "value_deserializer": _BYTES,
    "value_serializer": _BYTES,
}
"""What to do about settings of Kafka's clients that have no counterpart."""

OF_ONE_KIND: Mapping[str, str] = {"sasl_": _KEYS, "ssl_": _KEYS, "topic_": _TOPIC, "socket_": _STORE}
"""The same, of names that begin so."""

_COPIES = "leave it out: the object store keeps the copies, and every write is durable when it is acknowledged"
_FILES = "leave it out: segments are whole files on a store, and written once"

TOPIC_SETTINGS_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "min.insync.replicas",
            "replication.factor",
            "unclean.leader.election.enable",
        ),
        _COPIES,
    ),
    **dict.fromkeys(
        (
            "file.delete.delay.ms",
            "flush.messages",
            "flush.ms",
            "index.interval.bytes",
            "preallocate",
            "segment.index.bytes",
            "segment.jitter.ms",
            "segment.ms",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        ("local.retention.bytes", "local.retention.ms", "remote.storage.enable"),
        "leave it out: everything is on the object store",
    ),
    "message.timestamp.after.max.ms": "leave it out: a producer's timestamp is taken as it is",
    "message.timestamp.before.max.ms": "leave it out: a producer's timestamp is taken as it is",
    "num.partitions": "say it by the number of partitions",
}
"""Kafka's settings of topics that are none here, and what to do instead."""
