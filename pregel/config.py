"""The options of one run, read once at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict, get_args

from pregel.control import RunControl
from pregel.errors import InvalidConfigError, nearest
from pregel.runtime import current_frame, store_of
from pregel.types import OnFailure, StreamMode, StreamVersion, StreamWriter

__all__ = [
    "RunConfig",
    "RunOptions",
    "get_config",
    "get_store",
    "get_stream_writer",
    "merged_config",
    "read_config",
    "read_control",
    "read_modes",
    "read_on_failure",
    "read_version",
]

DEFAULT_RECURSION_LIMIT: Final = 10_000
MODES: Final[tuple[str, ...]] = get_args(StreamMode)
VERSIONS: Final[tuple[str, ...]] = get_args(StreamVersion)
ON_FAILURE: Final[tuple[str, ...]] = get_args(OnFailure)


class RunConfig(TypedDict, total=False):
    """What `config=` may hold: the keys of LangChain's `RunnableConfig`, so that one config serves both."""

    tags: list[str]
    metadata: dict[str, Any]
    callbacks: Any
    run_name: str
    run_id: Any
    #: How many tasks may run at once; unlimited if absent.
    max_concurrency: int | None
    #: How many supersteps of nodes may run.
    recursion_limit: int
    #: Values for nodes and checkpointers, by name.
    configurable: dict[str, Any]


#: What a node finds in its config when the caller says nothing: LangChain's shape.
EMPTY: Final[Mapping[str, Any]] = {"tags": [], "metadata": {}, "callbacks": None, "configurable": {}}
KNOWN: Final = frozenset(RunConfig.__annotations__)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A checked config: the numbers the engine needs, and the mapping that nodes are given."""

    recursion_limit: int
    max_concurrency: int | None
    config: Mapping[str, Any]


def merged_config(bound: Mapping[str, Any] | None, config: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a config laid over another: tags add up, mappings are joined, and what is not None replaces."""
    if not bound or not isinstance(config, Mapping):
        return bound if config is None else config
    joined = {**bound, **{key: value for key, value in config.items() if value is not None}}
    for key in ("metadata", "configurable"):
        if isinstance(bound.get(key), Mapping) and isinstance(config.get(key), Mapping):
            joined[key] = {**bound[key], **config[key]}
    if isinstance(config.get("tags"), (list, tuple)):
        joined["tags"] = [*dict.fromkeys((*(bound.get("tags") or ()), *config["tags"]))]
    return joined


def get_config() -> dict[str, Any]:
    """Return the config of the run whose task runs the current code.

    Raises:
        OutsideTaskError: None does.
    """
    return dict(current_frame()[1].config)


def get_store() -> Any:
    """Return the long-term memory of the graph whose task runs the current code: a `pregel.store.base.BaseStore`.

    Raises:
        OutsideTaskError: None does.
        MissingStoreError: The graph was compiled without one.
    """
    task, run, *_ = current_frame()
    return store_of(task, run)


def get_stream_writer() -> StreamWriter:
    """Return what adds parts to the `custom` stream of the run whose task runs the current code.

    Raises:
        OutsideTaskError: None does.
    """
    return current_frame()[1].writer


def read_config(config: Mapping[str, Any] | None) -> RunOptions:
    """Check a config.

    Raises:
        InvalidConfigError: A key that is not known, with the nearest match, or a value of the wrong kind.
    """
    if config is None:
        return DEFAULT
    if not isinstance(config, Mapping):
        raise InvalidConfigError(f"config takes a mapping, not {type(config).__name__}")
    for key in config:
        if key not in KNOWN:
            raise InvalidConfigError(
                f"config does not know the key {key!r}.{nearest(key, KNOWN)} It knows {', '.join(sorted(KNOWN))}; "
                "values of your own belong under 'configurable'"
            )
    for key in ("configurable", "metadata"):
        if not isinstance(config.get(key, {}), Mapping):
            raise InvalidConfigError(f"config[{key!r}] takes a mapping, not {type(config[key]).__name__}")
    tags = config.get("tags") or []
    if not isinstance(tags, (list, tuple)) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidConfigError(f"config['tags'] takes a list of texts, not {tags!r}")
    if not isinstance(config.get("run_name", ""), (str, type(None))):
        raise InvalidConfigError(f"config['run_name'] takes a text, not {config['run_name']!r}")
    limit = config.get("recursion_limit", DEFAULT_RECURSION_LIMIT)
    concurrency = config.get("max_concurrency")
    return RunOptions(
        positive("recursion_limit", limit),
        None if concurrency is None else positive("max_concurrency", concurrency),
        {**EMPTY, **config},
    )


def positive(key: str, value: Any) -> int:
    """Return a count from the config.

    Raises:
        InvalidConfigError: It is no whole number of at least 1.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidConfigError(f"config[{key!r}] takes a whole number of at least 1, not {value!r}")
    return value


def read_modes(stream_mode: Any) -> tuple[tuple[str, ...], bool]:
    """Return the stream modes asked for, and whether the parts are tagged with their mode.

    Raises:
        InvalidConfigError: A mode that does not exist, with the nearest match, or none at all.
    """
    tagged = not isinstance(stream_mode, str)
    if tagged and not isinstance(stream_mode, (list, tuple)):
        raise InvalidConfigError(f"stream_mode takes a mode or a list of modes, not {stream_mode!r}")
    modes = tuple(stream_mode) if tagged else (stream_mode,)
    if not modes:
        raise InvalidConfigError(f"stream_mode names no mode; there are {', '.join(MODES)}")
    for mode in modes:
        if mode not in MODES:
            raise InvalidConfigError(
                f"there is no stream_mode {mode!r}.{nearest(mode, MODES)} There are {', '.join(MODES)}"
            )
    return modes, tagged


def read_version(version: Any) -> StreamVersion:
    """Check the shape that stream parts shall have.

    Raises:
        InvalidConfigError: There is no such version.
    """
    if version not in VERSIONS:
        raise InvalidConfigError(f"version takes {' or '.join(map(repr, VERSIONS))}, not {version!r}")
    return version  # type: ignore[no-any-return]


def read_control(control: Any) -> RunControl | None:
    """Check what is to ask a run to stop.

    Raises:
        InvalidConfigError: It is no `RunControl`.
    """
    if control is not None and not isinstance(control, RunControl):
        raise InvalidConfigError(f"control takes a RunControl or None, not {control!r}")
    return control


def read_on_failure(on_failure: Any) -> OnFailure:
    """Check what is to become of the siblings of a failed task.

    Raises:
        InvalidConfigError: It is neither "finish" nor "cancel".
    """
    if on_failure not in ON_FAILURE:
        raise InvalidConfigError(
            f"on_failure takes {' or '.join(map(repr, ON_FAILURE))}, not {on_failure!r}."
            f"{nearest(on_failure, ON_FAILURE)}"
        )
    return on_failure  # type: ignore[no-any-return]


DEFAULT: Final = RunOptions(DEFAULT_RECURSION_LIMIT, None, EMPTY)
