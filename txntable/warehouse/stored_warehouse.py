"""What is stored of a warehouse, verified without opening it: a damaged log would refuse that.

Owns that the identity is read first, and which guard a verification goes by.
"""

from __future__ import annotations

from collections.abc import Sequence

from txntable.admin.transaction_admin import listed
from txntable.format.layout import check_topic_name
from txntable.log.log_view import GUARD_MS
from txntable.runtime.environment import Environment, SystemEnvironment
from txntable.storage.object_store import ObjectStore
from txntable.verification.damage import Progress, Verification
from txntable.verification.warehouse_verification import WarehouseVerification
from txntable.warehouse.warehouse_creation import read_identity


def _ignore(done: str) -> None:
    """Take what is being done, and show it to nobody."""


def verify_stored(
    store: ObjectStore,
    topics: Sequence[str] | None = None,
    progress: Progress | None = None,
    environment: Environment | None = None,
) -> Verification:
    """Read everything that is stored, and hold it against every rule that can be checked from outside.

    Parameters and errors as of :meth:`txntable.warehouse.warehouse.Warehouse.verify`.

    Parameters
    ----------
    store : ObjectStore
        The warehouse's.
    environment : Environment, optional
        Whose clock says what vacuum may have deleted by now; default: this machine's.

    Raises
    ------
    WarehouseNotFoundError
        There is none.
    DamagedDataError
        Its identity cannot be read.
    """
    names = None if topics is None else [check_topic_name(name) for name in listed(topics, "topics")]
    identity = read_identity(store)
    clock = SystemEnvironment() if environment is None else environment
    verification = WarehouseVerification(store, identity.warehouse_id, GUARD_MS, lambda: clock.instant().wall_ms)
    return verification.run(names, progress or _ignore)
