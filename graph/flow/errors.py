"""What can be wrong with flow graphs, keys and contexts."""

from __future__ import annotations

from typing import Any

from pregel.errors import GraphChangedError, GraphDefinitionError, PregelError, ThreadBusyError

__all__ = [
    "AgentOutputError",
    "ContextBusyError",
    "ContextKeyError",
    "FlowDefinitionError",
    "FlowError",
    "FlowRunError",
    "KeyTypeError",
    "MissingKeyError",
    "MissingResourceError",
    "NoRouteError",
    "ResumeError",
    "TemplateError",
]


class FlowError(PregelError):
    """The base of the errors of flow graphs and their contexts."""


class FlowDefinitionError(FlowError, GraphDefinitionError):
    """A flow graph, or a key space, that can't mean anything; found before anything runs."""


class TemplateError(FlowDefinitionError):
    """A template that can't be read; the message shows the place."""


class ContextKeyError(FlowError, ValueError):
    """A key that can't be written (reserved, not declared, not by this node, set already) or read (not declared)."""


class KeyTypeError(FlowError, TypeError):
    """A value that is not of its key's type; the message names node and key. Nothing was written."""

    #: The value.
    value: Any = None


class MissingKeyError(FlowError, KeyError):
    """A key that is read, or that a run must be given, and that the context does not have; or a part of a value."""

    __str__ = Exception.__str__  # a KeyError would quote the message


class NoRouteError(FlowError):
    """No condition of an exclusive or inclusive gateway holds, and it has no default."""


class FlowRunError(FlowError, RuntimeError):
    """A run can't begin, go on or stop like that: nothing is unfinished, or something is."""


class MissingResourceError(FlowRunError):
    """What a graph needs to run, and no snapshot can hold, was not given; all of it is named. Nothing was run."""


class ContextBusyError(FlowError, ThreadBusyError):
    """A run has the context: it takes one at a time, and its data can't be changed from outside meanwhile."""


class ResumeError(FlowRunError, GraphChangedError):
    """A run that can't go on in this graph, since what is due in it is gone; the message names it. Nothing was run."""


class AgentOutputError(FlowError, ValueError):
    """An agent's answer is no value of its output key's type. Nothing of it was written."""
