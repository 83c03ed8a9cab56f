"""confluent-kafka's clients over a warehouse: ``from txntable.compat.confluent import Consumer, Producer``.

Owns nothing but names, signatures and errors: each call is one of :class:`txntable.Producer`,
:class:`txntable.Consumer` or :class:`txntable.admin.admin.Admin`, which say more of it.  confluent-kafka need not be
installed.  ``bootstrap.servers`` is the warehouse's URL, and ``storage.options`` a dict with options of its store.
Other settings are those that :meth:`txntable.Warehouse.producer` and :meth:`~txntable.Warehouse.consumer` take, those
that change nothing here (``acks=all``, ``retries``, …), and these: ``on_delivery``, called for each message that has no
callback of its own; ``delivery.timeout.ms``, which is the store's ``retry_timeout``; ``error_cb``, ``throttle_cb``,
``stats_cb`` and ``logger``, which are never called.  What has no counterpart is refused, all of it in one message.
``txntable.compat.confluent.admin`` stands for ``confluent_kafka.admin``.

What does not fit:

* Delivery callbacks are called by the thread that sends: in ``flush``, ``commit_transaction``, ``produce`` when a batch
  is full, or a thread of the producer after ``linger.ms`` (1 second by default, without transactions).
  ``Producer.poll`` calls none; it returns how many have been called since the last one.
* An error of a call in a transaction is raised by ``produce`` itself where confluent-kafka's is met by a delivery
  callback and the commit; ``txn_requires_abort()`` says what follows.
* ``Consumer.poll`` and ``consume`` raise what goes wrong; no message has an error, and there is no end-of-partition
  event.  After ``close`` calls raise :class:`KafkaException` with ``_STATE``, not ``RuntimeError``.
* ``commit`` is durable when it returns, also with ``asynchronous=True``.  ``store_offsets`` is not there.
* In ``on_assign``, ``assign`` moves the positions of the partitions that the group has given, and cannot choose
  others; ``unassign`` in ``on_revoke`` does nothing, since the group takes them.  ``incremental_assign`` and
  ``incremental_unassign`` are not there: what changes hands is all that callbacks are told.
* A :class:`KafkaError` that is made without a reason has its number's name as its text.
* A message's timestamp is always of the type ``TIMESTAMP_CREATE_TIME``, also in topics with ``LogAppendTime``.
* Timeouts of consumers other than those of ``poll`` and ``consume``, and that of ``send_offsets_to_transaction``, are
  taken and not heeded: the store's options say how long a request is made again.
* Only topics with Kafka's columns.  ``replication_factor`` is taken and means nothing.
* ``AdminClient`` has topics and partitions; for groups, offsets and transactions use ``Warehouse.admin()``.  Its
  futures are done when it returns them.
* No serializing clients, schema registry, statistics, ``purge``, ``produce_batch`` or SASL.
"""

from typing import TYPE_CHECKING

from txntable.compat.confluent.admin_client import AdminClient, NewPartitions, NewTopic
from txntable.compat.confluent.cluster_metadata import ClusterMetadata, TopicMetadata
from txntable.compat.confluent.consumer import Consumer
from txntable.compat.confluent.elsewhere import MODULE
from txntable.compat.confluent.kafka_error import KafkaError, KafkaException
from txntable.compat.confluent.message import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
    TopicPartition,
)
from txntable.compat.confluent.producer import Producer
from txntable.runtime.other_names import told_of_module

__all__ = [
    "AdminClient",
    "ClusterMetadata",
    "Consumer",
    "KafkaError",
    "KafkaException",
    "Message",
    "NewPartitions",
    "NewTopic",
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "Producer",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "TopicMetadata",
    "TopicPartition",
]

if not TYPE_CHECKING:
    # To type checkers any name would be there.

    def __getattr__(name: str) -> object:
        raise told_of_module(__name__, name, MODULE)
