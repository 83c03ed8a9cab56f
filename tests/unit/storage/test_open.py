"""Which store a URL opens."""

from __future__ import annotations

import pickle

import pytest

from txntable.errors import InvalidRequestError
from txntable.storage.local_folder import LocalFolder
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store


@pytest.mark.parametrize(
    ("url", "folder"),
    [("/a/b/", "/a/b"), ("file:///a/b%20c", "/a/b c"), ("file://localhost/a", "/a"), ("/a/b%20c", "/a/b%20c")],
)
def test_local_paths_open_a_local_folder(url, folder):
    store = open_store(StoreSpec(url, durability="page-cache"))

    assert isinstance(store, LocalFolder)
    assert store.spec == StoreSpec(folder, {}, "page-cache")


def test_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert open_store(StoreSpec("here")).spec.url == str(tmp_path / "here")


@pytest.mark.parametrize(
    "spec", [StoreSpec("/a", {"aws_region": "SECRET"}), StoreSpec("memory://a", durability="page-cache")]
)
def test_opening_is_refused_when_a_setting_belongs_to_another_kind(spec):
    with pytest.raises(InvalidRequestError) as raised:
        open_store(spec)

    assert "SECRET" not in str(raised.value)


def test_opened_spec_travels():
    spec = open_store(StoreSpec("memory://a")).spec

    assert pickle.loads(pickle.dumps(spec)) == spec
