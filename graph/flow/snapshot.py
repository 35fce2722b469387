"""A context as a JSON text that people can read, and back: data, trace, and where each graph stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pregel.errors import ConcurrentRunError, DecodeError, EncodeError
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import ContextBusyError, ContextKeyError
from pregel.graph.flow.home import Home, Visit, check_key
from pregel.graph.flow.open import opened
from pregel.graph.flow.parts import DATA, TRACE, key_field
from pregel.graph.flow.standing import graphs_of
from pregel.graph.flow.stored import checked, put_back, rows_of, taken_out
from pregel.graph.flow.storing import CODEC
from pregel.graph.flow.tagged import from_tree, parsed, to_tree
from pregel.ids import check_id
from pregel.text import show

if TYPE_CHECKING:
    from pregel.checkpoint.base import Checkpointer, Write

__all__ = ["FORMAT", "from_json", "to_json"]

#: The version of the format; one that was given is never given to another shape.
FORMAT: Final = 1
KEYS: Final = ("format", "id", "data", "trace", "graphs", "resources")
VISIT: Final = Visit._fields


def to_json(ctx: FlowContext) -> str:
    """Return a context as JSON; see `FlowContext.to_json`."""
    home = ctx.home
    if ctx.task is not None or home.running is not None:
        raise ContextBusyError(
            f"context {home.id!r} can't be told as JSON while graph {home.running!r} runs on it: what it holds is "
            "settled when the run ends or pauses"
        )
    graphs = {name: part for name in graphs_of(home) if (part := graph_part(home, name)) is not None}
    told = {
        "format": FORMAT,
        "id": home.id,
        "data": {key: to_tree(value, CODEC, f"data[{key!r}]") for key, value in home.values.items()},
        "trace": {
            "visits": [visit._asdict() for visit in home.trace],
            "private": {name: to_tree(value, CODEC, name) for name, value in home.private.items()},
        },
        "graphs": graphs,
        "resources": sorted({name for part in graphs.values() if part["due"] for name in part["resources"]}),
    }
    try:
        return json.dumps(told, ensure_ascii=False, allow_nan=False, indent=1)
    except RecursionError:
        raise EncodeError(f"context {home.id!r} holds a value that is nested too deeply for JSON") from None


def graph_part(home: Home, graph: str) -> dict[str, Any] | None:
    """Return where a graph stands on a context, or None where nothing is stored of it."""
    part = taken_out(home.storage(), home.thread(graph), CODEC, lambda field: is_handed_over(home, field))
    return None if part is None else {**part, "resources": sorted(home.needs.get(graph, ()))}


def is_handed_over(home: Home, field: str) -> bool:
    """Return whether a run that goes on is given a field by the context."""
    return field in {DATA, TRACE} or field in home.private or field.startswith(key_field(""))


def from_json(text: str, checkpointer: Checkpointer | None = None) -> FlowContext:
    """Return the context that a text tells of; see `FlowContext.from_json`."""
    told = parsed(text)
    if type(told) is not dict or "format" not in told:
        raise DecodeError(f"the text is no snapshot of a context, but {show(told)}")
    if told["format"] != FORMAT or type(told["format"]) is not int:
        raise DecodeError(
            f"the snapshot has format {show(told['format'])}, and this version of pregel reads {FORMAT}: a newer "
            "version wrote it"
        )
    if told.keys() != set(KEYS):
        raise DecodeError(f"a snapshot has {', '.join(KEYS)}, and this one {', '.join(told)}")
    trace = checked(told, "trace", dict)
    name = check_id(told["id"], "the id of the snapshot")
    graphs = checked(told, "graphs", dict)
    read = Home(name)
    read.values = {
        known_key(key): from_tree(tree, CODEC, f"data[{key!r}]") for key, tree in checked(told, "data", dict).items()
    }
    read.private = {
        known_field(field): from_tree(tree, CODEC, field) for field, tree in checked(trace, "private", dict).items()
    }
    read.trace = [visit_of(each) for each in checked(trace, "visits", list)]
    for graph in graphs:
        check_graph(graph)
    read.needs = {graph: tuple(map(str, checked(part, "resources", list))) for graph, part in graphs.items()}
    rows = {read.thread(graph): rows_of(part, read.thread(graph)) for graph, part in graphs.items()}
    return FlowContext.of_home(put_down(read, rows, checkpointer))


def put_down(read: Home, rows: dict[str, list[Write]], checkpointer: Checkpointer | None) -> Home:
    """Return what was read as a context with its runs: in memory, or in a store, where it is open then.

    Raises:
        ContextBusyError: Somebody has the context open there.
        ConcurrentRunError: The context, or a run of it, is stored there already.
    """
    if checkpointer is None:
        home = read
    else:
        home = opened(read.id, checkpointer)
        if home.ledger.head is not None:
            home.ledger.close()
            raise ConcurrentRunError(
                f"context {read.id!r} is stored there already, and a snapshot takes the place of nothing: open it, or "
                "restore the snapshot into another store"
            )
        home.values, home.private, home.trace, home.needs = read.values, read.private, read.trace, read.needs
    done: list[str] = []
    try:
        for thread, writes in rows.items():
            put_back(home.storage(), thread, writes)
            done.append(thread)
        if home.ledger is not None:
            home.ledger.save(home)
    except BaseException:
        for thread in done:
            home.storage().delete_thread(thread)
        if home.ledger is not None:
            home.ledger.close()
        raise
    return home


def known_key(key: str) -> str:
    """Return a key of the data.

    Raises:
        DecodeError: It is reserved.
    """
    try:
        return check_key(key)
    except ContextKeyError as error:
        raise DecodeError(f"the snapshot's data: {error}") from None


def known_field(name: str) -> str:
    """Return the name of what is kept beside the data.

    Raises:
        DecodeError: It is a key of the data, or a field of the context's own.
    """
    if name.startswith("@") and not name.startswith("@@") and name != TRACE:
        return name
    raise DecodeError(f"the snapshot keeps {show(name)} beside the data, where names begin with one '@'")


def check_graph(name: str) -> None:
    """Check the name of a graph.

    Raises:
        DecodeError: It can't be one.
    """
    if not name or "/" in name or name.startswith("@"):
        raise DecodeError(f"the snapshot has a run of a graph {show(name)}, and no graph can be named so")


def visit_of(told: Any) -> Visit:
    """Return a line of the trace.

    Raises:
        DecodeError: It is none.
    """
    if type(told) is dict and [*told] == [*VISIT]:
        kinds = [type(value) for value in told.values()]
        if kinds[:4] == [str, str, int, str] and kinds[4] in {float, int, type(None)}:
            return Visit(**told)
    raise DecodeError(f"{show(told)} is no line of a trace, which has {', '.join(VISIT)}")
