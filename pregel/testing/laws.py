"""The laws of a reducer, and a check that looks for operands which break one.

The engine relies on them: it applies a reducer to a value that other tasks still read, again when a run is resumed,
and to all updates of a superstep at once where the reducer has a `fold`. A reducer that breaks a law works in a small
test and gives another state in a replay.

`check_reducer` takes the laws one after the other, draws operands from the strategies given, and reports the first
law that is broken with the smallest operands it finds. It draws the same operands each time it is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from pregel.errors import InvalidUpdateError, PregelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis.strategies import SearchStrategy

__all__ = ["MissingExtraError", "ReducerLawError", "check_reducer"]


class MissingExtraError(PregelError, ImportError):
    """A package is missing that belongs to an extra of this library; the message names the extra."""


class ReducerLawError(PregelError, AssertionError):
    """A reducer breaks a law; the message names the law, the smallest operands found and the remedy."""

    def __init__(self, message: str, law: str = "") -> None:
        super().__init__(message)
        #: The law, as the message names it.
        self.law = law


def check_reducer(
    reducer: Callable[[Any, Any], Any],
    updates: SearchStrategy[Any],
    *,
    values: SearchStrategy[Any] | None = None,
    commutative: bool = False,
    max_examples: int = 100,
) -> None:
    """Look for operands for which a reducer breaks a law it has to keep.

    Operands and results are compared with `==`. A reducer may refuse operands by raising `InvalidUpdateError`.

    Args:
        reducer: A function, a partial or any callable object; its `prepare`, `fold` and `appends` are checked too.
        updates: A strategy of updates, as nodes return them.
        values: A strategy of values, as the state holds them. Without it values are drawn from `updates`, which is
            what a field without an initial value starts with.
        commutative: Whether the order of updates may not matter either.
        max_examples: How many operands are tried for each law.

    Raises:
        ReducerLawError: A law is broken.
        MissingExtraError: hypothesis is not installed.
    """
    subject = Subject(reducer, values_are_updates=values is None)
    for law in (
        COMPARABLE,
        TOTAL,
        PURE,
        DETERMINISTIC,
        IDEMPOTENT,
        FOLDS,
        APPENDS,
        *([COMMUTES] if commutative else []),
    ):
        if law.concerns(subject):
            search(law, subject, updates if values is None else values, updates, max_examples)
        if law is TOTAL and not subject.answered:
            raise ReducerLawError(
                f"{subject.name} refused all operands that were drawn, so no law could be checked. "
                f"The last refusal: {subject.refusal!r}\n"
                "Remedy: give check_reducer strategies of updates and values that the reducer takes",
                TOTAL.text,
            )


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a call came to. Two are the same if their values are equal or their errors are of one type."""

    value: Any = None
    error: Exception | None = None

    def same(self, other: Outcome) -> bool:
        """Return whether two calls came to the same."""
        if self.error is not None or other.error is not None:
            return type(self.error) is type(other.error)
        return bool(self.value == other.value)

    def __str__(self) -> str:
        return repr(self.value) if self.error is None else f"raises {self.error!r}"


def outcome(function: Callable[..., Any], *operands: Any) -> Outcome:
    """Call a function and return what that came to."""
    try:
        return Outcome(function(*operands))
    except Exception as error:  # noqa: BLE001 - which errors are allowed is a law of its own
        return Outcome(error=error)


class Subject:
    """A reducer under examination, called in the ways the engine calls it."""

    def __init__(self, reducer: Callable[[Any, Any], Any], *, values_are_updates: bool) -> None:
        self.reducer = reducer
        self.values_are_updates = values_are_updates
        self.prepares = hasattr(reducer, "prepare")
        self.folds = hasattr(reducer, "fold")
        self.appends = bool(getattr(reducer, "appends", False))
        self.prepare: Callable[[Any, Callable[[], str]], Any] = getattr(reducer, "prepare", unprepared)
        self.fold: Callable[[Any, list[Any]], Any] = getattr(reducer, "fold", self.in_a_row)
        #: How many calls gave a value, and the last one that was refused.
        self.answered = 0
        self.refusal: Exception | None = None

    def ready(self, value: Any, updates: list[Any]) -> tuple[Any, list[Any]]:
        """Return copies of drawn operands as the engine hands them on: prepared, and the same ones each time."""
        value, updates = deepcopy((value, updates))
        new_id = ids()
        if self.values_are_updates:
            value = self.prepare(value, new_id)
        return value, [self.prepare(update, new_id) for update in updates]

    @property
    def name(self) -> str:
        """The reducer's name for messages."""
        inner = self.reducer.func if isinstance(self.reducer, partial) else self.reducer
        name = getattr(inner, "__qualname__", type(inner).__qualname__)
        return name if inner is self.reducer else f"partial({name})"

    def in_a_row(self, value: Any, updates: Iterable[Any]) -> Any:
        """Apply the reducer update by update."""
        for update in updates:
            value = self.reducer(value, update)
        return value


