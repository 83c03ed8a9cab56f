"""One run of ``txntable consume``: records are polled, written out, and committed where there is a group.

Owns the order *write, flush, commit*: a group's offsets are only of records that reached the output, however the run
ends; what was written and not committed is printed again by the next one.  Must not know of options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import typer

from txntable.cli.output import drop_output, tell
from txntable.cli.record_line import RecordLine, for_terminal
from txntable.consumer.consumer import Consumer
from txntable.consumer.consumer_record import ConsumerRecord
from txntable.consumer.rebalance_listener import ConsumerRebalanceListener
from txntable.errors import AbortableError
from txntable.format.records import TopicPartition
from txntable.runtime.environment import Environment

COMMIT_INTERVAL_MS = 5_000
_POLL_RECORDS = 500
# While a transaction keeps from being read where the group stands: how long a poll waits, ms.
_BEGIN_MS = 250


@dataclass(frozen=True, slots=True)
class RunEnd:
    """When a run ends by itself.

    Attributes
    ----------
    max_messages : int or None
        After so many records; ``None``: any number.
    silence_ms : float or None
        When no record came for so long, ms; ``None``: at the end of what there is.
    """

    max_messages: int | None
    silence_ms: float | None


class ConsumeRun(ConsumerRebalanceListener):
    """Prints what a consumer reads; a listener, so that what it gives up to another member is committed before.

    Parameters
    ----------
    consumer : Consumer
        Assigned, or to be subscribed with this listener; it commits nothing by itself.
    environment : Environment
        Says how long nothing came.

    Attributes
    ----------
    consumer : Consumer
        As given.
    """

    def __init__(self, consumer: Consumer, environment: Environment) -> None:
        self.consumer, self._environment = consumer, environment
        self._in_group = consumer.config.group_id is not None
        # The next offset after what was written; and, of every partition, up to where all that there is has reached
        # the output; and what of that is committed, or refused for good.
        self._written: dict[TopicPartition, int] = {}
        self._printed: dict[TopicPartition, int] = {}
        self._done_with: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._count = 0
        self._found_at = self._committed_at = environment.instant()

    def run(self, line: RecordLine, end: RunEnd) -> int:
        """Print records until the end; return how many.

        Parameters
        ----------
        line : callable
            Record -> bytes.
        end : RunEnd
            When to stop.

        Raises
        ------
        typer.Exit
            The output takes no more: exit code 1.
        KeyboardInterrupt
            Somebody ended it: what was printed is committed.
        TxnTableError
            As :meth:`txntable.consumer.consumer.Consumer.poll` and, in a group, ``commit``.
        """
        self._found_at = self._environment.instant()
        try:
            self._print_all(end, line)
        except BrokenPipeError:
            # Nobody reads any more; what Python would flush at its exit has nowhere to go either.
            drop_output()
        except OSError as error:
            drop_output()
            tell(f"error: the records could not be written out; write them to another place reason={error.strerror}")
            raise typer.Exit(1) from error
        finally:
            self._commit_printed(self.consumer.assignment())
        return self._count

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Read nothing of them yet: in a group it is first found out, and committed, where they begin."""
        if not self._in_group:
            return
        self.consumer.pause(*partitions)
        # So that the poll that got them returns.
        self.consumer.wakeup()

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit what was printed of partitions that go to another member, or that are given up at the end."""
        _or_warn(lambda: self._commit_printed(partitions))
        self.on_partitions_lost(partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are another's already: it prints them from what was committed."""
        for partition in partitions:
            self._printed.pop(partition, None)
            self._done_with.pop(partition, None)

    # -- printing ---------------------------------------------------------------------------

    def _print_all(self, end: RunEnd, line: RecordLine) -> None:
        try:
            self._print_until(end, line)
        except KeyboardInterrupt:
            self._flush()
            raise

    def _print_until(self, end: RunEnd, line: RecordLine) -> None:
        while end.max_messages is None or self._count < end.max_messages:
            most = _POLL_RECORDS if end.max_messages is None else min(_POLL_RECORDS, end.max_messages - self._count)
            found = self.consumer.poll(timeout_ms=self._patience_ms(end), max_records=most)
            self._print(found, line)
            if not self._begin() and self._is_over(end, found):
                break
            self._commit_when_due()

    def _begin(self) -> bool:
        """Commit where new partitions begin, and let the next poll read them; return whether there are such.

        Nothing of them is handed out before: whatever ends the run, even a kill, the group goes on there, and not
        where the options of its next run say.
        """
        new = self.consumer.paused() & self._printed.keys()
        if new:
            _or_warn(self._commit_positions)
            self.consumer.resume(*new)
        return bool(new)

    def _patience_ms(self, end: RunEnd) -> float:
        if end.silence_ms is None:
            return 0
        if self.consumer.paused():
            return _BEGIN_MS
        rest_ms = max(0.0, end.silence_ms - self._environment.since_ms(self._found_at))
        return min(rest_ms, COMMIT_INTERVAL_MS) if self._in_group else rest_ms

    def _print(self, found: Mapping[TopicPartition, Sequence[ConsumerRecord]], line: RecordLine) -> None:
        # As `ls` does: bytes go to a pipe or a file as they are, and never steer a terminal.
        shown = for_terminal if sys.stdout.isatty() else bytes
        for partition, records in found.items():
            for record in records:
                sys.stdout.buffer.write(shown(line(record)) + b"\n")
                self._written[partition] = record.offset + 1
        self._flush()
        # Past markers, too: everything that was handed out is printed.
        self._printed |= self.consumer.positions()
        if found:
            self._found_at = self._environment.instant()
        self._count += sum(map(len, found.values()))

    def _flush(self) -> None:
        sys.stdout.buffer.flush()
        self._printed.update(self._written)
        self._written.clear()

    def _is_over(self, end: RunEnd, found: Mapping[TopicPartition, object]) -> bool:
        if end.silence_ms is not None:
            return not found and self._environment.since_ms(self._found_at) >= end.silence_ms
        mine = self.consumer.assignment()
        if not mine:
            tell("warning: other members of the group have all partitions; say --follow to wait until they are gone")
        if new := mine - self._ends.keys():
            self._ends |= self.consumer.end_offsets(sorted(new))
        return all(self.consumer.position(each) >= self._ends[each] for each in mine)

    # -- committing -------------------------------------------------------------------------

    def _commit_when_due(self) -> None:
        if self._in_group and self._environment.since_ms(self._committed_at) >= COMMIT_INTERVAL_MS:
            _or_warn(self._commit_positions)

    def _commit_positions(self) -> None:
        """Commit where the consumer stands: everything that it has handed out is printed."""
        self._committed_at = self._environment.instant()
        printed = dict(self._printed)
        self.consumer.commit()
        self._done_with = printed

    def _commit_printed(self, partitions: Collection[TopicPartition]) -> None:
        """Commit no more than what was printed; where it stands may be further when it was interrupted."""
        if not self._in_group:
            return
        for each in self.consumer.paused().intersection(partitions) - self._printed.keys():
            # Nothing of it was handed out yet.
            self._printed[each] = self.consumer.position(each)
        known = {each: self._printed[each] for each in partitions if each in self._printed}
        offsets = {each: offset for each, offset in known.items() if offset != self._done_with.get(each)}
        if not offsets:
            return
        try:
            self.consumer.commit(offsets)
        except AbortableError:
            # They are another's by now, and closing need not ask again.
            self._done_with |= offsets
            raise
        self._done_with |= offsets


def _or_warn(commit: Callable[[], None]) -> None:
    """Commit; who is no member any more joins again by the next poll, and what is not committed is printed again."""
    try:
        commit()
    except AbortableError as error:
        tell(f"warning: what was printed is not committed and may be printed again: {error.code} {error}")
