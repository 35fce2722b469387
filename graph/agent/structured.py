"""Structured output: the forms that an answer may have, and the ways in which a model is asked for one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic_core import ValidationError

from pregel.errors import GraphDefinitionError, PregelError
from pregel.graph.annotations import UNIONS, describe
from pregel.graph.schema import is_schema
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import TypeAdapter

__all__ = [
    "AutoStrategy",
    "MissingStructuredOutputError",
    "MultipleStructuredOutputsError",
    "OutputSchema",
    "ProviderStrategy",
    "StructuredOutputError",
    "StructuredOutputValidationError",
    "ToolStrategy",
    "as_strategy",
    "resolved",
]

SchemaT = TypeVar("SchemaT")
#: What `handle_errors` may be: whether, or which errors are told to the model; or what it is told.
HandleErrors: TypeAlias = bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], str]
#: How often a model may correct an answer before the run fails.
DEFAULT_RETRIES: Final = 3
#: What providers take as the name of a tool.
UNNAMABLE: Final = re.compile(r"[^a-zA-Z0-9_-]")


class StructuredOutputError(PregelError):
    """A model did not give the structured response that it was asked for."""

    def __init__(self, message: str, ai_message: Any = None) -> None:
        super().__init__(message)
        #: What the model said.
        self.ai_message = ai_message


class MultipleStructuredOutputsError(StructuredOutputError):
    """A model gave several structured responses where one was asked for."""

    def __init__(self, tool_names: Sequence[str], ai_message: Any = None) -> None:
        super().__init__(
            f"the model gave {len(tool_names)} structured responses ({', '.join(tool_names)}), and one is asked for",
            ai_message,
        )
        self.tool_names = list(tool_names)


class StructuredOutputValidationError(StructuredOutputError):
    """What a model gave does not fit the schema."""

    def __init__(self, tool_name: str, source: Exception, ai_message: Any = None) -> None:
        super().__init__(f"the model's answer does not fit {tool_name}: {reason_of(source)}", ai_message)
        self.tool_name = tool_name
        self.source = source


class MissingStructuredOutputError(StructuredOutputError):
    """A model answered in words of its own where a structured response was asked for, or a run ended without one."""


def reason_of(error: Exception) -> str:
    """Return what pydantic found, short enough for a model to read."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = (
        f"{'.'.join(map(str, fault['loc'])) or 'the answer'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(faults)


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """One form of answer."""

    #: What the model calls it.
    name: str
    description: str
    json_schema: Mapping[str, Any]
    #: The type of what it is parsed to.
    annotation: Any
    #: Parses it; None for a bare JSON schema.
    adapter: TypeAdapter[Any] | None = None

    @classmethod
    def of(cls, schema: Any) -> OutputSchema:
        """Read a pydantic model, dataclass, `TypedDict` or JSON schema.

        Raises:
            GraphDefinitionError: It is none of them, or a JSON schema without content.
        """
        if isinstance(schema, Mapping):
            if not schema:
                raise GraphDefinitionError(
                    "response_format is an empty JSON schema, which any answer fits: name the parts of the answer, "
                    "{'title': ..., 'type': 'object', 'properties': {...}}, or leave response_format out"
                )
            name = str(schema.get("title") or schema.get("name") or "answer")
            return cls(UNNAMABLE.sub("_", name), str(schema.get("description", "")), dict(schema), dict[str, Any])
        from pregel.graph.coercion import adapter_of  # noqa: PLC0415 - imports pydantic

        adapter = adapter_of(schema) if is_schema(schema) else None
        if adapter is None:
            raise GraphDefinitionError(
                f"response_format takes a pydantic model, a dataclass, a TypedDict, a JSON schema (a dict), a "
                f"ToolStrategy or a ProviderStrategy, not {shortened(schema)}"
            )
        described = adapter.json_schema()
        name = UNNAMABLE.sub("_", describe(schema)).strip("_")
        return cls(name, str(described.get("description", "")), described, schema, adapter)

    def parse(self, data: Any) -> Any:
        """Return an answer as an instance of the schema.

        Raises:
            ValueError: It does not fit.
        """
        if self.adapter is not None:
            return self.adapter.validate_json(json.dumps(data))
        if not isinstance(data, dict):
            raise ValueError(f"an object is asked for, not {type(data).__name__}")  # noqa: TRY004 - what the caller handles
        missing = [name for name in self.json_schema.get("required", ()) if name not in data]
        if missing:
            raise ValueError(f"{', '.join(missing)}: missing")
        return data


def parts_of(schema: Any) -> list[Any]:
    """Return the forms that an answer may have: the members of a union, or of the "oneOf" of a JSON schema."""
    if get_origin(schema) in UNIONS:
        return [part for member in get_args(schema) for part in parts_of(member)]
    if isinstance(schema, Mapping) and isinstance(schema.get("oneOf"), (list, tuple)):
        return list(schema["oneOf"])
    return [schema]


