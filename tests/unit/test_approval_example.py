"""The example of approvals does what it says, each call with the file alone to go on from."""

import pytest

from examples.approval import main
from pregel.errors import InvalidResumeError


@pytest.fixture
def says(tmp_path, capsys):
    """Return what a call prints, line by line."""

    def call(*words):
        main(str(tmp_path / "claims.db"), *words)
        return capsys.readouterr().out.splitlines()

    return call


def test_large_amounts_ask_and_small_ones_are_paid(says):
    assert says("paint=80", "desk=900", "lamp=1200") == ["1. pay 900 for desk?", "2. pay 1200 for lamp?"]
    assert says("--answer", "yes", "no") == ["paid: paint, desk", "refused: lamp"]


def test_answers_come_one_by_one(says):
    says("desk=900", "paint=80", "lamp=1200")
    assert says("--answer", "no") == ["1. pay 1200 for lamp?"]
    assert says("--answer", "yes") == ["paid: paint, lamp", "refused: desk"]


def test_an_answer_that_is_none_is_asked_for_again(says):
    says("desk=900")
    with pytest.raises(InvalidResumeError, match="perhaps"):
        says("--answer", "perhaps")
    assert says("--answer", "yes") == ["paid: desk", "refused: "]


def test_a_claim_of_small_amounts_asks_nothing(says):
    assert says("paint=80") == ["paid: paint", "refused: "]
