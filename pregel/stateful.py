"""What a thread holds, read and changed from outside: the half of `Pregel` that runs nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.config import merged_config, read_config
from pregel.drivers.offloop import off_loop
from pregel.persistence import read_address, saver_of
from pregel.runtime import FRAME
from pregel.types import StateUpdate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from pregel.checkpoint.base import Checkpointer
    from pregel.config import RunConfig, RunOptions
    from pregel.door import Door
    from pregel.editing import Edit
    from pregel.network import Network
    from pregel.persistence import Address, Persistence
    from pregel.types import OnFailure, StateSnapshot

__all__ = ["Stateful"]


class Stateful:
    """The methods of a compiled graph that read and change what is stored."""

    _network: Network
    _door: Door
    _persistence: Persistence
    _on_failure: OnFailure
    _read_context: Callable[[Any], Any]
    _config: Mapping[str, Any] | None

    def get_state(
        self, config: RunConfig | Mapping[str, Any] | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """Return where a thread stands.

        Args:
            config: Names the thread; with "checkpoint_id" a checkpoint of it, with "checkpoint_ns" a graph inside this
                one. The `config` of a snapshot names all three.
            subgraphs: Whether the states of graphs inside this one are read as well: see `PregelTask.state`.

        Returns:
            The state of the last barrier with what is due and how tasks ended since; an empty one for a thread that
            does not exist.

        Raises:
            MissingCheckpointerError: The graph stores nothing.
            CheckpointNotFoundError: There is no such checkpoint.
            GraphChangedError: What is stored belongs to another version of the graph.
            DecodeError: What is stored is damaged.
        """
        from pregel.snapshots import graphs_at, located, snapshot  # noqa: PLC0415 - graphs that store nothing do not load it

        saver, address, _ = self._stored_at(config)
        graph = graphs_at(self, address)[-1]  # type: ignore[arg-type]  # a Pregel
        return snapshot(graph, saver, address, located(saver, address), subgraphs=subgraphs)

    async def aget_state(
        self, config: RunConfig | Mapping[str, Any] | None = None, *, subgraphs: bool = False
    ) -> StateSnapshot:
        """Return where a thread stands, on asyncio or trio; see `get_state`."""
        return await self._off_loop(partial(self.get_state, config, subgraphs=subgraphs))  # type: ignore[no-any-return]  # of `get_state`

    def get_state_history(
        self,
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's public name
        before: RunConfig | Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """Yield where a thread stood, newest first, on all its branches.

        Args:
            config: See `get_state`; with a checkpoint, nothing newer is told.
            filter: What the metadata must hold, such as `{"source": "input"}`.
            before: Names a checkpoint; only older ones are told.
            limit: How many are told at most.

        Yields:
            Snapshots.

        Raises:
            MissingCheckpointerError: The graph stores nothing.
            CheckpointNotFoundError: There is no such checkpoint.
        """
        from pregel.snapshots import graphs_at, history  # noqa: PLC0415 - graphs that store nothing do not load it

        saver, address, _ = self._stored_at(config)
        earlier = None if before is None else self._stored_at(before)[1]
        graph = graphs_at(self, address)[-1]  # type: ignore[arg-type]  # a Pregel
        return history(graph, saver, address, filters=filter, before=earlier, limit=limit)

    async def aget_state_history(
        self,
        config: RunConfig | Mapping[str, Any] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's public name
        before: RunConfig | Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[StateSnapshot, None]:
        """Yield where a thread stood, on asyncio or trio; see `get_state_history`."""
        told = self.get_state_history(config, filter=filter, before=before, limit=limit)
        while (shown := await self._off_loop(partial(next, told, None))) is not None:
            yield shown

    def update_state(
        self,
        config: RunConfig | Mapping[str, Any] | None,
        values: Any,
        as_node: str | None = None,
    ) -> dict[str, Any]:
        """Change the state of a thread, as if a node had returned these values in a superstep of its own.

        Args:
            config: See `get_state`. At the newest checkpoint of a branch the branch goes on; at any other one a new
                branch begins.
            values: What the node would return; None changes nothing.
            as_node: The node: what is due next is what follows it. None leaves what is due as it is, with the results
                and questions of tasks that have ended. `START` makes the values an input, `END` with None ends the run.

        Returns:
            The config that names the new checkpoint.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            InvalidUpdateError: The values are no update of this graph, or there is no such node.
            ThreadBusyError: A run has the thread.
            MissingCheckpointerError: The graph stores nothing.
        """
        return self.bulk_update_state(config, [[StateUpdate(values, as_node)]])

    async def aupdate_state(
        self,
        config: RunConfig | Mapping[str, Any] | None,
        values: Any,
        as_node: str | None = None,
    ) -> dict[str, Any]:
        """Change the state of a thread, on asyncio or trio; see `update_state`."""
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node)]])

    def bulk_update_state(
        self, config: RunConfig | Mapping[str, Any] | None, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Change the state of a thread in several supersteps, each of one or more updates: all of them or none.

        Args:
            config: See `update_state`.
            supersteps: The updates of each superstep, as `StateUpdate(values, as_node)`.

        Returns:
            The config that names the last new checkpoint.

        Raises:
            Exception: See `update_state`.
        """
        edit = self._edit(config, supersteps)
        if edit.network.needs_loop:
            from pregel.drivers.bridge import run_async  # noqa: PLC0415 - only graphs with async nodes need a loop

            run_async(edit.acomplete)
        else:
            edit.complete()
        return edit.config_of(edit.machine.step)

    async def abulk_update_state(
        self, config: RunConfig | Mapping[str, Any] | None, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Change the state of a thread in several supersteps, on asyncio or trio; see `bulk_update_state`."""
        edit = self._edit(config, supersteps)
        await edit.acomplete()
        return edit.config_of(edit.machine.step)

    def _stored_at(self, config: RunConfig | Mapping[str, Any] | None) -> tuple[Checkpointer, Address, RunOptions]:
        """Return where the graph is stored, what of it a config names, and the config itself, checked."""
        frame = FRAME.get(None)
        if config is None and frame is not None:
            config = frame[1].config
        options = read_config(merged_config(self._config, config))
        name = self._network.name
        return saver_of(self._persistence, name), read_address(options.config, name), options

    def _edit(self, config: RunConfig | Mapping[str, Any] | None, supersteps: Sequence[Sequence[StateUpdate]]) -> Edit:
        """Return a run that changes the state."""
        from pregel.editing import Edit, read_supersteps  # noqa: PLC0415 - graphs that store nothing do not load it
        from pregel.snapshots import graphs_at  # noqa: PLC0415 - as above

        saver, address, options = self._stored_at(config)
        *around, graph = graphs_at(self, address)  # type: ignore[arg-type]  # a Pregel
        edit = Edit(
            graph._network,  # noqa: SLF001 - a child is a graph edited from outside
            options,
            context=graph._read_context(None),  # noqa: SLF001 - see above
            on_failure="finish",
            persistence=replace(
                graph._persistence.stored_in(saver),  # noqa: SLF001 - see above
                on_busy=self._persistence.on_busy,
            ),
            # What is changed in a graph that is a node of another one is given back to that one.
            journal=[name for name in graph.outputs if name in around[-1].channels] if around else None,
        )
        edit.edit(graph, read_supersteps(supersteps))
        return edit

    async def _off_loop(self, call: Callable[[], Any]) -> Any:
        """Call something that reads the store, in a worker thread where that waits for a disk or a network."""
        saver = saver_of(self._persistence, self._network.name)
        return await off_loop(call) if saver.blocking else call()
