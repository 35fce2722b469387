"""What tests of worker processes share."""

import os

import pytest


@pytest.fixture
def gate(tmp_path):
    """Two pipes: a call that has begun writes into one, and reads the other until somebody writes there."""
    begun, hold = tmp_path / "begun", tmp_path / "hold"
    os.mkfifo(begun)
    os.mkfifo(hold)
    return begun, hold
