"""What a log costs that grows: one message of 200 bytes a superstep, stored in SQLite.

Beside the time, each measurement gives the bytes on disk once what was written ahead is brought in, against the bytes
of the messages themselves; what a late superstep costs against an early one; and how long reading the state back takes.
All are at NORMAL: the disk's own time would hide what grows.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated, Any, Literal, TypedDict

import msgpack

from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Growth, MeasureName, Prepared, Target, Workload, equals
from benchmarks.workloads import stores

Form = Literal["operator.add", "add_messages", "Topic", "DeltaChannel"]

SIZES = (200, 1000, 2000)
#: From here on LangGraph's lists are measured with `--full` only.
LARGE = 2000
BYTES = 200
TEXTS = [f"{number:06}: ".ljust(BYTES, "abcdefghijklmnopqrstuvwxyz"[number % 26]) for number in range(SIZES[-1])]
#: The early supersteps, by number; the late ones are as many at the end.
EARLY = slice(150, 250)
#: How often the state is read back, for a median.
READS = 5
SYNCHRONOUS = "NORMAL"
OPENERS: dict[str, stores.Opener] = {
    "ours": partial(stores.ours_sqlite, synchronous=SYNCHRONOUS),
    "langgraph": partial(stores.langgraph_sqlite, synchronous=SYNCHRONOUS),
}


def extend(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    """Add up as `operator.add` does: LangGraph's delta channel takes all updates at once."""
    return [*state, *chain.from_iterable(writes)]


def _channel(name: EngineName, form: Form) -> Any:
    match form, name:
        case "operator.add", _:
            return operator.add
        case "add_messages", _:
            return import_module("pregel" if name == "ours" else "langgraph.graph").add_messages
        case "Topic", _:
            return import_module("pregel.channels").Topic(str, accumulate=True)
        case _:
            return import_module("langgraph.channels").DeltaChannel(extend)


def _message(name: EngineName, form: Form) -> Callable[[str], Any]:
    """What makes a message of a text: in each engine its own class, or the text itself."""
    if form != "add_messages":
        return str
    return import_module("langchain_core.messages" if name == "langgraph" else "pregel.graph.messages").HumanMessage


def _text(message: Any) -> str:
    return message if isinstance(message, str) else message.content


class Log:
    """Runs that append a message a superstep, and note when each superstep began."""

    def __init__(self, name: EngineName, form: Form, steps: int) -> None:
        self.api = api(name)
        self.steps = steps
        self.message = _message(name, form)
        self.schema = TypedDict("Log", {"log": Annotated[list, _channel(name, form)]})
        self.begun: list[float] = []
        self.runs = stores.Runs(self.build, OPENERS[name], {"log": []}, steps, durability="sync")

    def build(self, saver: Any) -> Any:
        """Compile the graph."""
        end, steps = self.api.END, self.steps
        builder = self.api.StateGraph(self.schema)
        builder.add_node("append", self.append)
        builder.add_edge(self.api.START, "append")
        builder.add_conditional_edges(
            "append", lambda state: "append" if len(state["log"]) < steps else end, ["append", end]
        )
        return builder.compile(checkpointer=saver)

    def append(self, state: Any) -> dict[str, Any]:
        """The node."""
        number = len(state["log"])
        if not number:
            self.begun.clear()
        self.begun.append(perf_counter())
        return {"log": [self.message(TEXTS[number])]}

    def check(self, answer: tuple[dict, dict]) -> None:
        """See whether all messages are there, in the answer and in the store."""
        equals(TEXTS[: self.steps])([_text(message) for message in answer[1]["log"]])
        self.runs.check_stored(answer)

    def measures(self, answer: tuple[dict, dict]) -> Mapping[MeasureName, float]:
        """Look at the file, at the last run's clock, and at how long its state takes to read."""
        found = _on_disk(self.runs.path, self.steps)
        found["read"] = _reading(partial(self.runs.graph.get_state, answer[0]))
        if self.steps >= EARLY.stop:
            took = [after - before for before, after in pairwise(self.begun)]
            found["late"] = median(took[EARLY.start - EARLY.stop :]) / median(took[EARLY])
        return found


