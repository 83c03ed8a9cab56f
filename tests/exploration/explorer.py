"""Explores every interleaving of a few small processes over one store, up to a stated bound.

A state is the store's content, the place of each process in its tree (:mod:`tests.exploration.process_tree`), what may
still land late, the time, and what is left of the bound.  Equal states have equal futures: a state that was visited is
not entered again.  So every order of all storage calls is covered; a process is killed before any call, or after it was
done and before it is answered; time passes before any call, or while a write is answered.  Only how often is bounded.
A process that waits takes no time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.doubles.fault_plan import WRITES, Fault, Operation
from tests.doubles.memory_store import MemoryObjects
from tests.exploration.calls import Answer, Call, Content
from tests.exploration.process_tree import Node, ProcessTree
from tests.exploration.program import Bound, End, Program

Key = tuple[object, ...]
_ANY_CALL = (Fault.FAIL_BEFORE, Fault.LOST_ANSWER)


@dataclass(frozen=True, slots=True)
class State:
    """A state of a run."""

    content: Content
    places: tuple[Node | tuple[str, ...], ...]
    left: Bound
    time_ms: int = 0
    late: tuple[Call, ...] = ()

    def key(self) -> Key:
        places = tuple(place.number if isinstance(place, Node) else place for place in self.places)
        return (self.content.key, places, self.left, self.time_ms, self.late)


@dataclass(slots=True)
class Figures:
    """What an exploration came to."""

    program: str
    bound: str
    states: int = 0
    transitions: int = 0
    schedules: int = 0
    executions: int = 0
    places: int = 0
    ends: int = 0
    checked: int = 0
    named: dict[str, int] = field(default_factory=dict)


class Explorer:
    """Explores one program within one bound.

    Parameters
    ----------
    program : Program
        What runs.
    bound : Bound
        How much may go wrong.
    most_states : int, optional
        Give up above.
    """

    def __init__(self, program: Program, bound: Bound, most_states: int = 3_000_000) -> None:
        self.program, self.bound = program, bound
        self.figures = Figures(program.name, str(bound))
        self._names = tuple(program.processes)
        self._trees = [ProcessTree(name, code, 100 + i) for i, (name, code) in enumerate(program.processes.items())]
        # States by number, in the order in which they were met: who came before and by which step, and who comes next.
        self._numbers: dict[Key, int] = {}
        self._came_from: list[tuple[int, str]] = []
        self._children: list[tuple[int, ...]] = []
        # By content, by what the processes were told, and by time: the names of the ends that were met.
        self.checked: dict[tuple[int, tuple[tuple[str, ...], ...], int], set[str]] = {}
        self._most_states = most_states

    def run(self) -> Figures:
        """Explore everything.

        Raises
        ------
        AssertionError
            A promise is broken, an end is missing, or a process fails; the notes say by which steps.
        """
        try:
            first = self._prepared()
            self._explore(first)
        finally:
            for tree in self._trees:
                tree.close()
        figures = self.figures
        figures.states = len(self._came_from)
        figures.schedules = self._count_schedules()
        figures.executions = sum(tree.executions for tree in self._trees)
        figures.places = sum(tree.nodes for tree in self._trees)
        figures.checked = len(self.checked)
        missing = self.program.ends - figures.named.keys()
        assert not missing, f"{self.program.name}: ends that were never reached: {sorted(missing)}"
        return figures

    def _prepared(self) -> State:
        """Let each process get ready, one after the other."""
        content = Content.of(self.program.base().objects)
        places: list[Node | tuple[str, ...]] = []
        for tree in self._trees:
            node = tree.root
            while node.call is not None and node.call.operation is not None:
                answer, content = content.answer(node.call, 0)
                node = tree.after(node, answer)
            if node.failure is not None:
                raise node.failure
            places.append(node.told if node.call is None else node)
        return State(content, tuple(places), self.bound, self.program.begins_ms)

    def _explore(self, first: State) -> None:
        stack = [(self._met(first, 0, "")[0], first)]
        while stack:
            number, state = stack.pop()
            children: list[int] = []
            try:
                for label, child in self._steps(state):
                    met, is_new = self._met(child, number, label)
                    children.append(met)
                    if is_new:
                        stack.append((met, child))
                if not children:
                    self._end(state)
            except BaseException as error:
                error.add_note(f"program: {self.program.name}; bound: {self.bound}\n" + "\n".join(self._trace(number)))
                raise
            self._children[number] = tuple(children)
            self.figures.transitions += len(children)
            assert len(self._came_from) <= self._most_states, "too many states: take a smaller bound"

    def _met(self, state: State, before: int, label: str) -> tuple[int, bool]:
        """Return a state's number, and whether it is met for the first time."""
        number = self._numbers.setdefault(state.key(), len(self._came_from))
        is_new = number == len(self._came_from)
        if is_new:
            self._came_from.append((before, sys.intern(label)))
            self._children.append(())
        return number, is_new

    # -- steps ------------------------------------------------------------------------------

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        running = [index for index, place in enumerate(state.places) if isinstance(place, Node)]
        for index in running:
            yield from self._calls(state, index)
            if state.left.kills:
                yield f"{self._names[index]} is killed", self._killed(state, index)
        if state.left.jumps and running:
            left = replace(state.left, jumps=state.left.jumps - 1)
            yield "time passes", replace(state, left=left, time_ms=state.time_ms + self.program.jump_ms)
        for call in state.late:
            _, content = state.content.answer(call, state.time_ms)
            rest = tuple(each for each in state.late if each is not call)
            yield f"lands late: {call}", replace(state, content=content, late=rest)

    @staticmethod
    def _is_there(state: State, path: str) -> bool:
        return state.content.objects.get(path) is not None

    @staticmethod
    def _place(state: State, index: int) -> Node:
        place = state.places[index]
        assert isinstance(place, Node)
        return place

    def _calls(self, state: State, index: int) -> Iterator[tuple[str, State]]:
        """Yield what may come of a process's call."""
        call, left = self._place(state, index).call, state.left
        assert call is not None
        label = f"{self._names[index]} {call}"
        answer, content = state.content.answer(call, state.time_ms)
        done = replace(state, content=content)
        yield label, self._moved(done, index, answer)
        if call.operation is None:
            return
        if left.kills and content is not state.content:
            yield f"{label}, and is killed", self._killed(done, index)
        for fault in self._faults(state, call):
            yield f"{label}: {fault.name}", self._faulty(state, index, call, fault)
        if left.jumps and call.operation in WRITES:
            later = state.time_ms + self.program.jump_ms
            slow = replace(done, left=replace(left, jumps=left.jumps - 1), time_ms=later)
            yield f"{label}: slowly", self._moved(slow, index, replace(answer, time_ms=later))

    def _faulty(self, state: State, index: int, call: Call, fault: Fault) -> State:
        """Return the state after a process's call has met a fault."""
        left = replace(state.left, faults=state.left.faults - 1)
        if fault is Fault.LATE_LANDING:
            lost = Answer(None, state.time_ms, lost=True, landed=True)
            return self._moved(replace(state, left=left, late=(*state.late, call)), index, lost)
        answer, content = state.content.answer(call, state.time_ms, fault)
        return self._moved(replace(state, content=content, left=left), index, answer)

    def _faults(self, state: State, call: Call) -> tuple[Fault, ...]:
        if not state.left.faults:
            return ()
        commits = call.operation is Operation.PUT_IF_ABSENT
        if not commits:
            late = (Fault.LATE_LANDING,) if call.operation in WRITES else ()
            return (*_ANY_CALL[: 2 if late else 1], *late) if state.left.any_call else ()
        lost = () if self._is_there(state, call.path) else (Fault.EXISTS_LOST, Fault.CONFLICT_409)
        return (*_ANY_CALL, Fault.LATE_LANDING, *lost)

    def _moved(self, state: State, index: int, answer: Answer) -> State:
        """Return the state after a process has got an answer."""
        node = self._trees[index].after(self._place(state, index), answer)
        if node.failure is not None:
            node.failure.add_note(f"in process {self._names[index]}, by its last step")
            raise node.failure
        return self._placed(state, index, node.told if node.call is None else node)

    def _killed(self, state: State, index: int) -> State:
        told = (*self._place(state, index).told, "killed")
        return self._placed(replace(state, left=replace(state.left, kills=state.left.kills - 1)), index, told)

    @staticmethod
    def _placed(state: State, index: int, place: Node | tuple[str, ...]) -> State:
        return replace(state, places=(*state.places[:index], place, *state.places[index + 1 :]))

    # -- ends -------------------------------------------------------------------------------

    def _end(self, state: State) -> None:
        """Check an end, unless an equal one was checked."""
        told = {name: place for name, place in zip(self._names, state.places, strict=True) if isinstance(place, tuple)}
        looks = (state.content.key, tuple(told.values()), state.time_ms)
        if looks not in self.checked:
            objects = MemoryObjects()
            objects.restore(state.content.objects.snapshot())
            self.checked[looks] = self.program.check(End(objects, state.time_ms, told))
        self.figures.ends += 1
        for name in self.checked[looks]:
            self.figures.named[name] = self.figures.named.get(name, 0) + 1

    def _trace(self, number: int) -> list[str]:
        labels = []
        while number:
            number, label = self._came_from[number]
            labels.append(label)
        return labels[::-1]

    def _count_schedules(self) -> int:
        """Count the ways from the first state to an end."""
        ways: dict[int, int] = {}
        stack = [0]
        while stack:
            number = stack[-1]
            waiting = [child for child in self._children[number] if child not in ways]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            ways[number] = sum(ways[child] for child in self._children[number]) or 1
        return ways[0]
