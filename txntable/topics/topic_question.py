"""Which topic a mistyped name was meant to be: asked where the error about it leaves a client.

Owns that topics are listed only then, and that one that was deleted is none of them: its folder is still there.  And
that a topic which has lost its log is told as damaged: who took it for none would create it anew.
Inside of a client an error about a topic that is not there is often expected.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, TypeVar

from txntable.errors import DamagedDataError, TxnTableError, UnknownTopicOrPartitionError
from txntable.format.layout import TOPICS_FOLDER, topic_names
from txntable.format.near_names import question
from txntable.log.log_view import LogContext
from txntable.topics.topic_log import TopicLog

ClientT = TypeVar("ClientT", bound=type)


def asking_for_topics(context: Callable[[Any], LogContext]) -> Callable[[ClientT], ClientT]:
    """Let errors that leave the public calls of a class ask for the topic that was meant.

    Parameters
    ----------
    context : callable
        One of its objects -> the warehouse's logs.
    """

    def decorate(client: ClientT) -> ClientT:
        for name, value in vars(client).copy().items():
            if isinstance(value, FunctionType) and not name.startswith("_"):
                setattr(client, name, _asking(value, context))
        return client

    return decorate


def _asking(call: Callable[..., Any], context: Callable[[Any], LogContext]) -> Callable[..., Any]:
    @functools.wraps(call)
    def run(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return call(self, *args, **kwargs)
        except UnknownTopicOrPartitionError as error:
            _ask(error, context(self))
            raise

    return run


@contextmanager
def topics_asked_for(context: LogContext) -> Iterator[None]:
    """Let an error that leaves the block ask for the topic that was meant: where no client's public call is around it.

    Parameters
    ----------
    context : LogContext
        Of the warehouse.
    """
    try:
        yield
    except UnknownTopicOrPartitionError as error:
        _ask(error, context)
        raise


def _ask(error: UnknownTopicOrPartitionError, context: LogContext) -> None:
    topic = error.facts.get("topic")
    # A partition that is not there is of a topic that is; and whoever raised it may have asked already.
    if isinstance(topic, str) and "partition" not in error.facts and not getattr(error, "__notes__", ()):
        lost = None
        with suppress(TxnTableError):
            folders = topic_names(context.store.folders(TOPICS_FOLDER))
            said = question(topic, folders, lambda name: _exists(TopicLog(context, name)))
            if said is not None:
                error.add_note(f"({said})")
            lost = _lost(TopicLog(context, topic)) if topic in folders else None
        if lost is not None:
            raise lost from error


def _lost(topic: TopicLog) -> DamagedDataError | None:
    if topic.segments.refresh().version is None:
        try:
            topic.require_unborn()
        except DamagedDataError as error:
            return error
    return None


def _exists(topic: TopicLog) -> bool:
    try:
        topic.settings()
    except UnknownTopicOrPartitionError:
        return False
    return True
