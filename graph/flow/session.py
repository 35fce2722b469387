"""`AgentSession`: the conversation on a context, and whether it waits for somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import ContextBusyError, FlowRunError
from pregel.graph.flow.standing import pending_of
from pregel.graph.messages import add_messages
from pregel.text import show

if TYPE_CHECKING:
    from pregel.graph.messages import AnyMessage
    from pregel.types import Interrupt

__all__ = ["HISTORY", "AgentSession"]

#: The private field of a context that holds the conversation.
HISTORY: Final = "@messages"


class AgentSession:
    """The conversation on a context: what agents were asked and answered there, in order.

    It is kept beside the data, never in it, and goes into snapshots. Agents that run in a graph add to it and do not
    see it; one that is run on a session by itself takes part in it. Two sessions of one context are one conversation.

    Args:
        ctx: The context; `session.ctx is ctx`. None for a new one.

    Raises:
        FlowRunError: It is the view of a task, which ends with it, or no context at all.
    """

    __slots__ = ("_ctx",)

    def __init__(self, ctx: FlowContext | None = None) -> None:
        ctx = FlowContext() if ctx is None else ctx
        if not isinstance(ctx, FlowContext):
            raise FlowRunError(
                f"AgentSession({show(ctx)}): it takes a FlowContext. To share an id is not to share data"
            )
        if ctx.task is not None:
            raise FlowRunError(
                f"AgentSession was given a task's view of context {ctx.id!r}, which ends with the task: open it on the "
                "context that the graph is run on"
            )
        self._ctx = ctx

    @property
    def ctx(self) -> FlowContext:
        """The context, itself."""
        return self._ctx

    @property
    def messages(self) -> tuple[AnyMessage, ...]:
        """The conversation; what models were told beside it (system messages, calls of tools) is in the traces."""
        return tuple(self._ctx.home.private.get(HISTORY, ()))

    def add(self, messages: Any) -> None:
        """Add to the conversation: a message, a text of the user, a `(role, text)` pair, or a list of these.

        Raises:
            ContextBusyError: A run has the context.
            InvalidUpdateError: Something is no message.
            Exception: The context is stored, and the storage failed; nothing has changed.
        """
        home = self._ctx.home
        if home.running is not None:
            raise ContextBusyError(
                f"the conversation on context {home.id!r} can't be changed while graph {home.running!r} runs"
            )
        before = self.messages
        home.private[HISTORY] = [*before, *add_messages(None, messages)]
        if home.ledger is not None:
            try:
                home.ledger.save(home)
            except BaseException:
                home.private[HISTORY] = [*before]
                raise

    @property
    def questions(self) -> tuple[Interrupt, ...]:
        """What paused runs of all graphs of the context ask."""
        return pending_of(self._ctx.home)

    @property
    def pending(self) -> bool:
        """Whether a run on the context waits for an answer."""
        return bool(self.questions)

    @property
    def pending_reason(self) -> Any:
        """What is asked first, or None."""
        questions = self.questions
        return questions[0].value if questions else None

    def __repr__(self) -> str:
        return f"AgentSession({self._ctx.id!r}, {len(self.messages)} messages)"