def unprepared(update: Any, new_id: Callable[[], str]) -> Any:  # noqa: ARG001
    """Return an update as it is: what happens without `prepare`."""
    return update


def ids(prefix: str = "id") -> Callable[[], str]:
    """Return a function that gives one id after the other, as the engine does for a task."""
    numbers = count()
    return lambda: f"{prefix}-{next(numbers)}"


class Law(ABC):
    """One law: when it concerns a reducer, and what is wrong with given operands."""

    text: ClassVar[str]
    remedy: ClassVar[str]
    #: The fewest and the most updates of an example.
    sizes: ClassVar[tuple[int, int]] = (1, 1)

    def concerns(self, subject: Subject) -> bool:  # noqa: ARG002 - most laws concern every reducer
        """Return whether the reducer has to keep this law."""
        return True

    @abstractmethod
    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Return what is wrong for these operands as they were drawn, or None. The operands are not changed."""


class Comparable(Law):
    """Without it the other laws can't be checked."""

    text = "operands are compared by value"
    remedy = "give the type an `__eq__` that compares what it holds (a dataclass has one)"

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:  # noqa: ARG002
        """Compare operands with their copies."""
        for operand in (value, *updates):
            equal = outcome(lambda operand=operand: bool(operand == deepcopy(operand)))
            if equal.error is not None:
                return f"comparing {operand!r} with a copy of itself {equal}"
            if not equal.value:
                return f"{operand!r} is not equal to a copy of itself"
        return None


class Total(Law):
    """An error of another type is a defect of the reducer and not of the update."""

    text = "the reducer returns a value or raises InvalidUpdateError"
    remedy = (
        "handle these operands, refuse them with InvalidUpdateError, "
        "or draw others (values=... where values and updates are of different types)"
    )

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Prepare the update and apply it once."""
        found = outcome(lambda: subject.in_a_row(*subject.ready(value, updates)))
        if found.error is None:
            subject.answered += 1
            return None
        subject.refusal = found.error
        return None if isinstance(found.error, InvalidUpdateError) else f"it {found}"


class Pure(Law):
    """Other tasks and committed states hold the same objects."""

    text = "operands are left alone"
    remedy = "build a new value (left + right, {**left, **right}) in place of changing left or right"

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Compare the operands of each call with what they were."""
        raw = deepcopy(updates)
        outcome(subject.prepare, raw[0], ids())
        if raw != updates:
            return f"prepare changed its update to {raw[0]!r}"
        given = outcome(subject.ready, value, updates)
        if given.error is not None:
            return None
        left, rights = given.value
        before = deepcopy(given.value)
        for called, function, right in (("the reducer", subject.reducer, rights[0]), ("fold", subject.fold, rights)):
            outcome(function, left, right)
            if (left, rights) != before:
                return f"{called} changed its operands to {left!r} and {right!r}"
        return None


class Deterministic(Law):
    """A replay applies the updates again and has to reach the state that was."""

    text = "same operands, same result"
    remedy = (
        "leave clocks, random numbers, ids and counters to the node, "
        "or take ids from the second argument of the reducer's `prepare(update, new_id)`"
    )

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Prepare and apply twice."""
        first, second = (outcome(lambda: subject.in_a_row(*subject.ready(value, updates))) for _ in range(2))
        return None if first.same(second) else f"first {first}, then {second}"


class Idempotent(Law):
    """An update that passes through two graphs is prepared twice."""

    text = "prepare is idempotent"
    remedy = "let `prepare` leave alone what it has made: give an id only where there is none"

    def concerns(self, subject: Subject) -> bool:
        """Concerns reducers with `prepare`."""
        return subject.prepares

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:  # noqa: ARG002
        """Prepare what is prepared."""
        once = outcome(subject.prepare, deepcopy(updates[0]), ids("first"))
        if once.error is not None:
            return None
        twice = outcome(subject.prepare, deepcopy(once.value), ids("second"))
        return None if once.same(twice) else f"prepared once {once}, prepared again {twice}"


class Folds(Law):
    """Whether a superstep's updates come together or one by one is the engine's choice."""

    text = "fold equals the reducer applied in a row"
    remedy = "let `fold(left, updates)` give what reducer(reducer(left, first), second) gives, or leave it out"
    sizes = (1, 5)

    def concerns(self, subject: Subject) -> bool:
        """Concerns reducers with `fold`."""
        return subject.folds

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Do both."""
        if outcome(subject.ready, value, updates).error is not None:
            return None
        folded = outcome(subject.fold, *subject.ready(value, updates))
        applied = outcome(subject.in_a_row, *subject.ready(value, updates))
        return None if folded.same(applied) else f"fold: {folded}, in a row: {applied}"


