"""All SQL of the stores. Texts are constants, and whatever comes from a user is bound to a `?` of theirs.

The two databases differ in the types of the tables and in how a place for a value is written.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

__all__ = ["POSTGRES", "SQLITE", "Statements"]


class Statements(NamedTuple):
    """The SQL for one kind of database."""

    #: What brings the tables from each version to the next: the first from 0 to 1. What was released never changes.
    migrations: tuple[tuple[str, ...], ...]
    create_schema: str = "CREATE TABLE IF NOT EXISTS store_schema (version INTEGER NOT NULL)"
    read_schema: str = "SELECT version FROM store_schema"
    first_schema: str = "INSERT INTO store_schema (version) VALUES (?)"
    next_schema: str = "UPDATE store_schema SET version = ?"
    reserve: str = "UPDATE store_versions SET last = last + ? RETURNING last"
    put: str = (
        "INSERT INTO store_items (namespace, key, version, created, updated, value) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (namespace, key) DO UPDATE "
        "SET version = excluded.version, updated = excluded.updated, value = excluded.value"
    )
    delete: str = "DELETE FROM store_items WHERE namespace = ? AND key = ?"
    version: str = "SELECT version FROM store_items WHERE namespace = ? AND key = ?"
    read: str = (
        "SELECT namespace, key, version, created, updated, value FROM store_items WHERE namespace = ? AND key = ?"
    )
    scan: str = (
        "SELECT namespace, key, version, created, updated, value FROM store_items "
        "WHERE namespace >= ? AND namespace < ? ORDER BY version DESC LIMIT ?"
    )
    namespaces: str = "SELECT DISTINCT namespace FROM store_items WHERE namespace >= ? AND namespace < ?"

    def with_places(self, mark: str) -> Self:
        """Return the same statements with another mark where a value is bound."""
        migrations = tuple(tuple(text.replace("?", mark) for text in step) for step in self.migrations)
        return type(self)(migrations, *(text.replace("?", mark) for text in self[1:]))

    def texts(self) -> frozenset[str]:
        """Return every text there is, for tests that hold what is executed against it."""
        return frozenset({*self[1:], *(text for step in self.migrations for text in step)})


SQLITE: Final = Statements(
    migrations=(
        (
            (
                "CREATE TABLE store_items (namespace BLOB NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, "
                "created INTEGER NOT NULL, updated INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (namespace, key))"
            ),
            "CREATE TABLE store_versions (last INTEGER NOT NULL)",
            "INSERT INTO store_versions (last) VALUES (0)",
        ),
    )
)

POSTGRES: Final = Statements(
    migrations=(
        (
            (
                "CREATE TABLE store_items (namespace BYTEA NOT NULL, key TEXT NOT NULL, version BIGINT NOT NULL, "
                "created BIGINT NOT NULL, updated BIGINT NOT NULL, value BYTEA NOT NULL, PRIMARY KEY (namespace, key))"
            ),
            "CREATE TABLE store_versions (last BIGINT NOT NULL)",
            "INSERT INTO store_versions (last) VALUES (0)",
        ),
    )
).with_places("%s")
