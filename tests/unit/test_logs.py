"""What the logger `pregel` tells of runs, and the fields that records of other loggers get."""

import logging

import pytest
from opentelemetry import trace

from pregel import InMemorySaver
from pregel.observe import TRACING, TaskFields
from pregel.testing import fake_clock
from tests.spans import fails, graph_of, retried, traced


@pytest.fixture
def spans():
    """What is traced, while it is."""
    with traced() as made:
        yield made


def told(caplog):
    """Return what was logged: level, message without its time, and fields."""
    names = ("thread_id", "step", "node", "task")
    return [
        (
            record.levelname,
            record.getMessage().partition(" after ")[0],
            *(getattr(record, name) for name in names),
        )
        for record in caplog.records
        if record.name == "pregel"
    ]


def test_at_debug_runs_supersteps_and_tasks_are_logged_with_their_fields(door, caplog):
    caplog.set_level(logging.DEBUG, "pregel")

    door.invoke(graph_of(("a", lambda state: {"log": ["a"]})), {"log": []}, {"configurable": {"thread_id": "t"}})

    assert told(caplog) == [
        ("DEBUG", "run of graph 'g' begins", "t", None, None, None),
        ("DEBUG", "superstep 1 of graph 'g' begins: 'a'", "t", 1, None, None),
        ("DEBUG", "task 1:0:a of graph 'g' begins", "t", 1, "a", "1:0:a"),
        ("DEBUG", "task 1:0:a of graph 'g' ended", "t", 1, "a", "1:0:a"),
        ("INFO", "run of graph 'g' ended in superstep 1", "t", 1, None, None),
    ]


def test_at_info_there_is_one_record_for_each_run_and_at_warning_none(door, caplog):
    inner = graph_of(("deep", lambda state: {"log": ["deep"]}), name="inner")
    graph = graph_of(("a", lambda state: {"log": ["a"]}), ("inner", inner))
    caplog.set_level(logging.INFO, "pregel")
    door.invoke(graph, {"log": []})
    assert told(caplog) == [
        ("INFO", "run of graph 'inner' ended in superstep 1", None, 1, None, None),
        ("INFO", "run of graph 'g' ended in superstep 2", None, 2, None, None),
    ]
    caplog.clear()
    caplog.set_level(logging.WARNING, "pregel")
    door.invoke(graph, {"log": []})
    assert told(caplog) == []


def test_a_failure_is_told_with_its_error_and_no_louder_than_any_end(door, caplog):
    caplog.set_level(logging.DEBUG, "pregel")

    with pytest.raises(LookupError):
        door.invoke(graph_of(("a", fails)), {"log": []})

    ends = [record for record in caplog.records if "failed" in record.getMessage()]
    assert [record.levelname for record in ends] == ["DEBUG", "INFO"]
    assert all(record.getMessage().endswith(" ms: LookupError: nothing there") for record in ends)


def test_records_are_made_inside_the_span_that_they_are_of(door, spans, caplog):
    caplog.set_level(logging.DEBUG, "pregel")
    current = {}

    class Listener(logging.Handler):
        def emit(self, record):
            current[record.getMessage().partition(" after ")[0]] = trace.get_current_span().get_span_context().span_id

    listener = Listener()
    logging.getLogger("pregel").addHandler(listener)
    try:
        door.invoke(graph_of(("a", lambda state: {"log": ["a"]})), {"log": []})
    finally:
        logging.getLogger("pregel").removeHandler(listener)

    task = spans["task a"].context.span_id
    assert (current["task 1:0:a of graph 'g' begins"], current["task 1:0:a of graph 'g' ended"]) == (task, task)


def test_a_filter_gives_records_of_a_nodes_own_loggers_the_fields_of_its_task(door, caplog):
    caplog.set_level(logging.INFO, "mine")
    mine = logging.getLogger("mine")

    def node(state):
        mine.info("inside", extra={"node": "kept"} if state["log"] else None)
        return {"log": ["a"]}

    graph = graph_of(("a", node), ("b", node), checkpointer=InMemorySaver())
    caplog.handler.addFilter(fields := TaskFields())
    try:
        mine.info("outside")
        door.invoke(graph, {"log": []}, {"configurable": {"thread_id": "t"}})
    finally:
        caplog.handler.removeFilter(fields)

    found = [(each.thread_id, each.step, each.node, each.task) for each in caplog.records]
    assert found == [(None,) * 4, ("t", 1, "a", "t|1:0:a"), ("t", 2, "kept", "t|2:0:b")]


def test_an_attempt_that_is_followed_by_another_is_a_warning(door, caplog):
    with fake_clock():
        door.invoke(retried(2), {"log": []}, {"configurable": {"thread_id": "t"}})

    assert [record.getMessage() for record in caplog.records] == [
        "attempt 1 at task 1:0:a of graph 'g' failed, and the next one begins in 0.5 s: ConnectionError: refused",
        "attempt 2 at task 1:0:a of graph 'g' failed, and the next one begins in 1 s: ConnectionError: refused",
    ]
    assert [row[0] for row in told(caplog)] == ["WARNING", "WARNING"]
    assert told(caplog)[0][2:] == ("t", 1, "a", "1:0:a")


def test_logs_alone_make_no_spans(door, caplog):
    caplog.set_level(logging.DEBUG, "pregel")
    assert TRACING.tracer is None
    seen = []

    def node(state):
        seen.append(trace.get_current_span())
        return {"log": []}

    door.invoke(graph_of(("a", node)), {"log": []})
    assert seen == [trace.INVALID_SPAN]
