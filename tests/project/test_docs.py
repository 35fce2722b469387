"""The documentation says what the library does: its examples run, and it names every name."""

import io
import re
import subprocess
import sys
import textwrap
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import pregel
from pregel import errors
from pregel.graph import agent
from pregel.graph.agent import middleware, models

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if path.is_file())
FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>\S*)")
OUTPUTS = {"text", "output"}
# Folders that only exist on the machine of whoever wrote a text.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home)/")


@dataclass
class Block:
    """A fenced block: its language, the number of its first line of code, its code, and what it must print."""

    language: str
    line: int
    code: str
    output: str | None = None


def blocks_of(text):
    """Return the fenced blocks of a page; a block of output that directly follows belongs to the one before it."""
    lines = text.splitlines()
    blocks = []
    previous_end = None
    index = 0
    while index < len(lines):
        opening = FENCE.match(lines[index])
        index += 1
        if not opening:
            continue
        start = index
        while lines[index].strip() != opening["ticks"]:  # an unclosed block is an IndexError
            index += 1
        code = textwrap.dedent("".join(f"{line}\n" for line in lines[start:index]))
        block = Block(opening["language"], start + 1, code)
        directly = previous_end is not None and not "".join(lines[previous_end : start - 1]).strip()
        if block.language in OUTPUTS and directly and blocks[-1].language == "python":
            blocks[-1].output = code
        blocks.append(block)
        index += 1
        previous_end = index
    return blocks


def run(blocks, name, path, monkeypatch):
    """Run the blocks of a page in order in a module of their own; each prints what the page says it prints."""
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)  # annotations are looked up in the module of their class
    for block in blocks:
        if block.language != "python":
            continue
        printed = io.StringIO()
        padded = "\n" * (block.line - 1) + block.code  # so that a traceback names the line of the page
        with warnings.catch_warnings(), redirect_stdout(printed):
            warnings.simplefilter("error")
            exec(compile(padded, str(path), "exec"), vars(module))  # noqa: S102 - the examples are our own
        if block.output is not None:
            assert printed.getvalue() == block.output, f"{path}:{block.line} prints something else"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_examples_run_and_print_what_they_say(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # an example needs nothing of the repository and leaves nothing in it
    run(blocks_of(path.read_text(encoding="utf-8")), f"page_{path.stem}", path, monkeypatch)


PAGE = """
# A page

```python
print(x := 1)
```

```text
1
```

```sh
this is not run
```

  ```python
  print(x + 1)
  ```

A word between.

```text
no output of anything
```
"""


def test_blocks_share_names_and_only_the_output_that_directly_follows_counts(monkeypatch):
    blocks = blocks_of(PAGE)
    assert [(block.language, block.line, block.output) for block in blocks] == [
        ("python", 5, "1\n"),
        ("text", 9, None),
        ("sh", 13, None),
        ("python", 17, None),
        ("text", 23, None),
    ]
    run(blocks, "page_sample", "sample.md", monkeypatch)
    assert sys.modules["page_sample"].x == 1


def test_a_block_that_prints_something_else_or_warns_fails(monkeypatch):
    with pytest.raises(AssertionError, match=r"sample\.md:2 prints something else"):
        run(blocks_of("```python\nprint(2)\n```\n```text\n1\n```\n"), "page_sample", "sample.md", monkeypatch)
    with pytest.raises(UserWarning, match="careful"):
        run(
            blocks_of("```python\nimport warnings\nwarnings.warn('careful')\n```\n"),
            "page_sample",
            "sample.md",
            monkeypatch,
        )


@pytest.mark.parametrize("code", sorted(errors.STRICTNESS_CODES))
def test_every_strictness_code_has_an_entry(code):
    assert re.search(rf"(?m)^#+ .*`{code}`", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"))


def test_every_error_and_warning_is_explained():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    public = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert [name for name in public if not re.search(rf"\b{name}\b", page)] == []


@pytest.mark.parametrize("home", [agent, models, middleware], ids=lambda home: home.__name__)
def test_every_error_of_agents_is_explained(home):
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    public = [name for name in home.__all__ if name.endswith("Error")]
    assert public
    assert [name for name in public if not re.search(rf"(?m)^\| `{name}`", page)] == []


def test_every_public_name_is_documented():
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert [name for name in pregel.__all__ if not re.search(rf"\b{name}\b", text)] == []


def text_of(path):
    """Return a file's text, or nothing if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_no_text_names_a_path_of_somebodys_machine():
    if not (ROOT / ".git").exists():
        pytest.skip("only in a checkout, where git tells the project's files from others")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git stands where it is installed
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    files = [ROOT / name for name in listed.split("\0") if name]
    assert len(files) > len(PAGES)
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        if path.is_file()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("folder", ["work", "root", "home"])
def test_the_search_for_machine_paths_can_fail(folder):
    inside = f"/{folder}/somebody"
    assert MACHINE_PATH.search(f"see {inside}")
    assert not MACHINE_PATH.search(f"https://example.org{inside}")


def test_every_relative_link_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links {target}, which is not there"
