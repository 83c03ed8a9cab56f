"""All that one process can do: a tree whose branches are the answers to its storage calls.

A process is a function of its answers, so the explorer needs to run its real code only once for each sequence of
answers, however many interleavings lead to it.  A node is a place before a call; a run (a thread of the real code)
waits at it, until it is needed on one branch; on the others the answers so far are given to a new run at once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.doubles.stepping_store import ProcessKilled
from tests.exploration.calls import READY, Answer, AskingStore, Call, StillEnvironment
from txntable.warehouse.warehouse import Warehouse, open_on

MOST_CALLS = 600
_numbers = itertools.count(1)


@dataclass(eq=False, slots=True)
class Node:
    """A process before a call, or at its end.

    Attributes
    ----------
    call : Call, optional
        ``None``: it has ended.
    told : tuple of str
        What it knows by now of what was promised to it.
    failure : BaseException, optional
        What it ended with, when that is no error of the product's tree.
    """

    call: Call | None
    told: tuple[str, ...]
    parent: Node | None = None
    answer: Answer | None = None
    failure: BaseException | None = None
    run: _Run | None = None
    children: dict[Answer, Node] = field(default_factory=dict)
    number: int = field(default_factory=_numbers.__next__)

    def answers(self) -> list[Answer]:
        """Return all answers that lead here, the first one first."""
        found: list[Answer] = []
        node: Node | None = self
        while node is not None and node.answer is not None:
            found.append(node.answer)
            node = node.parent
        return found[::-1]


class Actor:
    """What the code of a process is given."""

    def __init__(self, run: _Run, seed: int) -> None:
        self._run = run
        self.environment = StillEnvironment(seed=seed)
        self.store = AskingStore(run.ask, self.environment)

    def open(self) -> Warehouse:
        """Open the warehouse."""
        return open_on(self.store, self.environment)

    def ready(self) -> None:
        """Take part from here on: what came before was done while no other process ran."""
        self.store.call(READY)

    def tell(self, *facts: str) -> None:
        """Note what is known now."""
        self._run.told += facts


Code = Callable[[Actor], object]


class _Run:
    """A thread that runs a process's code, one call after the other."""

    def __init__(self, code: Code, seed: int, answers: Sequence[Answer]) -> None:
        self.told: tuple[str, ...] = ()
        self.call: Call | None = None
        self.failure: BaseException | None = None
        self._given = list(answers)
        self._position = 0
        self._killed = False
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work, args=(code, seed), daemon=True)
        self._thread.start()
        self._back.acquire()

    def go_on(self, answer: Answer) -> None:
        """Answer the call that it waits for; return when it makes the next one, or ends."""
        self._given.append(answer)
        self._turn.release()
        self._back.acquire()

    def end(self) -> None:
        """Let the thread end."""
        if self.call is not None:
            self._killed = True
            self._turn.release()
            self._thread.join()

    def ask(self, call: Call) -> Answer:
        if self._position == len(self._given):
            if self._position == MOST_CALLS:
                raise AssertionError(f"the process does not come to an end: {call}")
            self.call = call
            self._back.release()
            self._turn.acquire()
            if self._killed:
                raise ProcessKilled
        answer = self._given[self._position]
        self._position += 1
        return answer

    def _work(self, code: Code, seed: int) -> None:
        try:
            code(Actor(self, seed))
        except ProcessKilled:
            pass
        except BaseException as error:  # noqa: BLE001  raised by the explorer, with the trace that leads here
            self.failure = error
        self.call = None
        self._back.release()


class ProcessTree:
    """The tree of one process.

    Parameters
    ----------
    name : str
        For people.
    code : Callable
        What it does; deterministic.
    seed : int
        Of its ids; another one for each process.

    Attributes
    ----------
    executions : int
        How often the code was begun.
    nodes : int
        How many places there are by now.
    """

    def __init__(self, name: str, code: Code, seed: int) -> None:
        self.name = name
        self.executions = self.nodes = 0
        self._code, self._seed = code, seed
        self._waiting: set[_Run] = set()
        self.root = self._node(self._begin(()), None, None)

    def after(self, node: Node, answer: Answer) -> Node:
        """Return the place that the process comes to when its call is answered so."""
        child = node.children.get(answer)
        if child is None:
            run, node.run = node.run, None
            if run is None:
                run = self._begin(node.answers())
                if run.call != node.call:
                    raise AssertionError(f"{self.name} is no function of its answers: {run.call} after {node.call}")
            run.go_on(answer)
            child = node.children[answer] = self._node(run, node, answer)
        return child

    def close(self) -> None:
        """End all threads that still wait."""
        for run in self._waiting:
            run.end()
        self._waiting.clear()

    def _begin(self, answers: Sequence[Answer]) -> _Run:
        self.executions += 1
        run = _Run(self._code, self._seed, answers)
        self._waiting.add(run)
        return run

    def _node(self, run: _Run, parent: Node | None, answer: Answer | None) -> Node:
        self.nodes += 1
        if run.call is None:
            self._waiting.discard(run)
        return Node(run.call, run.told, parent, answer, run.failure, run if run.call is not None else None)
