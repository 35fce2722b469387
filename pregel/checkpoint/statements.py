"""Every SQL text of the checkpointers, for SQLite and PostgreSQL alike. Values are bound, nothing is ever spliced in.

The texts are SQLite's; `postgres` turns one into PostgreSQL's. They differ in the placeholders and in row locks, which
SQLite needs none of, as one transaction writes at a time there. So locks stand in comments: `/* FOR SHARE */`.

Theory of operation. A head (a namespace of a thread on a branch) and a series (a field of a head) have a number. A
checkpoint's key is the number of its head times 2**32 plus its `seq`, a field row's that of its series: rows that are
read together lie together, in one tree, with no index beside it. Such a key costs nine bytes, a natural one with its
index thirty and the writing of one more page for each commit (in SQLite a third of its time). Without an index on
`step` a checkpoint is found by halving, for along a head `step` grows with `seq`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["CHUNK", "SEQ_LIMIT", "STATEMENTS", "UNLIMITED", "postgres"]

#: A `seq` is less; the factor in keys, written out in the texts below.
SEQ_LIMIT: Final = 1 << 32
#: The limit of a query that has none.
UNLIMITED: Final = 1 << 62
#: How many series one query reads.
CHUNK: Final = 16

SYNCHRONOUS_FULL: Final = "PRAGMA synchronous = FULL"
SYNCHRONOUS_NORMAL: Final = "PRAGMA synchronous = NORMAL"
BEGIN_READ: Final = "BEGIN /* ISOLATION LEVEL REPEATABLE READ READ ONLY */"
BEGIN_WRITE: Final = "BEGIN IMMEDIATE"
COMMIT: Final = "COMMIT"
ROLLBACK: Final = "ROLLBACK"

# -- leases ----------------------------------------------------------------------------------------------------------

ADD_THREAD: Final = "INSERT INTO pregel_threads (name, origin) VALUES (?, ?) ON CONFLICT DO NOTHING"
ADD_HELD_THREAD: Final = """
    INSERT INTO pregel_threads (name, origin, token, host, pid, started, expires) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING RETURNING id"""
LOCK_THREAD: Final = """
    SELECT id, origin, token, host, pid, started, expires FROM pregel_threads WHERE name = ? /* FOR UPDATE */"""
SET_LEASE: Final = "UPDATE pregel_threads SET token = ?, host = ?, pid = ?, started = ?, expires = ? WHERE id = ?"
RENEW: Final = "UPDATE pregel_threads SET expires = ? WHERE name = ? AND token = ?"
RELEASE_WRITTEN: Final = "UPDATE pregel_threads SET token = NULL WHERE id = ? AND token = ?"
RELEASE: Final = "UPDATE pregel_threads SET token = NULL WHERE name = ? AND token = ?"
DROP_EMPTY_THREAD: Final = """
    DELETE FROM pregel_threads WHERE name = ?
    AND NOT EXISTS (SELECT 1 FROM pregel_heads h WHERE h.thread = pregel_threads.id)
    AND NOT EXISTS (SELECT 1 FROM pregel_branches b WHERE b.thread = pregel_threads.id)"""
HELD: Final = "SELECT id FROM pregel_threads WHERE name = ? AND token = ? /* FOR SHARE */"

# -- writing ---------------------------------------------------------------------------------------------------------

_IS_HELD = "EXISTS (SELECT 1 FROM pregel_threads WHERE id = ? AND token = ? /* FOR SHARE */)"
_ROOT_IS_AT = "COALESCE((SELECT r.step FROM pregel_heads r WHERE r.id = ? /* FOR SHARE */), -1) = ?"
ADVANCE: Final = f"UPDATE pregel_heads SET step = ?, seq = ? WHERE id = ? AND step = ? AND {_IS_HELD}"  # noqa: S608 - all three are constants
ADVANCE_CHILD: Final = f"{ADVANCE} AND {_ROOT_IS_AT}"
START: Final = f"UPDATE pregel_heads SET step = ?, seq = ? WHERE id = ? AND step IS NULL AND {_IS_HELD}"  # noqa: S608 - as above
START_CHILD: Final = f"{START} AND {_ROOT_IS_AT}"
FIND_HEAD: Final = "SELECT id FROM pregel_heads WHERE thread = ? AND namespace = ? AND branch = ?"
ADD_HEAD: Final = (
    "INSERT INTO pregel_heads (thread, namespace, branch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"
)
FIND_SERIES: Final = "SELECT id FROM pregel_series WHERE head = ? AND field = ?"
ADD_SERIES: Final = "INSERT INTO pregel_series (head, field) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
PUT_CHECKPOINT: Final = (
    "INSERT INTO pregel_checkpoints (id, step, created, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
PUT_VALUE: Final = "INSERT INTO pregel_values (id, step, whole, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
PUT_TASK: Final = "INSERT INTO pregel_tasks (head, step, task, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
REPLACE_TASK: Final = "UPDATE pregel_tasks SET content = ? WHERE head = ? AND step = ? AND task = ?"
DROP_TASKS: Final = "DELETE FROM pregel_tasks WHERE head = ? AND step = ?"
OPEN_BRANCH: Final = (
    "INSERT INTO pregel_branches (thread, branch, parent, fork_seq) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)

# -- reading ---------------------------------------------------------------------------------------------------------

HEAD: Final = """
    SELECT h.step FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id
    WHERE t.name = ? AND h.namespace = ? AND h.branch = ?"""
ORIGIN: Final = "SELECT origin FROM pregel_threads WHERE name = ?"
LAST_SEQ: Final = """
    SELECT COALESCE(MAX(h.seq), 0) FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id WHERE t.name = ?"""
LAST_SEQ_OF: Final = "SELECT COALESCE(MAX(seq), 0) FROM pregel_heads WHERE thread = ?"
BRANCHES: Final = """
    SELECT b.branch, b.parent, b.fork_seq FROM pregel_threads t JOIN pregel_branches b ON b.thread = t.id
    WHERE t.name = ? ORDER BY b.branch"""
LATEST: Final = """
    SELECT h.branch, c.step, c.id - h.id * 4294967296, c.created, c.content
    FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id JOIN pregel_checkpoints c ON c.id = (
        SELECT MAX(n.id) FROM pregel_checkpoints n
        WHERE n.id BETWEEN h.id * 4294967296 AND h.id * 4294967296 + 4294967295
    )
    WHERE t.name = ? AND h.namespace = ? ORDER BY c.id - h.id * 4294967296 DESC LIMIT 1"""
VISIBLE_CHECKPOINT: Final = """
    SELECT h.branch, c.step, c.id - h.id * 4294967296, c.created, c.content
    FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id JOIN pregel_checkpoints c ON c.id = (
        SELECT MAX(n.id) FROM pregel_checkpoints n WHERE n.id BETWEEN h.id * 4294967296 AND h.id * 4294967296 + ?
    )
    WHERE t.name = ? AND h.namespace = ? AND h.branch = ?"""
_IS_BELOW = """COALESCE((
            SELECT c.step FROM pregel_checkpoints c
            WHERE c.id BETWEEN s.low AND s.low + (s.high - s.low) / 2 ORDER BY c.id DESC LIMIT 1
        ), -1) < ?"""
#: Halve between `low` and `high`: the first key whose step is not less than the one asked for is in there.
CHECKPOINT: Final = f"""
    WITH RECURSIVE search (head, low, high) AS (
        SELECT h.id, h.id * 4294967296, h.id * 4294967296 + 4294967295
        FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id
        WHERE t.name = ? AND h.namespace = ? AND h.branch = ?
    UNION ALL
        SELECT s.head,
        CASE WHEN {_IS_BELOW} THEN s.low + (s.high - s.low) / 2 + 1 ELSE s.low END,
        CASE WHEN {_IS_BELOW} THEN s.high ELSE s.low + (s.high - s.low) / 2 END
        FROM search s WHERE s.low < s.high
    )
    SELECT c.step, c.id - s.head * 4294967296, c.created, c.content
    FROM search s JOIN pregel_checkpoints c ON c.id = s.low WHERE s.low = s.high AND c.step = ?"""  # noqa: S608 - constants
HEADS: Final = """
    SELECT h.id, h.branch FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id
    WHERE t.name = ? AND h.namespace = ?"""
CHECKPOINTS: Final = """
    SELECT id, step, created, content FROM pregel_checkpoints WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?"""
SERIES: Final = """
    SELECT s.id, s.field FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id
    JOIN pregel_series s ON s.head = h.id WHERE t.name = ? AND h.namespace = ? AND h.branch = ?"""
#: The newest whole row of each series up to a bound, and what follows it. `CROSS JOIN`: SQLite keeps that order.
VALUES: Final = f"""
    WITH begins (series, low) AS MATERIALIZED (
        SELECT s.id, COALESCE((
            SELECT w.id FROM pregel_values w
            WHERE w.id BETWEEN s.id * 4294967296 AND s.id * 4294967296 + ? AND w.whole = 1 ORDER BY w.id DESC LIMIT 1
        ), s.id * 4294967296)
        FROM pregel_series s WHERE s.id IN ({", ".join("?" * CHUNK)})
    )
    SELECT b.series, v.step, v.id - b.series * 4294967296, v.whole, v.content
    FROM begins b CROSS JOIN pregel_values v WHERE v.id BETWEEN b.low AND b.series * 4294967296 + ?"""  # noqa: S608 - a constant number of placeholders
TASKS: Final = """
    SELECT k.task, k.content FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id
    JOIN pregel_tasks k ON k.head = h.id
    WHERE t.name = ? AND h.namespace = ? AND h.branch = ? AND k.step = ? ORDER BY k.task"""
NAMESPACES: Final = """
    SELECT h.namespace FROM pregel_threads t JOIN pregel_heads h ON h.thread = t.id
    WHERE t.name = ? AND h.branch = ? AND h.namespace >= ? AND h.namespace < ? AND h.step IS NOT NULL
    ORDER BY h.namespace"""

# -- keeping ---------------------------------------------------------------------------------------------------------

THREADS: Final = """
    SELECT t.name, COALESCE(MIN(c.created), 0.0), COALESCE(MAX(c.created), 0.0), COUNT(c.id), t.token IS NOT NULL
    FROM (SELECT * FROM pregel_threads WHERE name > ? ORDER BY name LIMIT ?) t
    LEFT JOIN pregel_heads h ON h.thread = t.id
    LEFT JOIN pregel_checkpoints c ON c.id BETWEEN h.id * 4294967296 AND h.id * 4294967296 + 4294967295
    GROUP BY t.name, t.token ORDER BY t.name"""
THREAD_NAMES: Final = "SELECT name FROM pregel_threads ORDER BY name"
DELETE_THREAD: Final = (
    """
    DELETE FROM pregel_values WHERE id IN (
        SELECT v.id FROM pregel_heads h JOIN pregel_series s ON s.head = h.id
        JOIN pregel_values v ON v.id BETWEEN s.id * 4294967296 AND s.id * 4294967296 + 4294967295 WHERE h.thread = ?
    )""",
    """
    DELETE FROM pregel_checkpoints WHERE id IN (
        SELECT c.id FROM pregel_heads h
        JOIN pregel_checkpoints c ON c.id BETWEEN h.id * 4294967296 AND h.id * 4294967296 + 4294967295
        WHERE h.thread = ?
    )""",
    "DELETE FROM pregel_tasks WHERE head IN (SELECT id FROM pregel_heads WHERE thread = ?)",
    "DELETE FROM pregel_series WHERE head IN (SELECT id FROM pregel_heads WHERE thread = ?)",
    "DELETE FROM pregel_heads WHERE thread = ?",
    "DELETE FROM pregel_branches WHERE thread = ?",
    "DELETE FROM pregel_threads WHERE id = ?",
)
#: Each takes the new thread, then the old one.
COPY_THREAD: Final = (
    """
    INSERT INTO pregel_branches (thread, branch, parent, fork_seq)
    SELECT ?, branch, parent, fork_seq FROM pregel_branches WHERE thread = ?""",
    """
    INSERT INTO pregel_heads (thread, namespace, branch, step, seq)
    SELECT ?, namespace, branch, step, seq FROM pregel_heads WHERE thread = ?""",
    """
    INSERT INTO pregel_series (head, field)
    SELECT n.id, s.field FROM pregel_heads h
    JOIN pregel_heads n ON n.thread = ? AND n.namespace = h.namespace AND n.branch = h.branch
    JOIN pregel_series s ON s.head = h.id WHERE h.thread = ?""",
    """
    INSERT INTO pregel_tasks (head, step, task, content)
    SELECT n.id, k.step, k.task, k.content FROM pregel_heads h
    JOIN pregel_heads n ON n.thread = ? AND n.namespace = h.namespace AND n.branch = h.branch
    JOIN pregel_tasks k ON k.head = h.id WHERE h.thread = ?""",
    """
    INSERT INTO pregel_checkpoints (id, step, created, content)
    SELECT c.id + (n.id - h.id) * 4294967296, c.step, c.created, c.content FROM pregel_heads h
    JOIN pregel_heads n ON n.thread = ? AND n.namespace = h.namespace AND n.branch = h.branch
    JOIN pregel_checkpoints c ON c.id BETWEEN h.id * 4294967296 AND h.id * 4294967296 + 4294967295
    WHERE h.thread = ?""",
    """
    INSERT INTO pregel_values (id, step, whole, content)
    SELECT v.id + (m.id - s.id) * 4294967296, v.step, v.whole, v.content FROM pregel_heads h
    JOIN pregel_heads n ON n.thread = ? AND n.namespace = h.namespace AND n.branch = h.branch
    JOIN pregel_series s ON s.head = h.id JOIN pregel_series m ON m.head = n.id AND m.field = s.field
    JOIN pregel_values v ON v.id BETWEEN s.id * 4294967296 AND s.id * 4294967296 + 4294967295
    WHERE h.thread = ?""",
)
CHECKPOINT_MARKS: Final = """
    SELECT c.id, h.branch, h.namespace, c.id - h.id * 4294967296, c.created FROM pregel_heads h
    JOIN pregel_checkpoints c ON c.id BETWEEN h.id * 4294967296 AND h.id * 4294967296 + 4294967295
    WHERE h.thread = ?"""
VALUE_MARKS: Final = """
    SELECT v.id, h.branch, h.namespace, s.field, v.id - s.id * 4294967296, v.whole FROM pregel_heads h
    JOIN pregel_series s ON s.head = h.id
    JOIN pregel_values v ON v.id BETWEEN s.id * 4294967296 AND s.id * 4294967296 + 4294967295
    WHERE h.thread = ?"""
DELETE_CHECKPOINT: Final = "DELETE FROM pregel_checkpoints WHERE id = ?"
DELETE_VALUE: Final = "DELETE FROM pregel_values WHERE id = ?"


def statements() -> tuple[str, ...]:
    """Return the public texts of this module."""
    texts: list[str] = []
    for name, value in globals().items():
        if name.isupper() and not name.startswith("_"):
            texts += [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
    return tuple(texts)


#: All of them, as SQLite takes them.
STATEMENTS: Final = statements()


def postgres(statement: str) -> str:
    """Return a statement in the words of PostgreSQL."""
    if statement == BEGIN_WRITE:
        return "BEGIN ISOLATION LEVEL READ COMMITTED"
    return statement.replace("?", "%s").replace("/* ", "").replace(" */", "")
