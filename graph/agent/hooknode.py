"""The node of one hook of a middleware: runs it, and says what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pregel.callables import read_callable
from pregel.channels.base import MISSING
from pregel.config import get_config, get_store, get_stream_writer
from pregel.errors import GraphDefinitionError, InvalidUpdateError, nearest
from pregel.graph.agent.middleware.base import forms_of, jumps_of, runs_on_any_loop
from pregel.graph.agent.routing import JUMPS, goto_in, jump_in, updated, updates_in
from pregel.graph.agent.runs import ANSWER, tries_in
from pregel.graph.annotations import is_typeddict
from pregel.graph.schema import is_schema
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.graph.agent.middleware.base import AgentMiddleware
    from pregel.graph.agent.routing import Router
    from pregel.graph.agent.state import JumpTo
    from pregel.node import Injection
    from pregel.runtime import Runtime

__all__ = ["HookNode", "hook_node"]


@dataclass(frozen=True, slots=True)
class Form:
    """A hook in its sync or its async form."""

    function: Callable[..., Any]
    #: Its parameters after the state, by name.
    inject: Mapping[str, Injection]

    def __call__(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Call it."""
        return self.function(state, **{name: given(kind, runtime) for name, kind in self.inject.items()})


def given(kind: Injection, runtime: Runtime[Any]) -> Any:
    """Return what a parameter of a hook is filled with."""
    if kind == "runtime":
        return runtime
    if kind == "config":
        return get_config()
    if kind == "writer":
        return get_stream_writer()
    return runtime.store if kind == "optional_store" else get_store()


@dataclass(frozen=True, slots=True)
class HookNode:
    """Runs a hook.

    Its result is one list: what the hook updates, and one command that says what follows. So a jump or a `goto` of the
    hook takes the place of the step that would follow.
    """

    #: How messages name the hook.
    where: str
    sync: Form | None
    asynchronous: Form | None
    router: Router
    #: Where it declares to jump.
    jumps: tuple[JumpTo, ...]
    #: What follows it; None where that depends on the conversation, after the last hook that follows the model.
    following: str | None
    #: What "end" means for it.
    end: str
    #: Whether it may be the first node of a run, and whether it may end the loop.
    begins: bool
    ends_loop: bool
    #: The class that it annotates its state with, if that is one whose instances it wants; else None.
    reads: Any = None

    @property
    def destinations(self) -> tuple[str, ...]:
        """What may follow it, as far as it says."""
        router = self.router
        tools = () if router.tools is None else (router.tools,)
        found = [self.following] if self.following is not None else [*tools, router.loop, router.exit]
        jumps = {"model": (router.loop,), "end": (self.end,), "tools": tools}
        return tuple(dict.fromkeys([*found, *(name for jump in self.jumps for name in jumps[jump])]))

    @property
    def any_loop(self) -> bool:
        """Whether its async form runs on every event loop."""
        return self.asynchronous is not None and runs_on_any_loop(self.asynchronous.function)

    @property
    def forms(self) -> tuple[Callable[..., Any] | None, Callable[..., Awaitable[Any]] | None]:
        """The sync form and the async form, each if there is one."""
        return self.call if self.sync else None, self.acall if self.asynchronous else None

    def call(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Run the hook."""
        return self.result(self.sync(state, runtime), runtime)  # type: ignore[misc]  # asked only where there is one

    async def acall(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Run the hook, awaited."""
        return self.result(await self.asynchronous(state, runtime), runtime)  # type: ignore[misc]  # see `call`

    def follow(self, state: Mapping[str, Any]) -> list[Any]:
        """Return what follows a result that somebody else gave in the hook's place."""
        messages, answer = updated(state, ())
        jump = state.get("jump_to")
        if jump in self.jumps:
            return self.router.jump(jump, self.jumps, self.where, self.end, messages, answer)
        return self.router.after_model(messages, answer) if self.following is None else [self.following]

    def result(self, result: Any, runtime: Runtime[Any]) -> list[Any]:
        """Return what the hook updates, and what follows.

        Raises:
            InvalidUpdateError: It jumps where it can't, or names two ways to go on.
            MissingStructuredOutputError: It ends the run, and the structured response has not been given.
        """
        parts = [] if result is None else list(result) if isinstance(result, (list, tuple)) else [result]
        jump, goto = jump_in(parts), goto_in(parts)
        if jump is not None and goto:
            raise InvalidUpdateError(
                f"{self.where} returned jump_to={jump!r} and a Command with goto={goto!r}: name one of them"
            )
        updates = list(updates_in(parts))
        noted = self.router.noted(runtime.state, {name for name, _ in updates}, may_begin=self.begins)
        added = [noted] if noted else []
        if goto:
            if self.ends_loop and self.router.leads_out(goto):
                self.router.check_end(self.where, updated(runtime.state, [*noted.items(), *updates])[1], updates)
            return [*added, *parts]
        following: list[Any]
        if jump is None and self.following is not None:
            following = [self.following]
        else:
            messages, answer = updated(runtime.state, [*noted.items(), *updates])
            if jump is None:
                following = self.router.after_model(messages, answer, tries_in(runtime.state))
            else:
                following = self.router.jump(jump, self.jumps, self.where, self.end, messages, answer)
                if jump == "end" and self.ends_loop:
                    self.router.check_end(self.where, answer, updates)
                    parts = parts if self.router.has_form else [without_none(part) for part in parts]
        return [*added, *parts, Command(goto=following)]


def without_none(part: Any) -> Any:
    """Return a part of a result that does not say that there is no structured response, where none was asked for."""
    if isinstance(part, Mapping) and part.get(ANSWER, MISSING) is None:
        return {name: value for name, value in part.items() if name != ANSWER}
    return part


def hook_node(middleware: AgentMiddleware, hook: str, router: Router, *, following: str | None, end: str) -> HookNode:
    """Return the node of a hook.

    Args:
        middleware: Whose hook it is.
        hook: Such as "before_model".
        router: The agent's.
        following: What follows it; None where that depends on the conversation.
        end: What "end" means for it.

    Raises:
        GraphDefinitionError: It can't be called, or declares a jump that does not exist.
    """
    where = f"{hook} of middleware {middleware.name!r}"
    jumps = jumps_of(middleware, hook)
    for jump in jumps:
        if jump not in JUMPS:
            raise GraphDefinitionError(
                f"{where} declares to jump to {jump!r}: can_jump_to takes {', '.join(map(repr, JUMPS))}."
                f"{nearest(jump, JUMPS)}"
            )
        if jump == "tools" and router.tools is None:
            raise GraphDefinitionError(f"{where} declares to jump to 'tools', and the agent has none: give it some")
    forms: list[Form | None] = []
    reads = None
    for function in forms_of(middleware, hook):
        if function is None:
            forms.append(None)
            continue
        read = read_callable(function, hook, where)
        annotated = read.hints.get(read.first)
        if annotated is not None and is_schema(annotated) and not is_typeddict(annotated):
            reads = annotated
        forms.append(Form(function, read.code.inject))
    begins, ends_loop = hook in {"before_agent", "before_model"}, hook != "after_agent"
    return HookNode(where, forms[0], forms[1], router, jumps, following, end, begins, ends_loop, reads)
