"""`Event` as users make it, and as JSON."""

import pytest
from pydantic import BaseModel, ValidationError

from pregel.graph.workflow import Event, EventActions, Runner, Workflow
from pregel.graph.workflow.folding import fold_events


class Point(BaseModel):
    x: int


@pytest.mark.parametrize("actions", [EventActions(state_delta={"b": 1}), {"stateDelta": {"b": 1}}, {"state_delta": {}}])
def test_a_state_that_is_given_twice_is_refused(actions):
    with pytest.raises(ValidationError, match="state_delta of an event is given twice"):
        Event(state={"a": 1}, actions=actions)


def test_a_message_and_a_content_are_refused():
    with pytest.raises(ValidationError, match="message and content of an event are the same"):
        Event(message="a", content="b")


@pytest.mark.parametrize("make", [lambda delta: EventActions(state_delta=delta), lambda delta: {"stateDelta": delta}])
def test_a_route_beside_actions_leaves_the_values_what_they_are(make):
    point = Point(x=1)
    event = Event(route="r", actions=make({"point": point}))
    assert event.actions.route == "r"
    assert event.actions.state_delta["point"] is point


def test_bytes_are_told_in_json():
    text = Event(output=b"\xff", state={"k": b"\xfe"}).model_dump_json(by_alias=True, exclude_defaults=True)
    assert text == '{"output":"_w==","actions":{"stateDelta":{"k":"_g=="}}}'


def test_events_come_back_from_json():
    def tell(ctx):
        ctx.state["gone"] = 1
        yield Event(state={"k": 1}, content="c")
        del ctx.state["gone"]
        yield Event(output=None)

    runner = Runner(Workflow("w", [("START", tell)]))
    list(runner.run("in", session_id="s"))
    session = runner.sessions.get("app", "user", "s")
    back = [Event.model_validate_json(each.model_dump_json(by_alias=True)) for each in session.events]
    assert back == list(session.events)
    assert [each.has_output for each in back] == [False, False, True]
    assert fold_events(back) == session.state == {"k": 1}
