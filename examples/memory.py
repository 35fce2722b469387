"""A visitor who is remembered: three conversations, one store. Run it with `python -m examples.memory [FILE]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pregel.store.memory import InMemoryStore
from pregel.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.store.base import BaseStore

TALKS = (
    ("ada", ["drinks tea", "reads Babbage"]),
    ("bob", ["drinks coffee"]),
    ("ada", ["drinks tea without sugar"]),
)


def remember(store: BaseStore, user: str, fact: str) -> None:
    """Keep what a user said, under its first word; what was said last replaces what was said before."""
    verb, _, what = fact.partition(" ")
    store.put(("facts", user), verb, {"what": what, "sure": True})


def recall(store: BaseStore, user: str) -> list[str]:
    """Return what is known of a user, the newest first."""
    return [f"{item.key} {item.value['what']}" for item in store.search(("facts", user), filter={"sure": True})]


def talk(store: BaseStore) -> Iterator[str]:
    """Hold the conversations, and yield what is known at the beginning of each."""
    for user, facts in TALKS:
        yield f"{user}: {', '.join(recall(store, user)) or 'nobody we know'}"
        for fact in facts:
            remember(store, user, fact)
    yield f"known: {', '.join(name for _, name in store.list_namespaces(prefix=('facts',)))}"


def main(*arguments: str) -> None:
    """Hold the conversations in memory, or in a file, where they are still known the next time."""
    with SqliteStore(arguments[0]) if arguments else InMemoryStore() as store:
        for line in talk(store):
            print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