class Appends(Law):
    """Of a log only the new end is stored."""

    text = "appends: the result begins with the old value"
    remedy = "only add at the end, or take `appends` away from the reducer"

    def concerns(self, subject: Subject) -> bool:
        """Concerns reducers that say so."""
        return subject.appends

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Look at the beginning of the result."""
        given = outcome(subject.ready, value, updates)
        if given.error is not None:
            return None
        left, (right,) = given.value
        result = outcome(subject.reducer, left, right)
        if result.error is not None:
            return None
        old = subject.ready(value, updates)[0]
        begin = outcome(lambda: result.value[: len(old)])
        return None if begin.same(Outcome(old)) else f"the old value is {old!r}, the result {result}"


class Commutes(Law):
    """Swapping neighbours reaches every order."""

    text = "commutative: the order of updates does not matter"
    remedy = "let the result depend on the set of updates alone, or call check_reducer without commutative=True"
    sizes = (2, 2)

    def fault(self, subject: Subject, value: Any, updates: list[Any]) -> str | None:
        """Apply two updates in both orders, to a value and, where a field can start so, to each other."""
        if outcome(subject.ready, value, updates).error is not None:
            return None

        def result(order: int, *, alone: bool) -> Outcome:
            left, rights = subject.ready(value, updates)
            first, *rest = rights[::order] if alone else [left, *rights[::order]]
            return outcome(subject.in_a_row, first, rest)

        for alone in (False, True) if subject.values_are_updates else (False,):
            forward, backward = result(1, alone=alone), result(-1, alone=alone)
            if not forward.same(backward):
                start = "a field that holds nothing" if alone else "the value"
                return f"from {start}, in this order: {forward}, in the other: {backward}"
        return None


COMPARABLE, TOTAL, PURE, DETERMINISTIC = Comparable(), Total(), Pure(), Deterministic()
IDEMPOTENT, FOLDS, APPENDS, COMMUTES = Idempotent(), Folds(), Appends(), Commutes()


def search(
    law: Law, subject: Subject, values: SearchStrategy[Any], updates: SearchStrategy[Any], max_examples: int
) -> None:
    """Draw operands and raise if some break the law.

    Raises:
        ReducerLawError: With the smallest such operands.
        MissingExtraError: hypothesis is not installed.
    """
    try:
        from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415 - an extra: only who checks needs it
        from hypothesis.errors import Flaky  # noqa: PLC0415
        from hypothesis.strategies import lists, tuples  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "check_reducer draws its examples with hypothesis, which is not installed: pip install 'pregel[testing]'"
        ) from error

    broken: list[tuple[tuple[Any, list[Any]], str]] = []

    @settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=(HealthCheck.too_slow,),
    )
    @given(tuples(values, lists(updates, min_size=law.sizes[0], max_size=law.sizes[1])))
    def examine(operands: tuple[Any, list[Any]]) -> None:
        fault = law.fault(subject, *operands)
        if fault is not None:
            broken.append((operands, fault))
            raise complaint(law, subject, operands, fault)

    try:
        examine()
    except ReducerLawError:
        raise complaint(law, subject, *broken[-1]) from None  # without the notes and frames of the search
    except Flaky:
        operands, fault = broken[-1]
        fault = f"{fault}\nand when the same call was made again: no trouble"
        raise complaint(DETERMINISTIC, subject, operands, fault) from None


def complaint(law: Law, subject: Subject, operands: tuple[Any, list[Any]], fault: str) -> ReducerLawError:
    """Return the error for operands that break a law."""
    value, updates = operands
    shown = f"update = {updates[0]!r}" if law.sizes == (1, 1) else f"updates = {updates!r}"
    return ReducerLawError(
        f'{subject.name} breaks the law "{law.text}" for\n'
        f"  value = {value!r}\n  {shown}\n{fault}\nRemedy: {law.remedy}",
        law.text,
    )
