"""The public test kit. Import it in tests; a running graph does not need it."""

from pregel.testing.laws import MissingExtraError, ReducerLawError, check_reducer

__all__ = ["MissingExtraError", "ReducerLawError", "check_reducer"]
