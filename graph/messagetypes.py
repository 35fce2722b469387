"""What a chat message is: small frozen models, beside which the message classes of langchain-core are accepted.

langchain-core is never imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic_core import core_schema
from typing_extensions import TypedDict

from pregel.codec import register
from pregel.graph.blocks import content_blocks
from pregel.graph.pretty import pretty

__all__ = [
    "LASTING",
    "AIMessage",
    "AnyMessage",
    "Content",
    "ForeignMessage",
    "HumanMessage",
    "InvalidToolCall",
    "Message",
    "RemoveMessage",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "is_foreign",
]

#: A text, or a list of texts and content blocks (dicts with a "type").
Content: TypeAlias = str | list[str | dict[str, Any]]


class ToolCall(TypedDict):
    """A model's request to call a tool."""

    name: str
    args: dict[str, Any]
    #: What the answering `ToolMessage` gives as its `tool_call_id`.
    id: str | None
    type: NotRequired[Literal["tool_call"]]


class InvalidToolCall(TypedDict):
    """A model's request to call a tool that can't be carried out: its arguments are no JSON object."""

    name: str | None
    #: The arguments as the model wrote them.
    args: str | None
    id: str | None
    #: What is wrong with them.
    error: str | None
    type: NotRequired[Literal["invalid_tool_call"]]


ToolCall.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]  # read by pydantic
InvalidToolCall.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]  # as above


class Message(BaseModel):
    """What all messages share. The content may be given by position.

    Args:
        content: A text, or a list of texts and content blocks.
        id: The message's identity in a list; a message with the id of another replaces it.
        name: Who speaks, where that is more than the role.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: Content
    id: str | None = None
    name: str | None = None

    def __init__(self, content: Content | None = None, /, **fields: Any) -> None:
        if content is None:
            super().__init__(**fields)
        else:
            super().__init__(content=content, **fields)

    @property
    def text(self) -> str:
        """The content's text without the other content blocks."""
        if isinstance(self.content, str):
            return self.content
        return "".join(str(part.get("text", "")) for part in self.content_blocks if part.get("type") == "text")

    @property
    def content_blocks(self) -> list[dict[str, Any]]:
        """The content as content blocks alone, whatever its form; `pregel.graph.blocks` makes them."""
        return content_blocks(self.content)

    def pretty_repr(self) -> str:
        """Return the message as text for people: a heading, the content, the calls."""
        return pretty(self)

    def pretty_print(self) -> None:
        """Print the message for people."""
        print(self.pretty_repr())  # noqa: T201 - what it is for


class HumanMessage(Message):
    """What the user says."""

    type: Literal["human"] = "human"

    if TYPE_CHECKING:  # for checkers, which see no __init__ that a model inherits

        def __init__(
            self,
            content: Content,
            *,
            id: str | None = None,  # noqa: A002 - the field's name
            name: str | None = None,
        ) -> None: ...


class SystemMessage(Message):
    """What the model is told about its part."""

    type: Literal["system"] = "system"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Content,
            *,
            id: str | None = None,  # noqa: A002 - the field's name
            name: str | None = None,
        ) -> None: ...


class AIMessage(Message):
    """What the model says.

    Args:
        tool_calls: The calls the model asks for.
        usage_metadata: What the answer cost, in tokens: "input_tokens", "output_tokens" and "total_tokens", and what
            the provider reports beside them.
        invalid_tool_calls: The calls that can't be carried out, because their arguments are malformed.
        response_metadata: What else the provider says of the answer: "finish_reason" ("length" is an answer that was
            cut), "model_name".
    """

    type: Literal["ai"] = "ai"
    content: Content = ""
    tool_calls: list[ToolCall] = []
    usage_metadata: dict[str, Any] | None = None
    invalid_tool_calls: list[InvalidToolCall] = []
    response_metadata: dict[str, Any] = {}

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Content = "",
            *,
            tool_calls: list[ToolCall] = ...,
            usage_metadata: dict[str, Any] | None = None,
            invalid_tool_calls: list[InvalidToolCall] = ...,
            response_metadata: dict[str, Any] = ...,
            id: str | None = None,  # noqa: A002 - the field's name
            name: str | None = None,
        ) -> None: ...


class ToolMessage(Message):
    """What a tool answers.

    Args:
        tool_call_id: The id of the `ToolCall` that is answered.
        status: Whether the content is a result or an error.
        artifact: What the tool made beside the text for the model; never sent to one.
    """

    type: Literal["tool"] = "tool"
    tool_call_id: str
    status: Literal["success", "error"] = "success"
    artifact: Any = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Content,
            *,
            tool_call_id: str,
            status: Literal["success", "error"] = "success",
            artifact: Any = None,
            id: str | None = None,  # noqa: A002 - the field's name
            name: str | None = None,
        ) -> None: ...


class RemoveMessage(BaseModel):
    """An update that removes a message; it is never stored.

    Args:
        id: The id of the message to remove, or `REMOVE_ALL_MESSAGES`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["remove"] = "remove"
    id: str


class ForeignMessage(Protocol):
    """What is known of a message that another library made: langchain-core's message classes."""

    @property
    def type(self) -> str:
        """The role: "human", "ai" and so on."""

    @property
    def content(self) -> Any:
        """A text or content blocks."""

    @property
    def id(self) -> str | None:
        """The message's identity."""


class ForeignSchema:
    """Tells pydantic how to validate a foreign message: by its class, and without touching it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return a schema that keeps the object."""
        return core_schema.no_info_after_validator_function(foreign, core_schema.any_schema())


def foreign(value: Any) -> Any:
    """Return the value if it is a message of another library.

    Raises:
        ValueError: It is none.
    """
    if is_foreign(value) and value.type != "remove":
        return value
    raise ValueError("not a message")


#: A message as the state holds it.
AnyMessage: TypeAlias = (
    HumanMessage | AIMessage | SystemMessage | ToolMessage | Annotated[ForeignMessage, ForeignSchema()]
)


def is_foreign(value: Any) -> bool:
    """Return whether a value is a message of langchain-core: if so, its module is loaded."""
    module = sys.modules.get("langchain_core.messages.base")
    return module is not None and isinstance(value, getattr(module, "BaseMessage", ()))


# Known to every graph that stores messages, also where its schema does not name their classes. The tags are stored, and
# stay what they are whatever becomes of the modules.
for stored, tag in (
    (HumanMessage, "pregel:HumanMessage"),
    (AIMessage, "pregel:AIMessage"),
    (SystemMessage, "pregel:SystemMessage"),
    (ToolMessage, "pregel:ToolMessage"),
    (RemoveMessage, "pregel:RemoveMessage"),
):
    register(stored, tag=tag)

#: The classes of the messages that a state holds; looked at first, for a model's isinstance is slow.
LASTING: Final = frozenset({HumanMessage, AIMessage, SystemMessage, ToolMessage})
