"""The way to the product: every import of it that the conformance vectors need, and nothing else.

Where a module of the product moves, this file follows, and no other below ``tests/conformance``.
"""

from __future__ import annotations

from tests.doubles.manual_environment import ManualEnvironment, StoreTime
from tests.doubles.memory_store import MemoryObjects, MemoryStore
from txntable.coordinator import row_json
from txntable.coordinator.batch_memory import BatchMemory, BatchRow
from txntable.coordinator.decision import Decision, Outcome
from txntable.coordinator.enrolment import EnrolledTopic
from txntable.coordinator.errors import TxnTableError
from txntable.coordinator.group import GroupRow
from txntable.coordinator.group_fencing import check_member
from txntable.coordinator.group_offsets import OffsetRow
from txntable.coordinator.group_request import GroupMetadata
from txntable.coordinator.lease import LeaseRow
from txntable.coordinator.manifest import Manifest, decode_segments
from txntable.coordinator.offset_request import NewOffset, OffsetTransaction
from txntable.coordinator.offset_upkeep import settle
from txntable.coordinator.prepared_token import PreparedToken
from txntable.coordinator.transaction import TransactionMetadata
from txntable.coordinator.transaction_request import EndRequest, EnrolRequest, ProducerIdentity
from txntable.coordinator.transaction_shard import end, enrol
from txntable.errors import DamagedDataError, UnsupportedFormatError
from txntable.format import key, layout
from txntable.format.murmur2 import murmur2
from txntable.format.schema import from_delta_schema, segment_schema
from txntable.format.topic import TopicSettings
from txntable.log import actions
from txntable.log.action_fields import check_file_path
from txntable.log.checkpoint import encode_checkpoint
from txntable.log.constant_file import CONSTANT_FILE
from txntable.log.entry_encoding import encode_commit
from txntable.log.log_view import LogContext, LogView
from txntable.log.table_state import TableState
from txntable.offsets import offset_rows
from txntable.offsets.group_commit import GroupCommit
from txntable.offsets.offset_log import OffsetLog, OffsetLogFold
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.manifest import manifest_of
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import PublicTable, project
from txntable.partition.topic_view import TopicView, public_view, uncommitted_view
from txntable.producer.coordinator_client import CoordinatorClient, Ending
from txntable.segments.segment import SegmentPlan, StagedSegment
from txntable.segments.segment_columns import segment_columns
from txntable.segments.segment_writer import SegmentWriter
from txntable.storage.store_clock import StoreClock
from txntable.topics.topic_log import TopicLog
from txntable.transactions import transaction_rows
from txntable.transactions.completion import Completer
from txntable.transactions.transaction_log import TransactionLog, TransactionLogFold

__all__ = [
    "Completer",
    "CoordinatorClient",
    "Ending",
    "EnrolRequest",
    "EnrolledTopic",
    "GroupCommit",
    "NewOffset",
    "OffsetLog",
    "OffsetTransaction",
    "ProducerIdentity",
    "StoreTime",
    "TopicLog",
    "TransactionLog",
    "enrol",
    "BatchRow",
    "GroupRow",
    "LeaseRow",
    "TransactionMetadata",
    "AppendRequest",
    "BatchMemory",
    "CONSTANT_FILE",
    "DamagedDataError",
    "Decision",
    "EndRequest",
    "GroupMetadata",
    "LogContext",
    "LogView",
    "Manifest",
    "ManualEnvironment",
    "MemoryObjects",
    "MemoryStore",
    "OffsetLogFold",
    "OffsetRow",
    "Outcome",
    "PartitionLogs",
    "PreparedToken",
    "ProducerEpoch",
    "PublicTable",
    "SegmentPlan",
    "SegmentWriter",
    "SequencedSegment",
    "StagedSegment",
    "StoreClock",
    "TableState",
    "TopicSettings",
    "TopicView",
    "TransactionLogFold",
    "TxnTableError",
    "UnsupportedFormatError",
    "actions",
    "check_file_path",
    "check_member",
    "decide_append",
    "decode_segments",
    "encode_checkpoint",
    "encode_commit",
    "end",
    "from_delta_schema",
    "key",
    "layout",
    "manifest_of",
    "murmur2",
    "offset_rows",
    "project",
    "public_view",
    "row_json",
    "segment_columns",
    "segment_schema",
    "settle",
    "transaction_rows",
    "uncommitted_view",
]
