"""All SQL of the cache. Texts are constants, and whatever comes from a user is bound to a `?` of theirs."""

from __future__ import annotations

from typing import Final

__all__ = ["CLEAR", "EXPIRE", "GET", "MIGRATIONS", "PUT"]

GET: Final = "SELECT value FROM pregel_cache WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)"
PUT: Final = (
    "INSERT INTO pregel_cache (namespace, key, expires, value) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (namespace, key) DO UPDATE SET expires = excluded.expires, value = excluded.value"
)
EXPIRE: Final = "DELETE FROM pregel_cache WHERE expires <= ?"
CLEAR: Final = "DELETE FROM pregel_cache WHERE namespace >= ? AND namespace < ?"

#: See `pregel.checkpoint.schema.MIGRATIONS`.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE pregel_cache (
            namespace {blob} NOT NULL, key {text} NOT NULL, expires {real}, value {blob} NOT NULL,
            PRIMARY KEY (namespace, key)
        )""",
        "CREATE INDEX pregel_cache_expires ON pregel_cache (expires) WHERE expires IS NOT NULL",
    ),
)
