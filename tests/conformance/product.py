"""The door to the product: every import of it that the conformance vectors need, and nothing else.

Where a module of the product moves, this file follows, and no other below ``tests/conformance``.
"""

from __future__ import annotations

from coordinator import row_json
from coordinator.batch_memory import BatchMemory, BatchRow
from coordinator.decision import Decision, Outcome
from coordinator.errors import TxnTableError
from coordinator.group import GroupRow
from coordinator.group_fencing import check_member
from coordinator.group_offsets import OffsetRow
from coordinator.group_request import GroupMetadata
from coordinator.lease import LeaseRow
from coordinator.offset_upkeep import settle
from coordinator.prepared_token import PreparedToken
from coordinator.transaction import TransactionMetadata
from coordinator.transaction_request import EndRequest
from coordinator.transaction_shard import end
from txntable import key, layout, offset_rows, transaction_rows
from txntable.errors import DamagedDataError, UnsupportedFormatError
from txntable.log import actions
from txntable.log.action_fields import check_file_path
from txntable.log.checkpoint import encode_checkpoint
from txntable.log.constant_file import CONSTANT_FILE
from txntable.log.entry_encoding import encode_commit
from txntable.log.log_view import LogContext, LogView
from txntable.log.table_state import TableState
from txntable.murmur2 import murmur2
from txntable.offset_log import OffsetLogFold
from txntable.partition.append import AppendRequest, SequencedSegment, decide_append
from txntable.partition.batch import ProducerEpoch
from txntable.partition.partition_log import PartitionLogs
from txntable.partition.projection import PublicTable, project
from txntable.partition.segment_columns import segment_columns
from txntable.partition.topic_view import TopicView, public_view, uncommitted_view
from txntable.schema import from_delta_schema, segment_schema
from txntable.segment import SegmentPlan, SegmentWriter, StagedSegment
from txntable.storage.store_clock import StoreClock
from txntable.testing.manual_environment import ManualEnvironment
from txntable.testing.memory_store import MemoryObjects, MemoryStore
from txntable.topic import TopicSettings
from txntable.transaction_log import TransactionLogFold

__all__ = [
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
    "encode_checkpoint",
    "encode_commit",
    "end",
    "from_delta_schema",
    "key",
    "layout",
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
