"""What can be said about one file on its own? Four plain functions from a `Source` to a record."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from hashlib import blake2b

from examples.audit.sources import Source
from examples.audit.state import Docs, Import, Imports, Mark, Marks, Shape

#: How many consecutive code lines a fingerprint covers.
BLOCK = 6
#: Of so many consecutive fingerprints one is kept. Equal stretches of BLOCK + WINDOW - 1 lines are always found.
WINDOW = 5
#: A block with fewer different lines is a table of data.
DISTINCT = 4

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FORKS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
#: The fields of a statement that hold statements.
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def measure(source: Source) -> Shape:
    """Count lines, functions and classes, and find the function with the highest cyclomatic complexity.

    Complexity is McCabe's (1976): one, plus one for each fork (`if`, loop, `except`, `case`, condition in an expression
    or a comprehension, each further operand of `and`/`or`). A nested function counts for itself, not for its owner.
    """
    lines = len(source.lines)
    if source.tree is None:
        return Shape(source.path, lines)
    functions: list[tuple[str, int, int]] = []
    classes = 0
    # Functions and classes still to be looked into, each with the prefix of the names inside.
    scopes: list[tuple[ast.AST, str]] = [(source.tree, "")]
    while scopes:
        scope, prefix = scopes.pop()
        complexity, inner = _forks(scope)
        if isinstance(scope, _FUNCTIONS):
            functions.append((prefix[:-1], scope.lineno, complexity))
        for definition in inner:
            classes += isinstance(definition, ast.ClassDef)
            scopes.append((definition, f"{prefix}{definition.name}."))
    name, line, complexity = max(functions, key=lambda entry: (entry[2], -entry[1]), default=("", 0, 0))
    return Shape(source.path, lines, len(functions), classes, name, line, complexity)


def _forks(scope: ast.AST) -> tuple[int, list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """The complexity of a scope without those inside it, and these."""
    complexity = 1
    inner: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
    nodes = list(ast.iter_child_nodes(scope))
    while nodes:
        node = nodes.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            inner.append(node)
            continue
        if isinstance(node, _FORKS):
            complexity += 1
        elif isinstance(node, ast.BoolOp):
            complexity += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            complexity += 1 + len(node.ifs)
        nodes.extend(ast.iter_child_nodes(node))
    return complexity, inner


def read_docstrings(source: Source) -> Docs:
    """Count the public definitions and those with a docstring: the module, its classes, functions and methods.

    Names that begin with an underscore are private. Test files have none: their names say what they show.
    """
    if source.tree is None or not source.tree.body or is_test(source.path):
        return Docs(source.path, 0, 0)
    public = documented = 0
    definitions: list[ast.AST] = [source.tree]
    while definitions:
        definition = definitions.pop()
        if isinstance(definition, (*_FUNCTIONS, ast.ClassDef)) and definition.name.startswith("_"):
            continue
        if isinstance(definition, (*_FUNCTIONS, ast.ClassDef, ast.Module)):
            public += 1
            documented += ast.get_docstring(definition, clean=False) is not None
        if not isinstance(definition, _FUNCTIONS):
            definitions.extend(_inner_statements(definition))
    return Docs(source.path, public, documented)


def is_test(path: str) -> bool:
    """Whether a file is a part of a test suite, by the customs of pytest and unittest."""
    *folders, name = path.split("/")
    by_name = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return by_name or not {"test", "tests"}.isdisjoint(folders)


def read_imports(source: Source) -> Imports:
    """List the import statements. Those inside functions and under `if TYPE_CHECKING` don't run while loading."""
    if source.tree is None:
        return Imports(source.path, ())
    found: list[Import] = []
    for node, lazy in _import_statements(source.tree):
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, lazy=lazy) for alias in node.names)
        else:
            names = tuple(alias.name for alias in node.names)
            found.append(Import(node.module or "", names, node.level, lazy))
    return Imports(source.path, tuple(found))


def fingerprint(source: Source) -> Marks:
    """Fingerprint each BLOCK of consecutive code lines and keep some, chosen so that copies keep the same ones.

    This is winnowing (Schleimer, Wilkerson, Aiken 2003): of each WINDOW of fingerprints the smallest is kept. Code
    lines are those with a letter or digit that are neither comments nor imports; indentation does not count.
    """
    imports: set[int] = set()
    if source.tree is not None:
        for node, _ in _import_statements(source.tree):
            imports.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(source.lines, 1):
        text = line.strip()
        if text and text[0] != "#" and number not in imports and any(map(str.isalnum, text)):
            code.append(text)
            numbers.append(number)
    marks = [
        Mark(_digest(code[start : start + BLOCK]), start, numbers[start], numbers[start + BLOCK - 1])
        for start in range(len(code) - BLOCK + 1)
        if len({*code[start : start + BLOCK]}) >= DISTINCT
    ]
    return Marks(source.path, tuple(_winnow(marks)))


def _digest(lines: list[str]) -> int:
    # Not hash(): which marks are kept would then differ from process to process.
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest())


def _winnow(marks: list[Mark]) -> Iterator[Mark]:
    """The smallest of each WINDOW of marks, the last of equals, each once and in order."""
    kept = -1
    for end in range(min(WINDOW, len(marks)), len(marks) + 1 if marks else 0):
        smallest = min(marks[max(0, end - WINDOW) : end], key=lambda mark: (mark.digest, -mark.start))
        if smallest.start > kept:
            kept = smallest.start
            yield smallest


def _import_statements(tree: ast.Module) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The import statements in the order of their lines, each with whether it is lazy."""
    found: list[tuple[ast.Import | ast.ImportFrom, bool]] = []
    statements: list[tuple[ast.AST, bool]] = [(tree, False)]
    while statements:
        node, lazy = statements.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, lazy))
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            statements.extend((child, True) for child in node.body)
            statements.extend((child, lazy) for child in node.orelse)
        else:
            lazy = lazy or isinstance(node, _FUNCTIONS)
            statements.extend((child, lazy) for child in _inner_statements(node))
    return sorted(found, key=lambda entry: (entry[0].lineno, entry[0].col_offset))


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _inner_statements(node: ast.AST) -> list[ast.AST]:
    return [child for name in _BODIES for child in getattr(node, name, ())]
