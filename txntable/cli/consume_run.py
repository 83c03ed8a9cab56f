"""One run of ``txntable consume``: records are polled, written out, and committed where there is a group.

Owns the order *write, flush, commit*: a group's offsets are only of records that reached the output, however the run
ends; what was written and not committed is printed again by the next one.  Must not know of options.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import typer

from txntable.cli.output import tell
from txntable.cli.record_line import RecordLine
from txntable.client.consumer import Consumer
from txntable.client.consumer_record import ConsumerRecord
from txntable.client.rebalance_listener import ConsumerRebalanceListener
from txntable.client.records import TopicPartition
from txntable.environment import Environment
from txntable.errors import AbortableError

COMMIT_INTERVAL_MS = 5_000
_POLL_RECORDS = 500


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
        # The next offset after what was written; and after what also reached the output and is not committed.
        self._written: dict[TopicPartition, int] = {}
        self._printed: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._count = 0
        self._found_at = self._committed_at = environment.instant()

    def run(self, line: RecordLine, end: RunEnd) -> int:
        """Print records until the end, or an interruption; return how many.

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
        TxnTableError
            As :meth:`txntable.client.consumer.Consumer.poll` and, in a group, ``commit``.
        """
        self._found_at = self._environment.instant()
        try:
            self._print_until(end, line)
        except BrokenPipeError:
            # Nobody reads any more; what Python would flush at its exit has nowhere to go either.
            _drop_output()
        except OSError as error:
            _drop_output()
            tell(f"error: the records could not be written out; write them to another place reason={error.strerror}")
            raise typer.Exit(1) from error
        return self._count

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Commit what was printed of partitions that go to another member, or that are given up at the end."""
        _or_warn(lambda: self._commit_printed(partitions))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are another's already: it prints them from what was committed."""
        for partition in partitions:
            self._printed.pop(partition, None)

    # -- printing ---------------------------------------------------------------------------

    def _print_until(self, end: RunEnd, line: RecordLine) -> None:
        try:
            while end.max_messages is None or self._count < end.max_messages:
                most = _POLL_RECORDS if end.max_messages is None else min(_POLL_RECORDS, end.max_messages - self._count)
                found = self.consumer.poll(self._patience_ms(end), most)
                self._print(found, line)
                self._commit_when_due()
                if self._is_over(end, found):
                    break
            self._commit_positions()
        except KeyboardInterrupt:
            # How following ends.
            self._flush()
            self._commit_printed(list(self._printed))

    def _patience_ms(self, end: RunEnd) -> float:
        if end.silence_ms is None:
            return 0
        rest_ms = max(0.0, end.silence_ms - self._environment.since_ms(self._found_at))
        return min(rest_ms, COMMIT_INTERVAL_MS) if self._in_group else rest_ms

    def _print(self, found: Mapping[TopicPartition, Sequence[ConsumerRecord]], line: RecordLine) -> None:
        for partition, records in found.items():
            for record in records:
                sys.stdout.buffer.write(line(record) + b"\n")
                self._written[partition] = record.offset + 1
        self._flush()
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
        """Commit where the consumer stands, past markers, too: everything that it has handed out is printed."""
        if self._in_group:
            self._printed.clear()
            self._committed_at = self._environment.instant()
            self.consumer.commit()

    def _commit_printed(self, partitions: Collection[TopicPartition]) -> None:
        """Commit no more than what was printed; where it stands may be further when it was interrupted."""
        offsets = {each: self._printed.pop(each) for each in partitions if each in self._printed}
        if self._in_group and offsets:
            self.consumer.commit(offsets)


def _or_warn(commit: Callable[[], None]) -> None:
    """Commit; who is no member any more joins again by the next poll, and what is not committed is printed again."""
    try:
        commit()
    except AbortableError as error:
        tell(f"warning: what was printed is not committed and may be printed again: {error.code} {error}")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
