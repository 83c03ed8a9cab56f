"""One path of each kind that a warehouse holds, built by the project's own layout."""

from __future__ import annotations

from txntable.format.layout import (
    CLOCK_PATH,
    OFFSET_LOG_ROOT,
    PROBE_FOLDER,
    TRANSACTION_LOG_ROOT,
    WAREHOUSE_FILE,
    checkpoint_path,
    commit_path,
    heartbeat_path,
    key_path,
    last_checkpoint_path,
    marker_path,
    public_root,
    segment_path,
    segments_root,
    state_path,
)

_ID = "0" * 32
_P, _S = public_root("flights.2013"), segments_root("flights.2013")

PATHS = {
    "identity": WAREHOUSE_FILE,
    "clock": CLOCK_PATH,
    "probe": f"{PROBE_FOLDER}/{_ID}-0",
    "heartbeat": heartbeat_path("g", "m"),
    "T entry": commit_path(TRANSACTION_LOG_ROOT, 42),
    "T checkpoint": checkpoint_path(TRANSACTION_LOG_ROOT, 100),
    "T hint": last_checkpoint_path(TRANSACTION_LOG_ROOT),
    "T row's file": f"{TRANSACTION_LOG_ROOT}/{key_path('id', 'etl')}",
    "O entry": commit_path(OFFSET_LOG_ROOT, 42),
    "O checkpoint": checkpoint_path(OFFSET_LOG_ROOT, 100),
    "O hint": last_checkpoint_path(OFFSET_LOG_ROOT),
    "O row's file": f"{OFFSET_LOG_ROOT}/{key_path('group', 'g')}",
    "P entry": commit_path(_P, 42),
    "P checkpoint": checkpoint_path(_P, 100),
    "P hint": last_checkpoint_path(_P),
    "S entry": commit_path(_S, 42),
    "S checkpoint": checkpoint_path(_S, 100),
    "S hint": last_checkpoint_path(_S),
    "segment": f"{_S}/{segment_path(_ID, 3, (1, 2), _ID)}",
    "marker": f"{_S}/{marker_path(_ID, 1, 2)}",
    "state entry": f"{_S}/{state_path(3)}",
    "left by other software": f"{_P}/part-00000.parquet",
}

OUTSIDE = {
    "another warehouse": "lake/one-more/_warehouse.json",
    "beside the warehouse": "artifacts/txntable.whl",
    "above the warehouse": "lake/other",
}
"""Keys in the bucket of the warehouse ``lake/one``."""

_MAINTAINED = {"reader": "r", "consumer": "r", "producer": "rw", "maintenance": "rwd", "admin": "rwd"}
_ROW = _MAINTAINED | {"maintenance": "rw", "admin": "rw"}
_CONSUMED = _MAINTAINED | {"consumer": "rw"}

# What each role may do with each kind of path: r reads, w writes, d deletes.
ALLOWED: dict[str, dict[str, str]] = {
    "identity": {"reader": "r", "consumer": "r", "producer": "r", "maintenance": "r", "admin": "rw"},
    "clock": {"reader": "", "consumer": "rw", "producer": "rw", "maintenance": "rw", "admin": "rw"},
    "probe": {"reader": "", "consumer": "", "producer": "", "maintenance": "d", "admin": "rwd"},
    "heartbeat": {"reader": "", "consumer": "rw", "producer": "", "maintenance": "rd", "admin": "rd"},
    **dict.fromkeys(("T entry", "T checkpoint", "T hint"), _MAINTAINED),
    "T row's file": _ROW,
    **dict.fromkeys(("O entry", "O checkpoint", "O hint"), _CONSUMED),
    "O row's file": _ROW | {"consumer": "rw"},
    **dict.fromkeys(("P entry", "P checkpoint", "P hint", "S entry", "S checkpoint", "S hint"), _MAINTAINED),
    "segment": _MAINTAINED,
    "marker": _MAINTAINED,
    "state entry": _MAINTAINED | {"producer": "r"},
    "left by other software": _MAINTAINED | {"producer": "r", "maintenance": "rd", "admin": "rd"},
    **dict.fromkeys(OUTSIDE, dict.fromkeys(_MAINTAINED, "")),
}
