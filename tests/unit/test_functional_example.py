"""The example of functions does what it says, each call with the file alone to go on from."""

import pytest

from examples import functional
from examples.functional import main
from pregel.graph.functional import task


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "folder"
    found.mkdir()
    for name, text in (("a", "one"), ("b", "two"), ("c", "one"), ("d", "two"), ("e", "three"), ("f", "one")):
        (found / name).write_text(text)
    return found


@pytest.fixture
def says(tmp_path, folder, capsys):
    """Return what a call prints, line by line, with short names of files."""

    def call(*words):
        main(str(tmp_path / "tidy.sqlite"), str(folder), *words)
        return capsys.readouterr().out.replace(f"{folder}/", "").splitlines()

    return call


def test_equal_files_ask_and_go_where_that_is_wished(says, folder):
    assert says() == ["1. delete c, f, equal to a?", "2. delete d, equal to b?"]
    assert says("--answer", "yes", "no") == ["deleted: c, f", "kept: a, b, d, e"]
    assert sorted(each.name for each in folder.iterdir()) == ["a", "b", "d", "e"]


def test_no_file_is_read_twice_by_a_run_that_died(says, monkeypatch):
    read, original = [], functional.digest.function

    def digest(path):
        if path.endswith("d") and read.count("d") == 0:
            read.append("d")
            raise OSError("the disk is gone")
        read.append(path[-1])
        return original(path)

    with monkeypatch.context() as patch:
        patch.setattr(functional, "digest", task(digest))
        with pytest.raises(OSError, match="gone"):
            says()
        assert says() == ["1. delete c, f, equal to a?", "2. delete d, equal to b?"]
    assert sorted(read) == ["a", "b", "c", "d", "d", "e", "f"]
    assert says("--answer", "no", "no") == ["deleted: nothing", "kept: a, b, c, d, e, f"]
