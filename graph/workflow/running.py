"""A node of a workflow as the graph runs it: from the values of the graph's fields to their updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.channels.base import MISSING
from pregel.errors import MutatedStateError
from pregel.graph.workflow.asking import NO_REPLIES, answered_questions, ask, replies_to, reply_to
from pregel.graph.workflow.body import PLAIN, Body
from pregel.graph.workflow.context import Context
from pregel.graph.workflow.event import NO_OUTPUT, Event, Output, StoredEvent
from pregel.graph.workflow.incoming import INPUT, out_field
from pregel.graph.workflow.state import STATE
from pregel.graph.workflow.telling import Place, Telling
from pregel.mutation import differs
from pregel.runtime import FRAME, is_read
from pregel.task import make
from pregel.text import told
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.graph.workflow.asking import Asked, Question, Replies
    from pregel.graph.workflow.binding import Binder
    from pregel.graph.workflow.routes import Chosen, Routing
    from pregel.graph.workflow.state import StateAccess
    from pregel.runtime import Run
    from pregel.task import Task

__all__ = ["EVENTS", "OUTPUT", "PREFIX", "TURN", "NodeCode", "Visit"]

#: The fields of every workflow's graph, beside those of the state and `@out/<node>` for each node.
EVENTS: Final = "@events"
OUTPUT: Final = "output"
#: How many inputs the thread has got.
TURN: Final = "@turn"
#: For a workflow inside another one: the path to the node that it is.
PREFIX: Final = "@path"

NO_DELTA: Final[dict[str, Any]] = {}


class Visit(NamedTuple):
    """One run of a node, as it begins."""

    telling: Telling
    node_input: Any
    #: How many times the node has run in this turn, this time included.
    number: int
    #: What the node has asked that is replied to; None for what it has asked by `interrupt`.
    questions: list[Question | None]


class NodeCode:
    """Runs one node; an object as `StateGraph.add_node` takes it.

    Args:
        workflow: The workflow's name.
        name: The node's name.
        body: Its code.
        access: How it reads and writes the state.
        incoming: Computes its input.
        routing: Says where it leads.
        reruns: Whether it runs again when there is a reply to what it asks, also where it could go on without, and its
            reply is not its output.
        is_last: Whether it is the one node that nothing follows, if nothing does.
        is_given_all: Whether it is given all that it reads, for another process or a look at what it changes in place.
            Else it is given the state, and finds the rest where the engine keeps it: a view for each of ten thousand
            nodes would cost more at compile than all the rest.
        debug: Whether it is looked at for what it changes in place.
        logs: Whether its events are kept.
    """

    #: Only there where nothing must be awaited.
    invoke: Callable[..., Any]
    #: Only there where something can be awaited.
    ainvoke: Callable[..., Any]

    def __init__(
        self,
        workflow: str,
        name: str,
        body: Any,
        access: StateAccess,
        incoming: Callable[..., Any],
        routing: Routing,
        *,
        reruns: bool,
        is_last: bool,
        is_given_all: bool,
        debug: bool,
        logs: bool,
    ) -> None:
        self.workflow = workflow
        self.name = name
        self.body = body
        self.access = access
        self.incoming = incoming
        self.routing = routing
        self.reruns = reruns
        self.is_last = is_last
        self.is_given_all = is_given_all
        self.debug = debug
        self.logs = logs
        self.any_loop = body.any_loop
        self.own = out_field(name)
        self.prefix = f"{workflow}@1"
        #: What calls the function, where it is a plain one.
        self.quick: Binder | None = body.binder if type(body) is Body and body.is_quick and not debug else None
        if not body.needs_loop:
            self.invoke = self._invoke
        if body.uses_loop:
            self.ainvoke = self._ainvoke

    def _invoke(self, given: Mapping[str, Any]) -> Any:
        """Run the node."""
        if self.quick is not None:
            frame = FRAME.get()
            run = frame[1]
            if not run.answers:
                try:
                    return self.run_quickly(self.quick, given, given if self.is_given_all else frame[4], frame[0], run)
                except Exception as error:
                    tell_failure(self.begin(given).telling.place, error)
                    raise
        visit = self.begin(given)
        telling = visit.telling
        try:
            replies = self.replies(visit)
            if replies is not None:
                self.conclude(self.body.run(telling, visit.node_input, replies), telling, replies)
                for part in telling.parts:
                    part.settle()
                if self.debug:
                    self.check_untouched(given, telling.place.where)
            return self.end(telling, visit.number)
        except Exception as error:
            tell_failure(telling.place, error)
            raise

    def run_quickly(
        self, binder: Binder, given: Mapping[str, Any], values: Mapping[str, Any], task: Task, run: Run
    ) -> Any:
        """Run a function where nothing is replied to.

        Most of them set some keys of the state and give a plain output, which is one event.
        """
        own: Output | None = values.get(self.own)
        turn = values.get(TURN, 0)
        number = own.run + 1 if own is not None and own.turn == turn else 1
        view = given if binder.takes_input_only else self.access.view(given)
        telling = context = None
        if binder.context is not None:
            telling = Telling(self.place(values, task, turn, number, run), view, self.access)
            context = Context(telling, NO_REPLIES.given, self.body.run_node)
        output = binder.call(view, self.incoming(values, own, turn), context)
        delta = NO_DELTA if telling is None else telling.plain_delta()
        if type(output) not in PLAIN or delta is None:
            if telling is None:
                place = self.place(values, task, turn, number, run)
                telling = Telling(place, self.access.view(given), self.access)
            self.conclude(self.body.take_result(output, telling), telling, NO_REPLIES)
            for part in telling.parts:
                part.settle()
            return self.end(telling, number)
        chosen = self.routing.plain or self.routing.choose(None)
        step = task.step
        updates: dict[str, Any] = {self.own: make(Output, (step, turn, number, output, chosen.to))}
        if self.logs:
            path = self.path(values, number)
            updates[EVENTS] = [
                make(StoredEvent, (self.workflow, path, step, turn, output, delta, (), (), None, None, None, None))
            ]
        if chosen.ends:
            updates[OUTPUT] = output if self.is_last else {self.name: output}
        if delta:
            if self.access.keys is None:
                updates[STATE] = delta
            else:
                updates.update(delta)
        return Command(update=updates, goto=chosen.goto) if self.routing.is_routed else updates

    def path(self, values: Mapping[str, Any], number: int) -> str:
        """Return the path to a run of the node."""
        return f"{values.get(PREFIX, self.prefix)}/{self.name}@{number}"

    def place(self, values: Mapping[str, Any], task: Task, turn: int, number: int, run: Run) -> Place:
        """Return where and when the node runs."""
        path = self.path(values, number)
        return Place(self.workflow, self.name, path, task.step, turn, run.attempt, run.writer)

    async def _ainvoke(self, given: Mapping[str, Any]) -> Any:
        """Run the node on an event loop."""
        visit = self.begin(given)
        telling = visit.telling
        try:
            replies = self.replies(visit)
            if replies is not None:
                self.conclude(await self.body.arun(telling, visit.node_input, replies), telling, replies)
                for part in telling.parts:
                    await part.asettle()
                if self.debug:
                    self.check_untouched(given, telling.place.where)
            return self.end(telling, visit.number)
        except Exception as error:
            tell_failure(telling.place, error)
            raise

    def begin(self, given: Mapping[str, Any]) -> Visit:
        """Return the run that begins, with the node's input."""
        task, run, _, _, values, *_ = FRAME.get()
        if self.is_given_all:
            values = dict(given)
        own: Output | None = values.get(self.own)
        turn = values.get(TURN, 0)
        number = own.run + 1 if own is not None and own.turn == turn else 1
        place = self.place(values, task, turn, number, run)
        access = self.access
        questions = answered_questions() if run.answers else []
        return Visit(Telling(place, access.view(given), access), self.incoming(values, own, turn), number, questions)

    def replies(self, visit: Visit) -> Replies | None:
        """Return the replies that the node has; None where one is its output, so that it need not run."""
        if not visit.questions:
            return NO_REPLIES
        if not self.reruns and reply_to(visit.questions, visit.telling):
            return None
        return replies_to(visit.questions)

    def conclude(self, asked: Asked | None, telling: Telling, replies: Replies) -> None:
        """Ask what the node asks, if it does. Else the last reply that it got is its output, if it gave none itself.

        Raises:
            GraphInterrupt: The node waits for the reply.
        """
        if asked is not None:
            telling.take_reply(ask(asked, telling, len(replies.given), reruns=self.reruns))
        elif replies.given and not (self.reruns or telling.has_output):
            telling.take_reply([*replies.given.values()][-1])

    def check_untouched(self, given: Mapping[str, Any], where: str) -> None:
        """Check that the node has left alone what it was given: copies, of which the engine has the originals.

        Raises:
            MutatedStateError: It has not. What the engine would say names fields, of which a workflow does not know.
        """
        values = FRAME.get()[4]
        before, after = self.access.view(values), self.access.view(given)
        for key in after:
            if differs(before.get(key, MISSING), after[key]):
                raise MutatedStateError(
                    f"{where} changed the value of the key {key!r} in place, which is no write: make a changed copy "
                    f"and set ctx.state[{key!r}] = ..."
                )
        inputs = (name for name in given if name == INPUT or name.startswith(out_field("")))
        if any(differs(values.get(name, MISSING), given[name]) for name in inputs):
            raise MutatedStateError(
                f"{where} changed its node_input in place, which other nodes may get too: change a copy, and return it"
            )

    def end(self, telling: Telling, number: int) -> Any:
        """Return the updates of the graph's fields, and where the node leads.

        Raises:
            WorkflowDataError: It leads nowhere by the route that it took.
        """
        chosen: Chosen = self.routing.choose(telling.route)
        output = telling.output
        updates: dict[str, Any] = {
            self.own: make(Output, (telling.place.step, telling.place.turn, number, output, chosen.to))
        }
        events = telling.told()
        if events and self.logs:
            updates[EVENTS] = events
        if chosen.ends and output is not NO_OUTPUT:
            updates[OUTPUT] = output if self.is_last else {self.name: output}
        writes = telling.writes
        if writes:
            changed = self.access.updates(writes)
            if self.access.folding:
                return Command(update=[*updates.items(), *changed], goto=chosen.goto if self.routing.is_routed else ())
            updates.update(changed)
        return Command(update=updates, goto=chosen.goto) if self.routing.is_routed else updates


def tell_failure(place: Place, error: Exception) -> None:
    """Tell those who read along that an attempt failed. Nothing of its state is in it, for nothing of it counts."""
    if is_read(place.writer):
        text = told(error).removeprefix(f"{type(error).__name__}: ")
        place.writer(
            Event.model_construct(
                author=place.author,
                path=place.path,
                step=place.step,
                partial=True,
                error_code=type(error).__name__,
                error_message=text,
            )
        )
