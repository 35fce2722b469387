"""What LangChain's code finds in a task: the config of the run, with a callback that tells tokens to who reads them.

Theory of operation. LangChain's models and tools look for a config that nobody passed them in a context variable. It
is set in the context in which tasks run, and only there, so a model that a node calls without a config is traced and
streamed as one that is given the node's. A run without callbacks that nobody reads messages of pays nothing for it.

langchain-core is never imported unless a program has loaded the part of it that runs models.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pregel.errors import InvalidConfigError
from pregel.reporter import Heard, is_quiet
from pregel.runtime import FRAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
    from contextvars import Token
    from uuid import UUID

    from pregel.reporter import Emit, Speech

__all__ = ["LANGCHAIN", "for_tasks", "is_message", "is_piece", "listened", "offer", "offered"]

#: The module of LangChain that is loaded wherever a program can call models; it has the context variable.
LANGCHAIN: Final = "langchain_core.runnables.config"
#: What a call inherits from the one around it.
INHERITED: Final = ("tags", "metadata", "callbacks", "configurable")
#: How tags begin that LangChain gives to the parts of its chains.
OF_CHAINS: Final = ("seq:step:", "map:key:")
#: Where the classes of messages are found once somebody has loaded them.
MESSAGES: Final = (("pregel.graph.messages", "Message"), ("langchain_core.messages.base", "BaseMessage"))
#: The same for the pieces of messages.
PIECES: Final = (
    ("pregel.graph.agent.models.chunks", "AIMessageChunk"),
    ("langchain_core.messages.base", "BaseMessageChunk"),
)


def is_message(value: Any) -> bool:
    """Return whether a value is a message, ours or LangChain's, that is no order to remove one."""
    return is_one(value, MESSAGES) and value.type != "remove"


def is_piece(value: Any) -> bool:
    """Return whether a value is a piece of a message, ours or LangChain's."""
    return is_one(value, PIECES)


def is_one(value: Any, classes: Iterable[tuple[str, str]]) -> bool:
    """Return whether a value is of one of some classes, named by module, which are not loaded for that."""
    for home, name in classes:
        kinds: Any = getattr(sys.modules.get(home), name, ())  # half loaded, a module lacks its names
        if isinstance(value, kinds):
            return True
    return False


