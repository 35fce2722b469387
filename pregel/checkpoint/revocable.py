"""How a graph stores what it does inside an attempt that may be given up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.cancellation import AttemptToken
    from pregel.checkpoint.recorder import Recorder
    from pregel.commands import CommitBarrier, CommitTask, DropTasks

__all__ = ["RevocableRecorder"]


class RevocableRecorder:
    """Stores what a graph commits inside an attempt at a task, as long as that counts.

    Args:
        recorder: Stores it.
        attempt: The innermost attempt around the graph.
    """

    def __init__(self, recorder: Recorder, attempt: AttemptToken) -> None:
        self.recorder = recorder
        self.attempt = attempt
        self.live = recorder.live
        self.claim = recorder.claim
        self.namespace = recorder.namespace
        self.blocking = recorder.blocking

    def commit(self, command: CommitBarrier | CommitTask | DropTasks) -> None:
        """Do as `Recorder.commit`.

        Raises:
            AttemptRevokedError: The attempt was given up; nothing is stored.
        """
        self.attempt.within(partial(self.commit_now, command))

    def commit_now(self, command: CommitBarrier | CommitTask | DropTasks) -> None:
        """Store something that counts."""
        recorder = self.recorder
        recorder.commit(command)
        if recorder.claim.keeps_until_end:  # the values of the run may go on changing when the attempt is given up
            values = dict(self.live())
            recorder.live = lambda: values

    def commit_all(self, commands: Sequence[CommitTask | DropTasks]) -> None:
        """Do as `Recorder.commit_all`.

        Raises:
            AttemptRevokedError: The attempt was given up; nothing is stored.
        """
        self.attempt.within(partial(self.recorder.commit_all, commands))
