"""The example that computes on several processes."""

import pytest

from examples import cluster
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import NodeExecutorError
from pregel.executors.process import ProcessExecutor
from pregel.testing import fake_clock


def test_the_example_counts_and_counts_again(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(cluster, "LIMIT", 10_000)
    for _ in range(2):
        cluster.main("processes", str(tmp_path / "runs.db"))
        first, last = capsys.readouterr().out.splitlines()
        assert first.startswith("1,229 primes below 10,000, counted in 8 slices by ")
        assert last == "none of them is this one"


class Dying(ProcessExecutor):
    """An executor that is over after some calls."""

    left = 3  # calls

    def submit(self, fn, /, *args, **kwargs):
        if not self.left:
            raise RuntimeError("the cluster is gone")
        self.left -= 1
        return super().submit(fn, *args, **kwargs)


def test_slices_that_were_done_are_not_counted_again(tmp_path):
    config = {"configurable": {"thread_id": "t"}, "max_concurrency": 1}
    with SqliteSaver(tmp_path / "runs.db") as saver, Dying(1) as executor, fake_clock():
        graph = cluster.counter(executor, checkpointer=saver)
        with pytest.raises(ExceptionGroup) as caught:
            graph.invoke({"limit": 10_000, "slices": 8}, config)
        assert [type(error) for error in caught.value.exceptions] == [NodeExecutorError] * 5
        executor.left = 5
        assert graph.invoke(None, config)["total"] == 1_229
        assert executor.left == 0


def test_workers_of_another_kind_are_refused(capsys):
    with pytest.raises(SystemExit, match="'processes' or 'dask', not 'daks'"):
        cluster.main("daks")
    assert not capsys.readouterr().out
