"""A look at what can be read of a warehouse: one topic that is damaged, or not ours to read, hides no other.

Owns which errors are passed over: all that reading a topic or the offset log raises, but that the warehouse is another
one, and that the transaction log cannot be read, without which nothing is told.  What was passed over is kept, for
whoever shows the rest.  Reads only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from txntable.admin.blocking_transactions import BlockingTransaction, BlockingTransactions
from txntable.admin.lag_listing import WarehouseLags, warehouse_lags
from txntable.admin.topic_admin import describe_topic
from txntable.admin.topic_description import TopicDescription
from txntable.admin.transaction_admin import TransactionAdmin
from txntable.admin.transaction_listing import HangingTransaction
from txntable.admin.unreadable import topic_place, unreadable
from txntable.admin.upkeep import Finding
from txntable.errors import TxnTableError, UnknownTopicOrPartitionError, WarehouseReplacedError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.topics.topic_log import TopicLog
from txntable.topics.topic_question import topics_asked_for
from txntable.transactions.completion import Completer
from txntable.transactions.named_topics import named_topics, require_unnamed


class ReadablePart:
    """One look.

    Parameters
    ----------
    completer : Completer
        Knows T and O.
    topic_log : callable
        Topic name -> its logs.
    names : sequence of str, optional
        The topics; default: all.

    Attributes
    ----------
    names : list of str
        The topics that there are, and whose partition logs can be read, each once.
    unreadable : list of Finding
        What could not be read so far, each once, with its error.

    Raises
    ------
    UnknownTopicOrPartitionError
        One of `names` does not exist.
    StoreUnavailableError, StorePermissionError
        The topics cannot be listed.
    """

    def __init__(
        self, completer: Completer, topic_log: Callable[[str], TopicLog], names: Sequence[str] | None = None
    ) -> None:
        self._completer, self._topic_log = completer, topic_log
        self.unreadable: list[Finding] = []
        self.names = self._all() if names is None else self._named(names)

    @property
    def searched(self) -> int:
        """In how many of the topics nothing was unreadable so far."""
        places = {one.where for one in self.unreadable}
        return sum(topic_place(name) not in places for name in self.names)

    def topics(self) -> list[TopicDescription]:
        """Return what the partition logs say of each topic."""
        found = []
        for name in self.names:
            with suppress(UnknownTopicOrPartitionError), self.passing_over(topic_place(name)):
                found.append(describe_topic(self._topic_log(name)))
        return found

    def blocking(self) -> list[BlockingTransaction]:
        """Return the transactions that hold readers back; of groups nothing where the offset log cannot be read."""
        shown = TransactionAdmin(self._completer, self._topic_log)
        return BlockingTransactions(self._completer, self._topic_log, shown, self.passing_over).find(self.names)

    def lags(self) -> WarehouseLags:
        """Return how far everything is behind; of a topic whose public table cannot be read the rest."""
        return warehouse_lags(self.names, self._topic_log, self._completer.offsets, self.passing_over)

    def hanging(self, limit_ms: int) -> list[HangingTransaction]:
        """Return the transactions that have been open for longer than a limit, and that nothing will end."""
        shown, found = TransactionAdmin(self._completer, self._topic_log), list[HangingTransaction]()
        for name in self.names:
            with suppress(UnknownTopicOrPartitionError), self.passing_over(topic_place(name)):
                found += shown.hanging(name, None, limit_ms)
        return found

    def look_for(self, names: Collection[str]) -> list[str]:
        """Return those of some topics that are there and can be read, ascending; what cannot be read is kept."""
        found: list[str] = []
        for name in sorted(names):
            # A folder of a deleted topic, or of a creation that was killed.
            with suppress(UnknownTopicOrPartitionError):
                found += self._readable(name)
        return found

    @contextmanager
    def passing_over(self, where: str) -> Iterator[None]:
        """Give a block in which what cannot be read is kept as unreadable, and ends the block alone.

        Parameters
        ----------
        where : str
            The topic or log that is read.
        """
        try:
            yield
        except (UnknownTopicOrPartitionError, WarehouseReplacedError):
            raise
        except TxnTableError as error:
            # Readings of a topic read T, too: what is wrong there is not the topic's.
            self._completer.transactions.refresh()
            if where not in {one.where for one in self.unreadable}:
                self.unreadable.append(unreadable(where, error))

    def _all(self) -> list[str]:
        folders = topic_names(self._completer.transactions.context.store.folders(TOPICS_FOLDER))
        return self.look_for({*folders, *named_topics(self._completer.transactions, self._completer.offsets)})

    def _named(self, names: Sequence[str]) -> list[str]:
        with topics_asked_for(self._completer.transactions.context):
            return [found for name in dict.fromkeys(names) for found in self._readable(name)]

    def _readable(self, name: str) -> list[str]:
        topic = self._topic_log(name)
        with self.passing_over(topic_place(name)):
            try:
                topic.found_settings()
            except UnknownTopicOrPartitionError:
                if not topic.has_log:
                    require_unnamed(topic, self._completer.transactions, self._completer.offsets)
                raise
            return [name]
        return []
