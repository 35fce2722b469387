"""All SQL of the stores. Texts are constants, and whatever comes from a user is bound to a `?` of theirs.

The two databases differ in the types of the tables, by `pregel.checkpoint.schema`, and in how a place for a value is
written.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

__all__ = ["MIGRATIONS", "POSTGRES", "SQLITE", "Statements"]


class Statements(NamedTuple):
    """The SQL for one kind of database."""

    reserve: str = "UPDATE pregel_item_counter SET last = last + ? RETURNING last"
    put: str = (
        "INSERT INTO pregel_items (namespace, key, version, created, updated, value) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (namespace, key) DO UPDATE "
        "SET version = excluded.version, updated = excluded.updated, value = excluded.value"
    )
    delete: str = "DELETE FROM pregel_items WHERE namespace = ? AND key = ?"
    version: str = "SELECT version FROM pregel_items WHERE namespace = ? AND key = ?"
    read: str = (
        "SELECT namespace, key, version, created, updated, value FROM pregel_items WHERE namespace = ? AND key = ?"
    )
    scan: str = (
        "SELECT namespace, key, version, created, updated, value FROM pregel_items "
        "WHERE namespace >= ? AND namespace < ? ORDER BY version DESC LIMIT ?"
    )
    namespaces: str = "SELECT DISTINCT namespace FROM pregel_items WHERE namespace >= ? AND namespace < ?"

    def with_places(self, mark: str) -> Self:
        """Return the same statements with another mark where a value is bound."""
        return type(self)(*(text.replace("?", mark) for text in self))


SQLITE: Final = Statements()
POSTGRES: Final = SQLITE.with_places("%s")

#: What makes version n of the tables of version n - 1, for n = 1, 2, ...: see `pregel.checkpoint.schema`. What was
#: released never changes.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE pregel_items (
            namespace {blob} NOT NULL, key {text} NOT NULL, version {int} NOT NULL,
            created {int} NOT NULL, updated {int} NOT NULL, value {blob} NOT NULL, PRIMARY KEY (namespace, key)
        )""",
        # Of one row, which writers lock.
        "CREATE TABLE pregel_item_counter (last {int} NOT NULL)",
        "INSERT INTO pregel_item_counter (last) VALUES (0)",
    ),
)
