"""A function's parameters as what a model is told of a tool and what its arguments are checked against."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from pregel.callables import annotations_of
from pregel.errors import GraphDefinitionError, PregelError, nearest
from pregel.graph.agent.injection import injection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from pregel.graph.agent.injection import Injected

__all__ = [
    "Arguments",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "code_of",
    "copied",
    "docstring_parts",
    "faults",
    "read_function",
]

SECTION = re.compile(r"^(Args|Arguments|Parameters):[ \t]*$", re.MULTILINE)
NEXT_SECTION = re.compile(r"^\S", re.MULTILINE)
ENTRY = re.compile(r"^[*]{0,2}(\w+)[ \t]*(?:\([^\n]*\))?:[ \t]*(.*)$")


class ToolDefinitionError(GraphDefinitionError):
    """Something that can't be a tool, or tools that can't stand side by side."""


class ToolArgumentsError(PregelError, ValueError):
    """The arguments that a model gave do not fit the tool; the text is meant for the model."""


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """What the model's arguments are checked against."""

    model: type[BaseModel]
    #: By the name of each of the function's parameters, the attribute of the model that holds its value.
    attributes: Mapping[str, str]

    def read(self, args: Mapping[str, Any], tool: str) -> dict[str, Any]:
        """Return the arguments as the annotations convert them, with the defaults of those not given.

        Raises:
            ToolArgumentsError: They do not fit; names those that are wrong.
        """
        try:
            read = self.model.model_validate(dict(args))
        except ValidationError as error:
            fields = self.model.model_fields.items()
            known = [field.alias or name for name, field in fields]
            raise ToolArgumentsError(faults(error, tool, args, known)) from error
        found = {name: getattr(read, attribute) for name, attribute in self.attributes.items()}
        return {**found, **(read.model_extra or {})}


def faults(
    error: ValidationError, tool: str, args: Mapping[str, Any], known: Iterable[str], hidden: Container[str] = ()
) -> str:
    """Return what is wrong with the arguments that a model gave, for the model; nothing of what it does not see."""
    lines = []
    for fault in error.errors(include_url=False, include_context=False):
        if fault["loc"] and fault["loc"][0] in hidden:
            continue
        where = ".".join(map(str, fault["loc"]))
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            lines.append(f"- {where}: there is no such argument.{nearest(where, known)}")
        else:
            lines.append(f"- {where}: {fault['msg']}" if where else f"- {fault['msg']}")
    return (
        f"The arguments of tool {tool!r} do not fit:\n" + "\n".join(lines) + f"\nGiven were {dict(args)!r}. "
        "Call it again with arguments that fit."
    )


class Quiet(GenerateJsonSchema):
    """Leaves out a default that JSON does not know, as of an argument that the model need not give."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's form


def read_function(function: Callable[..., Any], name: str) -> tuple[Arguments, dict[str, Any], dict[str, Injected]]:
    """Read a tool's parameters.

    Args:
        function: A sync or async function.
        name: The tool's name.

    Returns:
        What checks the model's arguments, their JSON schema, and how the other parameters are filled.

    Raises:
        ToolDefinitionError: A parameter that can't be given by name, or one whose annotation can't be resolved or has
            no JSON schema.
    """
    parameters = inspect.signature(function).parameters
    code = code_of(function)
    raw = getattr(inspect.unwrap(code), "__annotations__", {})
    hints = annotations_of(code, "", f"tool {name!r}", None)
    told = docstring_parts(code.__doc__)[1]
    bound = function.keywords if isinstance(function, partial) else {}
    given: dict[str, Any] = {}
    injected: dict[str, Injected] = {}
    open_ended = False
    for parameter in parameters.values():
        if parameter.name in bound:  # the model must not give what the program has given
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY}:
            raise ToolDefinitionError(
                f"tool {name!r} has the parameter {parameter}, which takes its value by position: models give "
                "arguments by name"
            )
        if parameter.name in raw and parameter.name not in hints:
            raise ToolDefinitionError(
                f"tool {name!r} annotates {parameter.name!r} with {raw[parameter.name]!r}, which can't be resolved: "
                "define that at the level of the module, and import it where the program runs"
            )
        annotation = hints.get(parameter.name, Any)
        optional = parameter.default is not inspect.Parameter.empty
        how = injection_of(parameter.name, annotation, optional=optional)
        if how is not None:
            injected[parameter.name] = how
        if how is None or how.kind == how.BY_WRAPPERS:
            given[parameter.name] = field_of(parameter, annotation, told.get(parameter.name))
    arguments = arguments_of(given, name, open_ended=open_ended)
    return arguments, schema_of(arguments, injected, name), injected


def copied(value: Any) -> Any:
    """Return a copy of JSON data, however deep; what is no JSON is the same."""
    if type(value) is dict:
        return {name: copied(each) for name, each in value.items()}
    return [copied(each) for each in value] if type(value) is list else value


def code_of(function: Any) -> Any:
    """Return the function that a callable runs: what a partial binds, and how an object is called."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else function.__call__


