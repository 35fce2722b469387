"""Texts that are no snapshots: each is refused, and what is wrong with it is named."""

import json
import sys

import pytest

from pregel import InMemorySaver
from pregel.errors import DecodeError
from pregel.graph.flow.context import FlowContext
from tests.flow.flows import Log, branches


def changed(told, *path, value):
    """Return a text with another value somewhere."""
    copy = json.loads(json.dumps(told))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(copy)


def paused():
    ctx = FlowContext("job")
    branches(Log()).run(ctx)
    return json.loads(ctx.to_json())


ROWS = ("graphs", "branches", "rows")
BROKEN = {
    "a later format": (("format",), 2, "a newer version"),
    "a format that is a text": (("format",), "1", r"format '1' \(str\)"),
    "a format that is a bool": (("format",), True, "format True"),
    "something more": (("more",), 1, "a snapshot has format, id, data"),
    "an id that can't be one": (("id",), "", "the id of the snapshot"),
    "data that is a list": (("data",), [], "'data'"),
    "a reserved key": (("data", "@x"), 1, "reserved"),
    "a class of a module": (("data", "k"), {"$type": "os:system", "v": ["true"]}, r"data\['k'\]: .*not registered"),
    "a visit without a step": (("trace", "visits"), [{"graph": "g"}], "no line of a trace"),
    "a visit of other types": (
        ("trace", "visits"),
        [{"graph": "g", "node": "n", "step": "1", "status": "done", "duration": None}],
        "no line of a trace",
    ),
    "private data of a hostile class": (("trace", "private", "@x"), {"$type": "os:system", "v": []}, "not registered"),
    "graphs that are a list": (("graphs",), [], "'graphs'"),
    "a graph of another name": (("graphs", "a/b"), {"resources": [], "rows": []}, "no graph can be named so"),
    "the context's own thread": (("graphs", "@context"), {"resources": [], "rows": []}, "no graph can be named so"),
    "data beside the data": (("trace", "private", "data/x"), 1, "begin with one '@'"),
    "the trace beside the trace": (("trace", "private", "@trace"), 1, "begin with one '@'"),
    "no rows": ((*ROWS[:2],), {"resources": []}, "'rows'"),
    "not one row": (ROWS, [], "has no rows"),
    "a branch that ended and has no row": ((*ROWS, 0, "tasks"), {}, "'b' .* has finished, and its row is missing"),
    "a row that is no base64": ((*ROWS, 0, "checkpoints", "2"), "?", "base64"),
    "a row that is no row": ((*ROWS, 0, "checkpoints", "2"), "AAAA", "no row of pregel's"),
    "no checkpoint": ((*ROWS, 0, "checkpoints"), {}, "has no checkpoint"),
    "a path of numbers": ((*ROWS, 0, "namespace"), [1], "no path"),
    "a step that is none": ((*ROWS, 0, "checkpoints"), {"two": "AAAA"}, "no number of a superstep"),
    "another id": (("id",), "other", "belongs elsewhere"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_text_that_is_no_snapshot_is_refused(name):
    path, value, why = BROKEN[name]
    told, saver = paused(), InMemorySaver()
    FlowContext.from_json(json.dumps(told), InMemorySaver()).close()  # loads what reading needs
    before = set(sys.modules)
    with pytest.raises((DecodeError, ValueError), match=why):
        FlowContext.from_json(changed(told, *path, value=value), saver)
    assert set(sys.modules) == before
    assert saver.threads() == []


def test_a_row_that_was_swapped_or_cut_is_refused():
    told = paused()
    tasks = told["graphs"]["branches"]["rows"][0]["tasks"]
    assert len(tasks) == 2
    first, second = tasks
    tasks[first], tasks[second] = tasks[second], tasks[first]
    with pytest.raises(DecodeError, match="belongs elsewhere"):
        FlowContext.from_json(json.dumps(told))
    tasks[first] = tasks[second][:40]
    with pytest.raises(DecodeError):
        FlowContext.from_json(json.dumps(told))


@pytest.mark.parametrize("text", ["", "[]", "{}", "5", '{"format": 1}', None])
def test_something_else_is_refused(text):
    with pytest.raises(DecodeError):
        FlowContext.from_json(text)