class Strategy(Generic[SchemaT]):
    """What all strategies share."""

    schema: Any
    schemas: tuple[OutputSchema, ...]

    @property
    def annotation(self) -> Any:
        """The type of the structured response."""
        return Union[tuple(each.annotation for each in self.schemas)]  # noqa: UP007 - the members are in a tuple


class ToolStrategy(Strategy[SchemaT]):
    """The answer is the call of a tool that does not exist; each form of answer is one. Any model with tools can do it.

    Args:
        schema: A pydantic model, dataclass, `TypedDict` or JSON schema, a union of them, or a JSON schema with "oneOf".
        tool_message_content: What the conversation has as the result of the call; the answer itself if left out.
        handle_errors: Which wrong answers the model may correct: True for all, False for none, the types of the errors,
            a text that the model is told, or a function from the error to such a text.
        max_retries: How often it may in a run, before the run fails with the error.

    Raises:
        GraphDefinitionError: The schema is no schema, or two forms have one name.
    """

    def __init__(
        self,
        schema: type[SchemaT] | Any,
        *,
        tool_message_content: str | None = None,
        handle_errors: HandleErrors = True,
        max_retries: int = DEFAULT_RETRIES,
    ) -> None:
        self.schema = schema
        self.tool_message_content = tool_message_content
        self.handle_errors = handle_errors
        self.max_retries = max_retries
        self.schemas = tuple(map(OutputSchema.of, parts_of(schema)))
        if not self.schemas:
            raise GraphDefinitionError('the "oneOf" of response_format lists no form of answer: give it some')
        names = [each.name for each in self.schemas]
        if len(set(names)) < len(names):
            raise GraphDefinitionError(
                f"two forms of response_format have one name: {', '.join(names)}. Give each a title of its own"
            )

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the model is told of."""
        return [
            {"name": each.name, "description": each.description, "parameters": dict(each.json_schema)}
            for each in self.schemas
        ]

    def told(self, error: StructuredOutputError) -> str | None:
        """Return what the model is told of an error, or None where it is told nothing."""
        handle = self.handle_errors
        if isinstance(handle, str):
            return handle
        cause = getattr(error, "source", None)
        if isinstance(handle, (type, tuple)):
            return f"Error: {error}. Correct it." if isinstance(error, handle) or isinstance(cause, handle) else None
        if callable(handle):
            return handle(error)
        return f"Error: {error}. Correct it." if handle else None


class ProviderStrategy(Strategy[SchemaT]):
    """The provider makes the model answer in the form of a JSON schema.

    Args:
        schema: A pydantic model, dataclass, `TypedDict` or JSON schema.
        strict: Whether the provider shall follow the schema to the letter, where it has the choice.
        max_retries: How often the model may correct an answer in a run, before the run fails with the error.

    Raises:
        GraphDefinitionError: The schema is no schema.
    """

    def __init__(
        self, schema: type[SchemaT] | Any, *, strict: bool | None = None, max_retries: int = DEFAULT_RETRIES
    ) -> None:
        self.schema = schema
        self.strict = strict
        self.max_retries = max_retries
        self.schemas = (OutputSchema.of(schema),)

    @property
    def response_format(self) -> dict[str, Any]:
        """The form that the provider is asked for."""
        (schema,) = self.schemas
        form: dict[str, Any] = {"name": schema.name, "schema": dict(schema.json_schema)}
        return form if self.strict is None else {**form, "strict": self.strict}


class AutoStrategy(Strategy[SchemaT]):
    """A `ProviderStrategy` where the model says that it can do that, else a `ToolStrategy`.

    A model says so by its `profile`, a mapping with "structured_output".

    Args:
        schema: As `ToolStrategy` takes it; of several forms of answer no provider makes the choice.

    Raises:
        GraphDefinitionError: The schema is no schema, or two forms have one name.
    """

    def __init__(self, schema: type[SchemaT] | Any) -> None:
        self.schema = schema
        self.by_tool: ToolStrategy[Any] = ToolStrategy(schema)
        self.schemas = self.by_tool.schemas


def as_strategy(response_format: Any) -> Any:
    """Return the `response_format` of an agent as a strategy, or None.

    Raises:
        GraphDefinitionError: It is no strategy and no schema.
    """
    if response_format is None or isinstance(response_format, Strategy):
        return response_format
    return AutoStrategy(response_format)


def resolved(strategy: Any, model: Any) -> Any:
    """Return the strategy that is used with a model: a `ToolStrategy`, a `ProviderStrategy`, or None.

    Raises:
        GraphDefinitionError: It is no strategy and no schema.
    """
    strategy = as_strategy(strategy)
    if not isinstance(strategy, AutoStrategy):
        return strategy
    profile = getattr(model, "profile", None)
    can = isinstance(profile, Mapping) and profile.get("structured_output") is True
    return ProviderStrategy(strategy.schema) if can and len(strategy.schemas) == 1 else strategy.by_tool