def for_tasks(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config with callbacks as the tasks of a run get it.

    As for everything that LangChain runs inside something else, `run_id` and `run_name` stay with the run itself.
    Listeners of the run around this one are left out: who reads that one has not asked for this one.

    Raises:
        InvalidConfigError: The callbacks are neither a list nor a manager of LangChain's.
    """
    return inside(config, handlers(config["callbacks"]))


def listened(config: Mapping[str, Any], publish: Callable[[Emit], None], speech: Speech) -> Mapping[str, Any]:
    """Return a config for tasks with a callback that tells the tokens of LangChain's chat models.

    Args:
        config: The config of the run.
        publish: Takes the parts.
        speech: How the run tells messages.
    """
    callbacks = config["callbacks"]
    if callbacks is None:  # then LangChain's code would find what is offered around the run
        callbacks = (variable().get() or {}).get("callbacks")
    return inside(config, handlers(callbacks, listener()(publish, speech)))


def inside(config: Mapping[str, Any], callbacks: Any) -> Mapping[str, Any]:
    """Return the config that what runs inside a run inherits."""
    kept = {key: value for key, value in config.items() if key not in {"run_id", "run_name"}}
    return {**kept, "callbacks": callbacks}


def handlers(callbacks: Any, *more: Any) -> Any:
    """Return a manager of callbacks with others in the place of the listeners among them.

    Raises:
        InvalidConfigError: They are neither a list nor a manager.
    """
    others = listener()
    if callbacks is None or isinstance(callbacks, (list, tuple)):
        return managed([*(each for each in callbacks or () if type(each) is not others), *more])
    if not hasattr(callbacks, "add_handler"):
        raise InvalidConfigError(
            "config['callbacks'] takes a list of LangChain's callback handlers, or a manager of them, not "
            f"{type(callbacks).__name__}"
        )
    manager = callbacks.copy()
    for kept in (manager.handlers, manager.inheritable_handlers):
        kept[:] = [each for each in kept if type(each) is not others]
    for each in more:
        manager.add_handler(each)
    return manager


def managed(callbacks: list[Any]) -> Any:
    """Return a manager of callbacks.

    LangChain adds the callbacks that a call is given to those that it finds around it. Two managers have no callback
    twice; two lists would have each of them twice, as every task finds what its config says too.
    """
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415 - loaded, where this is called

    return CallbackManager(handlers=callbacks, inheritable_handlers=[*callbacks])


def offer(config: Mapping[str, Any]) -> Token[Any]:
    """Let LangChain's code find a config in the current context."""
    given = {key: config[key] for key in INHERITED if config[key] or key == "callbacks"}
    token: Token[Any] = variable().set({**(variable().get() or {}), **given})
    return token


@contextmanager
def offered(config: Mapping[str, Any]) -> Iterator[None]:
    """Let LangChain's code find a config in the current context until the block ends."""
    token = offer(config)
    try:
        yield
    finally:
        token.var.reset(token)


def variable() -> Any:
    """Return the context variable in which LangChain's code looks for the config of what runs around it."""
    return sys.modules[LANGCHAIN].var_child_runnable_config


@cache
def listener() -> Any:
    """Return the class of the callback that tells tokens."""
    from langchain_core.callbacks import BaseCallbackHandler  # noqa: PLC0415 - loaded, where this is called

    class TokenListener(BaseCallbackHandler):
        """Tells the tokens of the chat models that the tasks of one run call.

        That it can tap outputs is what makes LangChain stream where a model is only invoked.

        Args:
            publish: Takes the parts.
            speech: How the run tells messages.
        """

        run_inline = True
        raise_error = True

        def __init__(self, publish: Callable[[Emit], None], speech: Speech) -> None:
            self.publish = publish
            self.speech = speech
            # What tells the tokens of a call, and the calls that have told one, by LangChain's id of the call.
            self.calls: dict[UUID, Callable[[Any], None]] = {}
            self.begun: set[UUID] = set()

        def on_chat_model_start(
            self,
            *_given: Any,
            run_id: UUID,
            tags: list[str] | None = None,
            metadata: dict[str, Any] | None = None,
            **_more: Any,
        ) -> None:
            frame = FRAME.get(None)  # none in a thread that a node started by itself
            # A task of a run inside this one may have been given this run's config. That run has a listener of its own,
            # or nobody reads it.
            if is_quiet(tags or ()) or (frame is not None and frame[1].speech is not self.speech):
                return
            task = None if frame is None else frame[0]
            # An attempt at a task has its own: tokens are its signs of life, and refused when it is given up.
            publish = self.publish if frame is None else frame[1].publish or self.publish
            own = [tag for tag in tags or () if not tag.startswith(OF_CHAINS)]
            self.calls[run_id] = lambda message: publish(self.speech.part(Heard, message, task, metadata, own))

        def on_llm_new_token(self, *_given: Any, run_id: UUID, chunk: Any = None, **_more: Any) -> None:
            tell = self.calls.get(run_id)
            if tell is not None and chunk is not None:
                self.begun.add(run_id)
                tell(chunk.message)

        def on_llm_end(self, response: Any, *, run_id: UUID, **_more: Any) -> None:
            tell = self.calls.pop(run_id, None)
            if tell is not None and run_id not in self.begun:
                for answer in response.generations[0][:1]:
                    tell(answer.message)
            self.begun.discard(run_id)

        def on_llm_error(self, *_given: Any, run_id: UUID, **_more: Any) -> None:
            self.calls.pop(run_id, None)
            self.begun.discard(run_id)

        def tap_output_iter(self, _run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:
            return output

        def tap_output_aiter(self, _run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:
            return output

    return TokenListener
