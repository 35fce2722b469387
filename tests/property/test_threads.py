"""Threads against a model: whatever is invoked, answered, edited and forked, plans and history are as foretold."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypedDict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pregel import END, START, Command, StateGraph
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidResumeError
from pregel.runtime import interrupt

ORDER = ("a", "b", "ask")


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int


def after_a(state: State) -> list[str]:
    """A multiple of 3 ends, one more asks and works, two more only work."""
    return [[END], ["b", "ask"], ["b"]][state["n"] % 3]


def after_ask(state: State) -> Literal["a", "__end__"]:
    return "a" if state["log"][-1:] == ["again"] else END


def compiled(saver):
    """Return a -> (b, ask), where ask may go back to a."""
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"n": state["n"] + 1, "log": [f"a{state['n']}"]})
    builder.add_node("b", lambda state: {"log": [f"b{state['n']}"]})
    builder.add_node("ask", lambda state: {"log": [interrupt(state["n"])]})
    builder.add_edge(START, "a").add_conditional_edges("a", after_a, ["b", "ask", END])
    return builder.add_conditional_edges("ask", after_ask).compile(saver)


# -- the model -------------------------------------------------------------------------------------------------------


@dataclass
class Point:
    """A checkpoint: the state, and what is due by task id, with what each task has come to since."""

    branch: int
    step: int
    values: dict
    due: dict
    source: str
    parent: tuple | None
    dropped: list = field(default_factory=list)
    #: By task: its updates, or the question that it asks.
    came_to: dict = field(default_factory=dict)

    @property
    def id(self):
        return (self.branch, self.step)


class Model:
    """What a thread is, without storage: all its checkpoints in the order of writing."""

    def __init__(self):
        self.points = []

    def head(self, branch):
        return [point for point in self.points if point.branch == branch][-1]

    def enter(self, point):
        """Return where a run begins that names a checkpoint: there, or where it is the start of a new branch."""
        if point is self.head(point.branch):
            return point
        branch = max(each.branch for each in self.points) + 1
        return self.write(Point(branch, point.step, point.values, dict(point.due), "fork", point.id, point.dropped))

    def write(self, point):
        self.points.append(point)
        return point

    def follow(self, before, source, values, names, dropped=()):
        """Write the checkpoint after one, at which these nodes are due."""
        step = before.step + 1
        names = [name for name in ORDER if name in names]
        due = {f"{step + 1}:{place}:{name}": name for place, name in enumerate(names)}
        before.came_to = {}
        return self.write(Point(before.branch, step, values, due, source, before.id, list(dropped)))

    def given(self, point, values):
        """Take a new input."""
        if point is None:
            values = {"log": [], **values}
            return self.run(self.write(Point(0, 0, values, {"1:0:a": "a"}, "input", None)))
        point = self.enter(point)
        dropped = dict.fromkeys(point.due.values())
        return self.run(self.follow(point, "input", {**point.values, **values}, ["a"], dropped))

    def edited(self, point, update, as_node):
        """Take an edit of the state."""
        point = self.enter(point)
        values = folded(point.values, [update])
        if as_node is None:
            kept = point.came_to
            after = self.follow(point, "update", values, [])
            after.due, after.came_to = dict(point.due), kept
            return
        names = [] if as_node == END else follows(as_node, values)
        self.follow(point, "update", values, names, dict.fromkeys(point.due.values()))

    def question(self, point):
        """Return the task that waits for an answer, and its question."""
        return next(((task, each) for task, each in point.came_to.items() if isinstance(each, str)), None)

    def run(self, point, answer=None):
        """Run supersteps until nothing is due or something is asked."""
        while point.due:
            for task, name in point.due.items():
                asked = point.came_to.get(task)
                if asked is None and name == "ask":
                    prefix = f"branch-{point.branch}|" if point.branch else ""
                    point.came_to[task] = f"{prefix}{task}#0"
                elif asked is None:
                    n = point.values["n"]
                    point.came_to[task] = {"n": n + 1, "log": [f"a{n}"]} if name == "a" else {"log": [f"b{n}"]}
                elif isinstance(asked, str) and answer is not None:
                    point.came_to[task], answer = {"log": [answer]}, None
            if self.question(point):
                return
            results = [(name, point.came_to[task]) for task, name in point.due.items()]
            values = folded(point.values, [update for _, update in results])
            names = [target for name, update in results for target in follows(name, folded(point.values, [update]))]
            point = self.follow(point, "loop", values, names)


def folded(values, updates):
    """Return a state with updates in it."""
    values = {**values, "log": [*values["log"], *(item for update in updates for item in update.get("log", ()))]}
    for update in updates:
        values["n"] = update.get("n", values["n"])
    return values


def follows(name, seen):
    """Return what follows a node that sees this state."""
    if name == "a":
        return {0: [], 1: ["b", "ask"], 2: ["b"]}[seen["n"] % 3]
    return ["a"] if name == "ask" and seen["log"][-1:] == ["again"] else []


# -- the machine -----------------------------------------------------------------------------------------------------


UPDATES = st.one_of(
    st.fixed_dictionaries({"n": st.integers(0, 8)}), st.fixed_dictionaries({"log": st.lists(st.sampled_from("xyz"))})
)
INPUTS = st.fixed_dictionaries({"n": st.integers(0, 8)}, optional={"log": st.just(["in"])})
ANSWERS = st.sampled_from(["again", "no", "yes"])


def seen_input(point, given):
    """Return what an input makes of the state: the log grows."""
    base = [] if point is None else point.values["log"]
    return {**given, "log": [*base, *given.get("log", [])]}


class Threads(RuleBasedStateMachine):
    make = InMemorySaver

    def __init__(self):
        super().__init__()
        self.saver = type(self).make()
        self.graph = compiled(self.saver)
        self.model = Model()
        self.told = {}

    def teardown(self):
        self.saver.close()

    def config(self, point=None):
        name = {} if point is None else {"checkpoint_id": f"{point.branch}.{point.step}"}
        return {"configurable": {"thread_id": "t", **name}}

    def point(self, place):
        return self.model.points[place % len(self.model.points)]

    @property
    def newest(self):
        return self.model.points[-1]

    @initialize(given=INPUTS)
    def begin(self, given):
        self.graph.invoke(given, self.config())
        self.model.given(None, seen_input(None, given))

    @rule(given=INPUTS)
    def invoke(self, given):
        self.graph.invoke(given, self.config())
        self.model.given(self.newest, seen_input(self.newest, given))

    @rule()
    def go_on(self):
        self.graph.invoke(None, self.config())
        self.model.run(self.newest)

    @precondition(lambda self: self.model.question(self.newest))
    @rule(answer=ANSWERS, by_id=st.booleans())
    def answer(self, answer, by_id):
        _, question = self.model.question(self.newest)
        self.graph.invoke(Command(resume={question: answer} if by_id else answer), self.config())
        self.model.run(self.newest, answer)

    @precondition(lambda self: not self.model.question(self.newest))
    @rule(answer=ANSWERS)
    def answer_nothing(self, answer):
        with pytest.raises(InvalidResumeError):
            self.graph.invoke(Command(resume=answer), self.config())

    @rule(update=UPDATES, as_node=st.sampled_from([None, "a", "b", "ask"]))
    def edit(self, update, as_node):
        self.graph.update_state(self.config(), update, as_node)
        self.model.edited(self.newest, update, as_node)

    @rule()
    def end(self):
        self.graph.update_state(self.config(), None, END)
        self.model.edited(self.newest, {}, END)

    @rule(place=st.integers(0, 10_000), given=INPUTS)
    def fork_with_input(self, place, given):
        point = self.point(place)
        self.graph.invoke(given, self.config(point))
        self.model.given(point, seen_input(point, given))

    @rule(place=st.integers(0, 10_000), update=UPDATES, as_node=st.sampled_from([None, "a", "b", "ask"]))
    def fork_with_edit(self, place, update, as_node):
        point = self.point(place)
        self.graph.update_state(self.config(point), update, as_node)
        self.model.edited(point, update, as_node)

    @rule(place=st.integers(0, 10_000))
    def replay(self, place):
        point = self.point(place)
        if point.due:  # a finished checkpoint is replayed by doing nothing
            self.graph.invoke(None, self.config(point))
            self.model.run(self.model.enter(point))

    @rule()
    def restart(self):
        self.graph = compiled(self.saver)

    @invariant()
    def the_thread_stands_where_the_model_does(self):
        if not self.model.points:
            return
        point = self.newest
        shown = self.graph.get_state(self.config())
        assert shown.config == self.config(point)
        assert [(task.id, task.name) for task in shown.tasks] == [*point.due.items()]
        done = {task for task, each in point.came_to.items() if isinstance(each, dict)}
        assert list(shown.next) == [name for task, name in point.due.items() if task not in done]
        question = self.model.question(point)
        assert [each.id for each in shown.interrupts] == ([] if question is None else [question[1]])
        assert {task.id for task in shown.tasks if task.result is not None} == done

    @invariant()
    def history_is_what_it_was(self):
        history = [*self.graph.get_state_history(self.config())][::-1]
        assert len(history) == len(self.model.points)
        for shown, point in zip(history, self.model.points, strict=True):
            parent = None if point.parent is None else Point(*point.parent, {}, {}, "", None)
            assert shown.config == self.config(point)
            assert shown.values == point.values
            assert shown.parent_config == (None if parent is None else self.config(parent))
            dropped = {"dropped": point.dropped} if point.dropped else {}
            assert shown.metadata == {"source": point.source, "step": point.step, **dropped}
            lasting = (shown.values, shown.created_at, [(task.id, task.name) for task in shown.tasks])
            assert self.told.setdefault(point.id, lasting) == lasting


class SqliteThreads(Threads):
    make = staticmethod(lambda: SqliteSaver(":memory:"))


SIZE = settings.default.max_examples  # of the profile at hand
Threads.TestCase.settings = settings(max_examples=SIZE // 4, stateful_step_count=20)
SqliteThreads.TestCase.settings = settings(max_examples=SIZE // 7, stateful_step_count=20)
TestInMemory = Threads.TestCase
TestSqlite = SqliteThreads.TestCase
