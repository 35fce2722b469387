"""What every checkpointer does: checks to run against one, also against one of your own.

    from pregel.testing.conformance import check_checkpointer

    def test_my_checkpointer():
        check_checkpointer(lambda: MyCheckpointer(empty_database()))

Each check is a function of a factory, which returns a checkpointer with nothing in it each time it is called; the check
closes it. A check that fails raises a `ConformanceError`, an `AssertionError` that says what was expected. They need no
test framework: `CHECKS` lists them for one that wants to run each by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pregel.testing.conformance import keeping, leases, reading, writing
from pregel.testing.conformance.kit import ConformanceError, collect

if TYPE_CHECKING:
    from pregel.testing.conformance.kit import Check, Make

__all__ = ["CHECKS", "ConformanceError", "check_checkpointer"]

#: Every check; its name says what it shows.
CHECKS: Final[tuple[Check, ...]] = (*leases.CHECKS, *writing.CHECKS, *reading.CHECKS, *keeping.CHECKS)


def check_checkpointer(make: Make) -> None:
    """Run every check against checkpointers of one kind.

    Args:
        make: Returns one with nothing in it, each time.

    Raises:
        ExceptionGroup: Of what the checks that failed raised, each with the name of its check as a note.
    """
    collect(CHECKS, lambda check: check(make))
