"""Faults of offsets and of consumer groups (PROTOCOL.md §8)."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Killer, Mutant

_UPKEEP = "coordinator/offset_upkeep.py"
_SHARD = "coordinator/offset_shard.py"
_REASSIGNMENT = "coordinator/group_reassignment.py"
_CLIENT = "txntable/groups/group_client.py"

GROUP_MUTANTS = (
    Mutant(
        "settled-without-the-slot",
        "where no offset is pending nothing is written, and a sender that was verified before the "
        "decision gets its slot",
        "6.4",
        (
            Edit(
                "txntable/offsets/offset_log.py",
                "            is_owed = any(decision.position > settled_through for decision in decisions.values())\n",
                "            is_owed = any(decision.position < 0 for decision in decisions.values())\n",
            ),
        ),
        Killer("overtaken", 9),
    ),
    Mutant(
        "settling-drops-others",
        "the abort of one transaction drops the pending offsets of others",
        "8.1",
        (
            Edit(
                _UPKEEP,
                "    left = tuple(each for each in row.pending if (each.producer_id, each.epoch) not in decisions)\n",
                "    left = () if any(d.outcome is Outcome.ABORT for d in decisions.values()) else tuple(\n"
                "        each for each in row.pending if (each.producer_id, each.epoch) not in decisions\n    )\n",
            ),
        ),
        Killer("offsets", 46),
    ),
    Mutant(
        "latest-decision-wins",
        "of two offsets the one counts whose transaction is decided last, not the one that was asked for last",
        "8.1",
        (
            Edit(
                _UPKEEP,
                "    if committed is not None and committed.request > pending.request:\n",
                "    if committed is not None and committed.request < 0:\n",
            ),
        ),
        Killer("offsets", 20),
    ),
    Mutant(
        "aborted-offsets-count",
        "the offsets of an aborted transaction count",
        "8.1",
        (
            Edit(
                _UPKEEP,
                "        if decision is not None and decision.outcome is Outcome.COMMIT:\n",
                "        if decision is not None:\n",
            ),
        ),
        Killer("offsets"),
    ),
    Mutant(
        "old-generation-accepted",
        "a member commits a partition that it has lost since it read it",
        "8.4",
        (
            Edit(
                "coordinator/group_fencing.py",
                "        if not _has_owned_since(member, metadata, partition):\n",
                "        if metadata.generation < 0:\n",
            ),
        ),
        Killer("latecomers", 0),
    ),
    Mutant(
        "ownership-taken-at-the-commit",
        "a commit carries what the member owns when it commits, not what it owned when it read",
        "8.4",
        (
            Edit(
                "txntable/consumer/readings.py",
                "            ownership.pop(partition, None)\n"
                "            if (epoch := reading.epoch(partition)) is not None:\n"
                "                ownership[partition] = epoch\n",
                "",
            ),
        ),
        Killer("latecomers", 3),
    ),
    Mutant(
        "losses-not-looked-for",
        "positions may leave out what was read of a partition that is another's by now",
        "8.4",
        (
            Edit(
                "txntable/producer/lost_readings.py",
                "        if left_out:\n",
                "        if member.generation < 0:\n",
            ),
        ),
        Killer("migrants", 18),
    ),
    Mutant(
        "losses-as-of-the-metadata",
        "group metadata tells what was lost when it was asked for, not what is lost when offsets are sent with it",
        "8.4",
        (
            Edit(
                "txntable/consumer/offset_commits.py",
                "topic_ids=self._topics_read(), reader=reader\n",
                "topic_ids=self._topics_read(), reader=_DistantReader(reader.losses())\n",
            ),
        ),
        Killer("migrants", 46),
    ),
    Mutant(
        "losses-forgotten-with-the-next-poll",
        "what was read and lost is forgotten with the next poll, though the transaction goes on",
        "8.4",
        (
            Edit(
                "txntable/consumer/offset_commits.py",
                "        reader = self._reader()\n",
                "        reader = self._reader()\n        reader.refused()\n",
            ),
        ),
        Killer("migrants", 66),
    ),
    Mutant(
        "rewind-of-some-partitions",
        "who has gone back in one partition after an abort may leave out what it has lost, though others are kept",
        "8.4",
        (
            Edit(
                "txntable/consumer/rewinds.py",
                "        if not assigned or any(each not in self._back_at for each in assigned):\n"
                "            return None\n"
                "        began = min(self._back_at[each] for each in assigned)\n",
                "        if not assigned:\n            return None\n        began = at\n",
            ),
        ),
        Killer("migrants", 79),
    ),
    Mutant(
        "rewind-before-the-abort",
        "a rewind counts that was made before the transaction was aborted",
        "8.4",
        (
            Edit(
                "txntable/producer/lost_readings.py",
                "            loss.at < each.began and since < each.began and each.end < until\n",
                "            loss.at < each.began and since < until and each.end < until\n",
            ),
        ),
        Killer("migrants", 449, 900),
    ),
    Mutant(
        "rewind-within-the-transaction",
        "a rewind counts that was made when the next transaction had begun",
        "8.4",
        (
            Edit(
                "txntable/producer/lost_readings.py",
                "            loss.at < each.began and since < each.began and each.end < until\n",
                "            loss.at < each.began and since < each.began and since < until\n",
            ),
        ),
        Killer("migrants", 243, 900),
    ),
    Mutant(
        "free-partition-not-given",
        "a partition that is released stays free until the next generation",
        "8.2",
        (
            Edit(
                "coordinator/group_shard.py",
                "    members = with_free_given({**group.members, member.member_id: replace(member, "
                "owned=kept)}, group.generation)\n",
                "    members = {**group.members, member.member_id: replace(member, owned=kept)}\n",
            ),
        ),
        Killer("handover", 2),
    ),
    Mutant(
        "partition-with-two-owners",
        "a partition is given to a member before the other has released it",
        "8.2",
        (
            Edit(
                _REASSIGNMENT,
                "dict.fromkeys(sorted(member.target - taken), generation)",
                "dict.fromkeys(sorted(member.target - member.owned.keys()), generation)",
            ),
        ),
        Killer("groups", 3),
    ),
    Mutant(
        "range-not-compared",
        "the offset of a range is committed though the group does not stand where it began",
        "8.1",
        (
            Edit(
                _SHARD,
                "        if new.read_from is not None:\n            _check",
                "        if new.offset < 0 and new.read_from is not None:\n            _check",
            ),
        ),
        Killer("loners", 3),
    ),
    Mutant(
        "unstable-offset-read",
        "a consumer goes on from the committed offset while a transaction has one pending",
        "8.1",
        (
            Edit(
                _CLIENT,
                "            found, unstable = self._look(group, topic_ids, require_stable=require_stable)\n",
                "            found, unstable = self._look(group, topic_ids, require_stable=False)\n",
            ),
        ),
        Killer("successors", 1),
    ),
    Mutant(
        "offset-expires-in-use",
        "the offset of a topic that a member subscribes to expires",
        "8.1 expiry",
        (
            Edit(
                _UPKEEP,
                "    return not row.pending and (group is None or row.topic not in group.subscribed_topics)\n",
                "    return not row.pending\n",
            ),
        ),
        Killer("shelf", 3),
    ),
    Mutant(
        "expelled-without-a-look",
        "a member is expelled by the time of its join, whatever its heartbeats",
        "8.3",
        (
            Edit(
                "coordinator/group_shard.py",
                "    signs = (member.joined_ms, request.heartbeats.get(member.member_id, member.joined_ms))\n",
                "    signs = (member.joined_ms,)\n",
            ),
        ),
        Killer("steady", 0),
    ),
    Mutant(
        "expelled-by-ones-own-clock",
        "whether a member is silent is told by the clock of the machine that looks",
        "8.3",
        (
            Edit(
                _CLIENT,
                "makes a member younger, never older.\n        now_ms = self._context.clock.now_ms()\n",
                "makes a member younger, never older.\n        now_ms = self._context.environment.instant().wall_ms\n",
            ),
        ),
        Killer("steady", 1),
    ),
    Mutant(
        "released-before-it-is-committed",
        "a member releases a partition and commits what it read there afterwards",
        "8.2 release",
        (
            Edit(
                "txntable/consumer/group_session.py",
                "        if given_up:\n            self._commits.auto_commit()\n            self._tell_given_up",
                "        if given_up:\n            self._tell_given_up",
            ),
        ),
        Killer("handover", 3),
    ),
)
