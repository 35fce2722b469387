"""What goes wrong in workflows, beside what goes wrong in every graph."""

from __future__ import annotations

from pregel.errors import GraphDefinitionError, PregelError

__all__ = [
    "NotPersistedError",
    "ScopeConflictError",
    "SessionNotFoundError",
    "StateSchemaError",
    "WorkflowConfigurationError",
    "WorkflowDataError",
]


class WorkflowConfigurationError(GraphDefinitionError):
    """A workflow that can't mean anything: edges, nodes or names that don't fit together."""


class WorkflowDataError(PregelError, ValueError):
    """A value that a node needs is missing, or is not what it says it takes, or it gave something it must not."""


class StateSchemaError(PregelError, TypeError):
    """A key that the state schema does not declare, or a value that the key does not take."""


class NotPersistedError(PregelError, RuntimeError):
    """A `temp:` key was read after the run had been resumed: its value lived in the memory of the run before."""


class ScopeConflictError(PregelError):
    """A session wrote a plain `user:` or `app:` key that another one had changed since its run began."""


class SessionNotFoundError(PregelError, LookupError):
    """There is no such session."""
