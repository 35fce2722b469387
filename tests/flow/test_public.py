"""The public names of flows: they load, and the pages explain them."""

import re
from pathlib import Path

import pytest

from pregel.graph import flow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", flow.__all__)
def test_every_public_name_has_a_home_and_is_documented(name):
    assert getattr(flow, name).__doc__
    assert name in dir(flow)
    pages = "".join((ROOT / "docs" / page).read_text() for page in ("flow.md", "errors.md"))
    assert re.search(rf"\b{name}\b", pages)


def test_every_error_is_explained():
    page = (ROOT / "docs" / "errors.md").read_text()
    errors = [name for name in flow.__all__ if name.endswith("Error")]
    assert errors
    assert [name for name in errors if not re.search(rf"(?m)^\| `{name}`", page)] == []