def field_of(parameter: inspect.Parameter, annotation: Any, description: str | None) -> tuple[Any, Any]:
    """Return a pydantic field for a parameter. A description in the annotation comes before the docstring's."""
    options: dict[str, Any] = {"alias": parameter.name}
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    described = any(isinstance(mark, FieldInfo) and mark.description for mark in marks)
    if description and not described:
        options["description"] = description
    if parameter.default is inspect.Parameter.empty:
        return annotation, Field(**options)
    if isinstance(parameter.default, FieldInfo):  # `limit: int = Field(10, description=...)`
        return Annotated[annotation, parameter.default], Field(**options)
    return annotation, Field(default=parameter.default, **options)


def arguments_of(given: Mapping[str, tuple[Any, Any]], name: str, *, open_ended: bool) -> Arguments:
    """Return what checks arguments. The fields have names of ours: a parameter may have one that a model can't."""
    attributes = {parameter: f"argument_{place}" for place, parameter in enumerate(given)}
    config = ConfigDict(extra="allow" if open_ended else "forbid", arbitrary_types_allowed=True, populate_by_name=False)
    try:
        model = create_model(  # type: ignore[call-overload]  # fields by name
            name, __config__=config, **{attributes[parameter]: field for parameter, field in given.items()}
        )
    except Exception as error:
        raise ToolDefinitionError(f"the parameters of tool {name!r} make no schema: {error}") from error
    return Arguments(model, attributes)


def schema_of(arguments: Arguments, injected: Mapping[str, Injected], name: str) -> dict[str, Any]:
    """Return the JSON schema of the arguments that a model gives.

    Raises:
        ToolDefinitionError: A type has none.
    """
    try:
        schema = arguments.model.model_json_schema(schema_generator=Quiet)
    except Exception as error:
        raise ToolDefinitionError(
            f"a parameter of tool {name!r} has a type that JSON does not know: {error}. Annotate it with one that it "
            "knows, or mark it with InjectedToolArg if the model is not to give it"
        ) from error
    return shown(schema, injected)


def shown(schema: Mapping[str, Any], hidden: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema of arguments as a model is shown it: without what is injected, and without titles."""
    properties = {
        name: {key: part for key, part in each.items() if key != "title"} if isinstance(each, dict) else each
        for name, each in schema.get("properties", {}).items()
        if name not in hidden
    }
    required = [name for name in schema.get("required", ()) if name not in hidden]
    dropped = {"title", "description", "properties", "required"}
    rest = {key: part for key, part in schema.items() if key not in dropped}
    return {**rest, "type": "object", "properties": properties, **({"required": required} if required else {})}


def docstring_parts(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return a docstring without its `Args:` section, and what that says of each parameter (Google style)."""
    text = inspect.cleandoc(docstring or "")
    section = SECTION.search(text)
    if section is None:
        return text, {}
    end = NEXT_SECTION.search(text, section.end())
    body = text[section.end() : end.start() if end else len(text)]
    rest = (text[: section.start()].rstrip() + "\n\n" + (text[end.start() :] if end else "")).strip()
    found: dict[str, str] = {}
    lines = inspect.cleandoc(body.strip("\n")).splitlines()
    current = ""
    for line in lines:
        entry = ENTRY.match(line)
        if entry:
            current = entry[1]
            found[current] = entry[2].strip()
        elif current and line.strip():
            found[current] = f"{found[current]} {line.strip()}".strip()
    return rest, found
