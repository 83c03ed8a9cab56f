"""Runs clean_room.py on every vector file that is in its scope, and prints the failures."""

from __future__ import annotations

import base64
import decimal
import json
import re
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.conformance import clean_room as c
from tests.conformance import written


class MemoryStore:
    """Objects by path; what a reader needs, and a writer at a time that stands still."""

    def __init__(self, objects: dict[str, bytes], now_ms: int = 0) -> None:
        self.objects, self.now_ms = objects, now_ms

    def now(self) -> int:
        return self.now_ms

    def sync(self) -> None:
        pass

    def put(self, path: str, data: bytes, replace: bool = False) -> bool:
        if path in self.objects and not replace:
            return False
        self.objects[path] = data
        return True

    def read(self, path: str) -> bytes | None:
        return self.objects.get(path)

    def modified(self, path: str) -> int | None:
        return 1 if path in self.objects else None

    def names(self, folder: str) -> list[str]:
        return sorted(p[len(folder) + 1 :] for p in self.objects if p.startswith(folder + "/"))


def text(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")


def log(kind: str, entries: list[list[str]] | dict[str, list[str]]) -> c.State:
    slots = entries.items() if isinstance(entries, dict) else enumerate(entries)
    folder = c.log_folder(kind, "orders") + "/_delta_log/"
    store = MemoryStore({folder + c.entry_name(int(v)): text(lines) for v, lines in slots})
    state = c.Log(store, kind, "orders").state
    c.need(state.version >= 0, "no log")
    return state


def accepted(run: Any) -> tuple[bool, str]:
    try:
        run()
    except c.Damage as error:
        return False, str(error)
    return True, ""


def same(found: Any, wanted: Any) -> str:
    return "" if found == wanted else f"{found!r} != {wanted!r}"


def judged(run: Any, case: dict[str, Any]) -> str:
    ok, why = accepted(run)
    return "" if ok == case["accepted"] else f"accepted: {ok} ({why}); for: {case.get('reason')}"


def paths(case: dict[str, Any]) -> str:
    a, of = case["arguments"], case["of"]
    if of == "segment":
        who = tuple(a["producer"]) if a["producer"] else None
        found = c.segment_path(a["topic_id"], a["partition"], who, a["unique"])
    elif of == "marker":
        found = c.marker_path(a["topic_id"], a["producer_id"], a["epoch"])
    elif of == "state":
        found = c.state_path(a["partition"])
    elif of == "heartbeat":
        found = c.heartbeat_path(a["group"], a["member_id"])
    else:
        name = {"entry": c.entry_name, "checkpoint": c.checkpoint_name, "hint": lambda _: "_last_checkpoint"}[of]
        found = c.log_folder(a["log"], a.get("topic", "")) + "/_delta_log/" + name(a["version"])
    return same(found, case["path"])


def key_value(kind: str, value: Any) -> Any:
    return c.convert(kind, value) if value is not None and kind != "timestamp" else value


def keys_of(case: dict[str, Any]) -> str:
    values = [key_value(k, v) for k, v in zip(case["types"], case["values"], strict=True)]
    key = c.key_bytes(case["types"], values)
    if key is None:
        return same(None, case["key_bytes"])
    found = {n: c.partition_of(key, int(n)) for n in case.get("partition_of") or {}}
    return same(key.hex(), case["key_bytes"]) or same(found, case.get("partition_of") or {})


def hashed(case: dict[str, Any]) -> str:
    data = bytes.fromhex(case["hex"])
    signed = int.from_bytes(c.murmur2(data).to_bytes(4, "big"), "big", signed=True)
    found = {n: c.partition_of(data, int(n)) for n in case["partition_of"]}
    return same(signed, case["murmur2"]) or same(found, case["partition_of"])


def rows(case: dict[str, Any]) -> str:
    result: list[Any] = []
    why = judged(lambda: result.append(c.check_row(case["log"], case["kind"], case["row"])), case)
    if not why and case["accepted"]:
        why = same(result[0][1], case["path"]) or same(result[0][2], case["columns"])
    return why


def entries(case: dict[str, Any], logs: dict[str, Any]) -> str:
    below = logs[case["log"]]
    data = case["text"].encode("utf-8", "surrogatepass") if "text" in case else text(case["lines"])
    folder = c.log_folder(case["log"], "orders") + "/_delta_log/"
    store = MemoryStore({folder + c.entry_name(i): text(e) for i, e in enumerate(below)})
    store.objects[folder + c.entry_name(len(below))] = data
    return judged(lambda: c.Log(store, case["log"], "orders"), case)


def chain(case: dict[str, Any]) -> str:
    result: list[c.State] = []
    why = judged(lambda: result.append(log(case["log"], case["slots"])), case)
    if why or not case["accepted"]:
        return why
    s, wanted = result[0], case["state"]
    found: dict[str, Any] = {
        "version": s.version,
        "commit_id": s.commit_id,
        "log": s.log,
        "in_commit_timestamp": s.time,
    }
    found |= {"next_chain": s.next_chain, "stepped_over": [v for v, _ in s.void], "numbers": s.numbers}
    return "; ".join(f"{k}: {w}" for k in wanted if (w := same(found.get(k, "?"), wanted[k])))


def producers(s: c.State) -> list[Any]:
    return [
        {
            "partition": p,
            "id": i,
            "epoch": x.epoch,
            "coordinator_epoch": x.coordinator_epoch,
            "last_timestamp": x.last_timestamp,
            "last_offset": x.last_offset,
            "batches": x.batches,
        }
        for (p, i), x in sorted(s.producers().items())
    ]


def markers(s: c.State) -> list[Any]:
    m = sorted(s.markers().items())
    return [{"producer": list(k), "control": r.control, "position": r.tag["position"]} for k, r in m]


def segment_log(case: dict[str, Any]) -> str:
    s, wanted = log("S", case["entries"]), case["state"]
    open_: dict[Any, dict[str, int]] = {}
    for r in s.open_segments():
        first = open_.setdefault(r.producer, {})
        first[str(r.partition)] = min(r.base, first.get(str(r.partition), r.base))
    cleaned = {str(r.partition): r.tag["cleaned"] for r in s.segment_rows() if r.tag.get("cleaned")}
    found = {
        "version": s.version,
        "numbers": s.numbers,
        "producers": producers(s),
        "markers": markers(s),
        "cleaned": cleaned,
        "files": sorted(s.files),
        "open_transactions": [{"producer": list(k), "first_offsets": v} for k, v in sorted(open_.items())],
        "tombstones": {p: r["deletionTimestamp"] for p, r in s.tombstones.items()},
    }
    return "; ".join(f"{k}: {w}" for k in wanted if (w := same(found.get(k, "?"), wanted[k])))


def visibility(case: dict[str, Any]) -> str:
    s = log("S", case["entries"])
    found = {}
    for i in range(s.partitions if s.live else 0):
        start, high = s.get("log_start", i), s.get("next_offset", i)
        rows_ = [r for r in s.segments() if r.partition == i and r.last >= start and r.base < high]
        lso = s.lso(i)
        seen = [(r, n) for r, n in s.visible() if r.partition == i and r.last >= start and max(r.base, start) < lso]
        found[str(i)] = {
            "log_start": start,
            "last_stable_offset": lso,
            "high_watermark": high,
            "read_uncommitted": [[max(r.base, start), min(r.last, high - 1)] for r in rows_],
            "read_committed": [[max(r.base, start), min(r.last, lso - 1), n] for r, n in seen],
        }
    return same(found, case["state"]["partitions"])


def transaction_log(case: dict[str, Any]) -> str:
    s = log("T", case["entries"])
    ids = s.rows("id").values()
    found = {
        "version": s.version,
        "numbers": s.numbers,
        "rows": {f"{k} {c.spell(list(key))}": r for k in c.KINDS["T"] for key, r in s.rows(k).items()},
        "open": sorted(r["transactional_id"] for r in ids if r["state"] in ("ONGOING", "PREPARED")),
        "decided_and_not_complete": [
            [r["transactional_id"], r["decision"]["position"]] for r in ids if r["state"].startswith("PREPARE_")
        ],
        "tombstones": {p: r["deletionTimestamp"] for p, r in s.tombstones.items()},
    }
    return "; ".join(f"{k}: {w}" for k, v in case["state"].items() if (w := same(found.get(k, "?"), v)))


def offset_log(case: dict[str, Any]) -> str:
    s = log("O", case["entries"])
    offsets = {c.spell(list(k)): r for k, r in s.rows("offset").items()}
    found = {
        "version": s.version,
        "numbers": s.numbers,
        "offsets": offsets,
        "groups": {k[0]: r for k, r in s.rows("group").items()},
        "pending": sorted(k for k, r in offsets.items() if "pending" in r),
        "tombstones": {p: r["deletionTimestamp"] for p, r in s.tombstones.items()},
    }
    return "; ".join(f"{k}: {w}" for k, v in case["state"].items() if (w := same(found.get(k, "?"), v)))


def canonical(items: list[Any]) -> list[str]:
    return sorted(json.dumps(i, sort_keys=True) for i in items)


def appends(case: dict[str, Any]) -> str:
    s, a = log("S", case["entries"]), case["append"]
    names = ("partition", "name", "records", "first_sequence", "partition_count", "uploaded_at")
    segments = [c.Segment(*(g[n] for n in names)) for g in a["segments"]]
    who = tuple(a["producer"]) if a["producer"] else None
    try:
        bases, written, numbers = c.decide_append(s, a["topic_id"], who, a["transactional"], segments, a["now_ms"])
    except c.Refused as error:
        return same({"refused": error.code}, case["answer"])
    return same({"base_offsets": bases, "written": len(written), "numbers": numbers}, case["answer"])


def projections(case: dict[str, Any]) -> str:
    s = log("S", case["segments"])
    p = log("P", case["public"]) if case["public"] else c.State("P")
    found = c.projection(s, p, "orders", case["now_ms"]) or []
    a, b = canonical([{n: v} for n, v in found]), canonical(case["actions"])
    return "" if a == b else f"too much: {[x for x in a if x not in b]} missing: {[x for x in b if x not in a]}"


def ends(case: dict[str, Any]) -> str:
    r, m = case["request"], case["request"]["memory"]
    memory = c.Memory(m["last_integer"], m["name_known"], tuple(m["by"]) if m["by"] else None)
    row = json.loads(case["row"]) if case["row"] else None
    who, carries = (r["producer_id"], r["epoch"]), r.get("carries") or {"manifest": None, "names": {}, "now_ms": 0}
    manifest, now = carries["manifest"], carries["now_ms"]
    try:
        asked = (r["outcome"], r["position"], r["batch_id"], memory, r["token"], r["repeated"], manifest, now)
        new = c.end(row, who, *asked)
        new = c.carrying_row(new, manifest, carries["names"]) if new and manifest else new
    except c.Refused as error:
        return same({"refused": error.code}, case["answer"])
    if new:
        c.check_row("T", "id", c.spell(new))
    return same({"ended": r["outcome"], "row": new}, case["answer"])


def settling(case: dict[str, Any]) -> str:
    decisions = {(d["producer_id"], d["epoch"]): (d["outcome"], d["position"]) for d in case["decisions"]}
    written, removed = c.settle([json.loads(r) for r in case["rows"]], decisions, case["position"])
    gone = [c.spell(c.row_columns("offset", r)[0]) for r in removed]
    return same([c.spell(r) for r in written], case["written"]) or same(gone, case["removed"])


def value_in(kind: Any, value: Any) -> Any:
    if isinstance(value, str) and kind in ("float", "double"):
        return float(value)
    if isinstance(kind, dict) and kind["type"] == "struct" and value is not None:
        return {f["name"]: value_in(f["type"], value.get(f["name"])) for f in kind["fields"]}
    return c.convert(kind, value)


def statistics(case: dict[str, Any]) -> str:
    columns = c.parse_schema(case["schema"])
    items = [{x["name"]: value_in(x["type"], r.get(x["name"])) for x in columns} for r in case["rows"]]
    found = c.statistics(columns, items, case["timestamps_us"])
    if found == case["stats"]:
        return ""
    exact = [json.loads(t, parse_float=decimal.Decimal) for t in (found, case["stats"])]
    return "" if exact[0] == exact[1] else same(found, case["stats"])


def checkpoints(case: dict[str, Any]) -> str:
    s = log(case["log"], case["entries"])
    found = canonical(c.checkpoint_rows(s))
    data = c.write_checkpoint(s)
    entry = c.decode_entry(case["log"], text(case["entries"][-1]))
    again = c.read_checkpoint(case["log"], s.version, data, entry)
    assert again
    same_state = again.files == {p: {**a, "dataChange": False} for p, a in s.files.items()}
    wanted = canonical(case["rows"])
    why = "" if found == wanted else f"{[x for x in found if x not in wanted]} {[x for x in wanted if x not in found]}"
    return (
        why
        or same(s.next_chain, case["entry"])
        or same(canonical(c.checkpoint_rows(again)), wanted)
        or ("" if same_state else "read again it is another")
    )


def checkpoint_files(case: dict[str, Any]) -> str:
    folder = c.log_folder("S", "orders") + "/_delta_log/"
    store = MemoryStore({folder + n: base64.b64decode(b) for n, b in case["objects"].items()})
    result: list[c.State] = []
    why = judged(lambda: result.append(c.Log(store, "S", "orders").state), case)
    if why or not case["accepted"]:
        return why
    s = result[0]
    found: dict[str, Any] = {
        "version": s.version,
        "commit_id": s.commit_id,
        "next_chain": s.next_chain,
        "in_commit_timestamp": s.time,
    }
    found |= {"files": sorted(s.files), "producers": producers(s), "markers": markers(s)}
    return "; ".join(f"{k}: {w}" for k, v in case["state"].items() if (w := same(found.get(k, "?"), v)))


def who_may_commit(case: dict[str, Any]) -> str:
    """§8.4, which clean_room.py does not do itself."""
    row, m = json.loads(case["row"]) if case["row"] else None, case["metadata"]
    members = {x["member_id"]: x for x in row.get("members", [])} if row else {}

    def refused() -> str | None:
        if m is None:
            return None if case["transactional"] or not members else "UNKNOWN_MEMBER_ID"
        if row is None:
            return "GROUP_ID_NOT_FOUND"
        mine = members.get(m["member_id"])
        instance = m["instance_id"]
        if instance and any(x.get("instance_id") == instance and x is not mine for x in members.values()):
            return "FENCED_INSTANCE_ID"
        if mine is None or (instance and mine.get("instance_id") != instance):
            return "UNKNOWN_MEMBER_ID"
        if m["generation"] > row["generation"]:
            return "ILLEGAL_GENERATION"
        frozen = None if m["ownership"] is None else {(t, p): e for t, p, e in m["ownership"]}
        owned = {
            (t, p): int(e) for t, es in mine.get("owned", {}).items() for e, r in es.items() for p in c.parse_ranges(r)
        }
        for t, p in case["partitions"]:
            epoch = owned.get((t, p))
            ok = epoch is not None and (epoch <= m["generation"] if frozen is None else frozen.get((t, p)) == epoch)
            if not ok:
                return "STALE_MEMBER_EPOCH"
        return None

    return same(refused(), case["refused"])


def does(w: c.Warehouse, step: dict[str, Any]) -> None:
    what = step["step"]
    if what == "complete":
        w.complete()
        return
    producer = c.TransactionalProducer(w, step["id"], step.get("timeout_ms", 60_000))
    if what == "init":
        producer.init()
        return
    producer.who = tuple(step["producer"])
    if what == "enrol":
        producer.enrol("orders" if step["partitions"] else "", step["partitions"], step["groups"])
    elif what == "append":
        producer.append("orders", step["rows"], step["partition"], enrol=False)
    elif what == "send offsets":
        offsets = {int(p): o for p, o in step["offsets"].items()}
        producer.send_offsets(step["group"], "orders", offsets, enrol=False)
    elif what == "prepare":
        producer.prepare(step["token"], step["batch_id"])
    else:
        for batch in step.get("carries", ()):
            if batch["partition"] is not None:
                producer.sequences[w.topic("orders").topic_id, batch["partition"]] = batch["first_sequence"]
            producer.append("orders", batch["rows"], batch["partition"], carry=True)
        producer.decide(step["outcome"], step["batch_id"], step["token"])


def writers(case: dict[str, Any], start: dict[str, list[str]]) -> str:
    given = {path: text(lines) for path, lines in {**start, **case["objects"]}.items()}
    store = MemoryStore(dict(given), case["now_ms"])
    roots = {kind: c.log_folder(kind, "orders") for kind in "OPST"}
    try:
        does(c.Warehouse("", store), case["does"])
        found = written.put(given, store.objects, roots)
    except c.Refused as error:
        found = {"refused": error.code}
    return same(found, case["puts"])


def segment_files(case: dict[str, Any]) -> str:
    columns = c.parse_schema(case["schema"])
    items = [{x["name"]: value_in(x["type"], r.get(x["name"])) for x in columns} for r in case["rows"]]
    data = c.segment_bytes(columns, items, case["timestamps_us"], case["compression_type"])
    return same(written.parquet_file(data), case["file"])


CHECKS: dict[str, Any] = {
    "appends": appends,
    "chain": chain,
    "checkpoint_files": checkpoint_files,
    "checkpoints": checkpoints,
    "constant_file": lambda case: same(
        [base64.b64encode(c.CONSTANT_FILE).decode(), len(c.CONSTANT_FILE), c.sha(c.CONSTANT_FILE)],
        [case["base64"], case["size"], case["sha256"]],
    ),
    "ends": ends,
    "file_names": lambda case: same(c.what_file(case["path"]), case["says"]),
    "file_paths": lambda case: judged(lambda: c.is_path(case["path"]), case),
    "key_bytes": keys_of,
    "keys": lambda case: same(
        [c.spell(case["key"]), c.row_path(case["kind"], case["key"])], [case["spelled"], case["path"]]
    ),
    "murmur2": hashed,
    "offset_log": offset_log,
    "paths": paths,
    "projection": projections,
    "rows": rows,
    "segment_files": segment_files,
    "segment_log": segment_log,
    "settling": settling,
    "statistics": statistics,
    "stored_json": lambda case: judged(lambda: c.load_json(case["text"]), case),
    "tokens": lambda case: same(
        c.token_of(case["transactional_id"], case["producer_id"], case["epoch"], case["unique"]), case["token"]
    ),
    "transaction_log": transaction_log,
    "visibility": visibility,
    "who_may_commit": who_may_commit,
}


def check_vectors(folder: str) -> int:
    failures = 0
    for path in sorted(Path(folder).glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        check = CHECKS.get(path.stem)
        if path.stem == "entries":
            logs = data["logs"]
            check = lambda case: entries(case, logs)  # noqa: E731, B023
        if path.stem == "writers":
            start = data["start"]
            check = lambda case: writers(case, start)  # noqa: E731, B023
        if check is None:
            print(f"{path.stem}: no check")
            continue
        bad = 0
        for case in data["cases"]:
            try:
                why = check(case)
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                why = f"{type(error).__name__}: {error} ({last.name}:{last.lineno})"
            if why:
                bad += 1
                print(f"  {path.stem}: {case['name']}: {re.sub(r'[^ -~]', '?', why)[:600]}")
        failures += bad
        print(f"{path.stem}: {len(data['cases']) - bad} of {len(data['cases'])}")
    return failures


if __name__ == "__main__":
    sys.exit(1 if check_vectors(sys.argv[1] if len(sys.argv) > 1 else "vectors") else 0)
