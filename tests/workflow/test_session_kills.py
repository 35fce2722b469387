"""A session whose run is killed anywhere loses nothing that was committed, and shares it exactly once."""

import json
import subprocess
import sys
from pathlib import Path

NODES = {"silent", "left", "right", "after", "quiet"}


def test_a_killed_run_goes_on_and_what_it_shares_is_neither_lost_nor_doubled(tmp_path):
    program = [sys.executable, "-W", "error", "-m", "tests.workflow.killing", str(tmp_path)]
    root = Path(__file__).parents[2]
    ended = subprocess.run(program, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    cases = [json.loads(line) for line in ended.stdout.splitlines()]
    # Two tasks that end at one time are stored together or one by one, so the last places need not be reached.
    assert sum(case["ended"] == -9 for case in cases) >= 20
    points = {"write.before", "write.inside", "write.after", "put.before", "put.after"}
    assert {case["point"] for case in cases} >= points
    for case in cases:
        where = f"{case['point']} {case['number']}: {ended.stderr}"
        assert case["ended"] in {-9, 0}, where
        told = case["told"]
        assert told is not None, where
        assert told["state"] == told["folded"], where
        assert told["state"]["log"] == ["left", "after"], where
        assert told["shared"] == {"user:visits": 11, "app:last": "after"}, where
        assert set(told["ledger"]) == NODES, where
        # What runs twice is what ran when the process was killed, and was not committed.
        again = {name for name, times in told["ledger"].items() if times > 1}
        assert all(told["ledger"][name] == 2 for name in again), where
        assert all(told["ledger"][name] == told["done"][name] for name in told["committed"]), where
        if case["point"] == "write.after":  # a superstep is committed, or one of the two tasks of one
            assert again <= {"left"} or again <= {"right"}, where
        if case["point"].startswith("put."):
            assert not again, where