class Bare:
    """The same with a table and a row a message."""

    def __init__(self, form: Form, steps: int) -> None:
        self.steps = steps
        self.message = _message("floor", form)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Keep a new file open."""
        with stores.new_file() as self.path, stores.bare_sqlite(self.path, SYNCHRONOUS) as self.connection:
            yield

    def call(self) -> None:
        """Store all messages."""
        pack = msgpack.Packer().pack
        for text in TEXTS[: self.steps]:
            self.connection.execute(stores.INSERT, (pack(text),))

    def read(self) -> list[Any]:
        """Read what was stored."""
        rows = self.connection.execute("SELECT content FROM change ORDER BY id")
        return [self.message(msgpack.unpackb(content)) for (content,) in rows]

    def measures(self, _: None) -> Mapping[MeasureName, float]:
        """Look at the file, and at how long the messages take to read."""
        return {**_on_disk(self.path, self.steps), "read": _reading(self.read)}


def _on_disk(path: Path, messages: int) -> dict[MeasureName, float]:
    size = stores.bytes_on_disk(path)
    return {"disk": size / 1e6, "times raw": size / (messages * BYTES)}


def _reading(read: Callable[[], Any]) -> float:
    """Milliseconds that one reading takes."""
    took = []
    for _ in range(READS):
        start = perf_counter()
        read()
        took.append(perf_counter() - start)
    return median(took) * 1e3


def engine(name: EngineName, form: Form, steps: int) -> Prepared:
    log = Log(name, form, steps)
    return Prepared(
        call=log.runs.call, units=steps, check=log.check, around=log.runs.around, once=True, measures=log.measures
    )


def floor(form: Form, steps: int) -> Prepared:
    bare = Bare(form, steps)

    def check(_: None) -> None:
        equals(TEXTS[:steps])([_text(message) for message in bare.read()])

    return Prepared(call=bare.call, units=steps, check=check, around=bare.around, once=True, measures=bare.measures)


def _case(form: Form, steps: int) -> Case:
    needs = stores.LANGGRAPH_SQLITE
    theirs = [Contender("langgraph", partial(engine, "langgraph", form, steps), needs=needs, full=steps >= LARGE)]
    if form == "operator.add":
        theirs.append(Contender("langgraph", partial(engine, "langgraph", "DeltaChannel", steps), "delta", needs=needs))
    targets = [Target(3, "times-raw"), Target(2, "times-read")]
    if steps >= EARLY.stop:
        targets.append(Target(1.5, "late"))
    return Case(
        _label(form, steps),
        (
            Contender("ours", partial(engine, "ours", form, steps)),
            *(theirs if form != "Topic" else ()),
            Contender("floor", partial(floor, form, steps)),
        ),
        targets={"ours": tuple(targets)},
        quick=steps == SIZES[0],
        note="LangGraph writes 400 to 600 MB a run here, but for its delta channel; it is measured with --full only."
        if steps >= LARGE and form != "Topic"
        else "",
        size=steps,
        form=form,
    )


def _label(form: Form, steps: int) -> str:
    return f"{form}, {steps} messages"


FORMS: tuple[Form, ...] = ("operator.add", "add_messages", "Topic")

WORKLOAD = Workload(
    name="grow",
    about=f"One node appends a message of {BYTES} bytes and runs again, one run on SQLite, at {SYNCHRONOUS}; `invoke`, "
    "`sync`. Disk: the file with its log brought in, and how many times the messages' own bytes that is. Late against "
    "early: the supersteps at the end and those around the 200th. Read: `get_state`; the floor's is reading its rows. "
    "`langgraph delta` is its beta `DeltaChannel`. Floor: a table, a row and a commit a message.",
    unit="message",
    cases=tuple(_case(form, steps) for form in FORMS for steps in SIZES),
    growth=tuple(Growth("ours", _label(form, SIZES[0]), _label(form, SIZES[-1]), at_most=1.5) for form in FORMS),
)
