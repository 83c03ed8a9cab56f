"""What stores count: calls by kind, and bytes.

Owns the names.  A call of this process counts once, however often its request was sent again; on a local folder it is a
system call or a few.  Large objects go by uploads in parts.
"""

from __future__ import annotations

GETS = "store-metrics/get-total"
HEADS = "store-metrics/head-total"
PUTS = "store-metrics/put-total"
UPLOADS = "store-metrics/upload-total"
LISTS = "store-metrics/list-total"
DELETES = "store-metrics/delete-total"
FAILED = "store-metrics/failed-attempt-total"
READ_BYTES = "store-metrics/incoming-byte-total"
WRITTEN_BYTES = "store-metrics/outgoing-byte-total"
