"""The state as one task of a workflow sees and changes it, and how the changes become updates of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.channels.last_value import LastValue
from pregel.codec import register
from pregel.graph.workflow.cells import Folded
from pregel.graph.workflow.errors import StateSchemaError
from pregel.graph.workflow.schema import channel_of, checker, fields_of, keys_of
from pregel.graph.workflow.scopes import TEMP_NAMES, ScopedState, temp_updates, with_temp
from pregel.runtime import current_frame
from pregel.writes import new_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pregel.channels.base import Channel

__all__ = ["STATE", "Delta", "StateAccess", "TaskState"]

# A key of a schema is a field of its own, and a task that deletes it may have to be stored while its siblings run.
register(type(DELETE), tag="pregel.workflow:Delete", encode=lambda _: None, decode=lambda _: DELETE)

#: The field that holds the state of a workflow without a schema.
STATE: Final = "state"


class Delta(NamedTuple):
    """What happened to the state between two events."""

    #: Keys with the values that were set, or given to their reducers.
    values: Mapping[str, Any]
    deleted: tuple[str, ...] = ()
    #: Keys with a reducer whose value was replaced.
    replaced: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.values or self.deleted)


class TaskState(ScopedState):
    """What a node finds as `ctx.state`: a mapping over what all tasks of the superstep see, with the task's own writes.

    What is set for a key with a reducer is an update of it, and reading the key gives the value with it folded in;
    `Overwrite(value)` replaces the value. Other tasks see nothing of it before the superstep is committed.

    Args:
        snapshot: What all tasks of the superstep see, by whole names.
        check: Returns the value to keep for a key that is set, or raises.
        names: The whole names of scoped keys by their declared ones.
        folding: The channels of the keys that have reducers.
    """

    __slots__ = ("_folding", "_ids", "_told", "writes")

    def __init__(
        self,
        snapshot: Mapping[str, Any],
        check: Callable[[str, Any], Any] | None,
        names: Mapping[str, str],
        folding: Mapping[str, Channel],
    ) -> None:
        super().__init__(snapshot, check, names)
        self._folding = folding
        #: Each write in order: a value, an `Overwrite`, or `DELETE`.
        self.writes: list[tuple[str, Any]] = []
        self._told = 0
        # One after the other for all writes: two messages with one id would be one message.
        self._ids: Callable[[], str] | None = None

    def __setitem__(self, key: str, value: Any) -> None:
        if self._folding or type(value) is Overwrite:
            self.update({key: value})
            return
        key = self._names.get(key, key)
        if self._check is not None:
            value = self._check(key, value)
        self._changed[key] = value
        self.writes.append((key, value))

    def __delitem__(self, key: str) -> None:
        """Delete a key; one with a reducer starts anew, for the nodes behind this one or with the next update.

        Raises:
            KeyError: There is none.
            StateSchemaError: The channel that the schema gives it can't start anew.
        """
        whole = self._names.get(key, key)
        channel = self._folding.get(whole)
        write: Any = DELETE
        if channel is not None and not isinstance(channel, Folded):
            start = channel.initial()
            if start is MISSING:
                raise StateSchemaError(f"the key {whole!r} can't be deleted, as {channel!r} holds it")
            write = Overwrite(start)
        elif self._check is not None:
            self._check(whole, DELETE)
        super().__delitem__(key)
        self.writes.append((whole, write))

    def update(self, *others: Any, **values: Any) -> None:
        """Set several keys: all, or where one is refused, none."""
        names, check = self._names, self._check
        given = {names.get(key, key): value for key, value in dict(*others, **values).items()}
        if check is not None:
            given = {key: check(key, value) for key, value in given.items()}
        changed, folding = {}, self._folding
        for key in [key for key in given if key in folding] if folding else ():
            given[key] = self._prepared(folding[key], given[key])
        for key, value in given.items():
            if type(value) is Overwrite:
                changed[key] = value.value
            elif key in folding:
                changed[key] = folding[key].apply(self._before(key), (value,))
            else:
                changed[key] = value
        self._changed.update(changed)
        self.writes.extend(given.items())

    def _prepared(self, channel: Channel, update: Any) -> Any:
        """Return an update as the engine would prepare it, with ids: so that events hold what the state gets."""
        prepare = getattr(channel, "prepare", None)
        if prepare is None:
            return update
        if self._ids is None:
            task, run, *_ = current_frame()
            self._ids = new_ids(run.new_id, task.id)
        if type(update) is Overwrite:
            return Overwrite(prepare(update.value, self._ids))
        return prepare(update, self._ids)

    def _before(self, key: str) -> Any:
        """Return the value that an update of a key with a reducer is folded into."""
        value = self.get(key, MISSING)
        return self._folding[key].initial() if value is MISSING else value

    def untold(self) -> list[Delta]:
        """Return what happened since this was last asked; several deltas where a reducer was given several values."""
        if self._told == len(self.writes):
            return []
        writes = self.writes[self._told :]
        self._told = len(self.writes)
        return deltas(writes, self._folding)


def deltas(writes: Sequence[tuple[str, Any]], folding: Mapping[str, Channel]) -> list[Delta]:
    """Return writes as deltas, in order; a new one begins where a key with a reducer would be in it twice."""
    if not folding and not any(value is DELETE or type(value) is Overwrite for _, value in writes):
        return [Delta(dict(writes))]
    found: list[Delta] = []
    values: dict[str, Any] = {}
    deleted: dict[str, None] = {}
    replaced: dict[str, None] = {}
    for key, value in writes:
        if key in folding and (key in values or key in deleted):
            found.append(Delta(values, tuple(deleted), tuple(replaced)))
            values, deleted, replaced = {}, {}, {}
        values.pop(key, None)
        deleted.pop(key, None)
        if value is DELETE:
            deleted[key] = None
        elif type(value) is Overwrite:
            values[key] = value.value
            if key in folding:
                replaced[key] = None
        else:
            values[key] = value
    return [*found, Delta(values, tuple(deleted), tuple(replaced))]


class StateAccess:
    """How one node reads and writes the state.

    Args:
        schema: The state schema of the workflow, or None.
        where: How messages name the node.
    """

    __slots__ = ("check", "folding", "keys", "names")

    def __init__(self, schema: Any, where: str) -> None:
        self.check = checker(schema, where)
        self.names = keys_of(schema)
        #: The keys of the schema that are fields of the graph; None where there is no schema.
        self.keys = None if schema is None else tuple(fields_of(schema))
        channels = {} if schema is None else {key: channel_of(schema, key) for key in fields_of(schema)}
        #: The channels of the keys that have reducers.
        self.folding: dict[str, Channel] = {
            key: channel
            for key, channel in channels.items()
            if channel is not None and not isinstance(channel, LastValue)
        }

    def view(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what all tasks of the superstep see of the state.

        Args:
            given: The values of the graph's fields.
        """
        keys = self.keys
        state = given.get(STATE) or {} if keys is None else {key: given[key] for key in keys if key in given}
        return with_temp(state, given) if given.get(TEMP_NAMES) else state

    def open(self, view: Mapping[str, Any]) -> TaskState:
        """Return what a node changes.

        Args:
            view: What it sees.
        """
        return TaskState(view, self.check, self.names, self.folding)

    def updates(self, writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Return the updates of the graph's fields that writes to the state make.

        Of a plain key the last write counts, and of one with a reducer each.
        """
        folding = self.folding
        if not any(key.startswith("temp:") for key, _ in writes):
            if self.keys is None:
                return [(STATE, dict(writes))]
            if not folding:
                return list(dict(writes).items())
        if self.keys is None:
            stored, temp = temp_updates(dict(writes))
            return [*([(STATE, stored)] if stored else []), *temp.items()]
        stored, temp = temp_updates({key: value for key, value in writes if key not in folding})
        return [*stored.items(), *self.folded(writes), *temp.items()]

    def folded(self, writes: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        """Yield the updates of keys with reducers; what comes before an `Overwrite` is lost, the rest folded into it.

        To delete is to overwrite with what the key starts with: a log is stored as what was added to it, else.
        """
        folding = self.folding
        found: dict[str, list[Any]] = {}
        for key, update in writes:
            if key not in folding:
                continue
            updates = found.setdefault(key, [])
            start = folding[key].initial() if update is DELETE else MISSING
            if type(update) is Overwrite or update is DELETE:
                updates[:] = [update if start is MISSING else Overwrite(start)]
            elif updates and type(updates[0]) is Overwrite:
                updates[0] = Overwrite(folding[key].apply(updates[0].value, (update,)))
            else:
                updates.append(update)
        for key, updates in found.items():
            yield from ((key, update) for update in updates)
