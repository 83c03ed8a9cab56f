"""What fails where Arrow begins is told as what it is: never as damage of what is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from txntable.errors import MissingDependencyError
from txntable.warehouse.warehouse import Warehouse


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ValueError("numpy.dtype size changed"), MissingDependencyError),
        (ImportError("no module named tarfile"), MissingDependencyError),
        (MemoryError(), MemoryError),
    ],
)
def test_open_tells_what_is_broken_beside_it_when_arrow_can_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, told: type[Exception]
) -> None:
    url = Warehouse.create(str(tmp_path / "wh"), durability="page-cache").url

    def fail(_: object) -> None:
        raise raised

    monkeypatch.setattr("txntable.log.damage.pa.array", fail)

    with pytest.raises(told) as error:
        Warehouse.open(url)

    assert told is MemoryError or "package=pandas" in str(error.value)
