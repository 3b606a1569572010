"""Finds the regular expressions of the product, and how each is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.fake.timed_pattern import AnyPattern, PatternUse

_ROOT: Final = Path(__file__).parents[2]
_PACKAGES: Final = ("api", "component", "graph", "prompt")
# What a pattern is tried at: the beginning of a text, all of it, or every place.
_METHODS: Final = {
    "match": "match",
    "fullmatch": "fullmatch",
    **dict.fromkeys(("search", "finditer", "findall", "sub", "subn", "split"), "scan"),
}
_LIBRARIES: Final = ("re", "regex")
# What a module has that makes or uses a pattern.
_MATCHES: Final = re.compile(r"import (?:re|regex)\b|from re\b|\.(?:match|fullmatch|search|finditer|findall|subn?)\b")
# Reads the patterns of servers, to tell whether they are some, and matches nothing by them.
_OF_OTHERS: Final = "graph.mcp.schema"
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _Module(NamedTuple):
    """A module of the product that matches: its name and its parsed text."""

    name: str
    tree: ast.Module


@cache
def _modules() -> tuple[_Module, ...]:
    paths = [_ROOT / "app.py", *(path for package in _PACKAGES for path in sorted((_ROOT / package).rglob("*.py")))]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return tuple(_Module(_name(path), ast.parse(text)) for path, text in texts.items() if _MATCHES.search(text))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")


def hidden_patterns() -> list[str]:
    """Returns where a pattern is made that no name of a module holds: in a function, or by `re.sub` and the like."""
    modules = [module for module in _modules() if module.name != _OF_OTHERS]
    return [f"{module.name}:{line}" for module in modules for line in _hidden(module.tree)]


def _hidden(tree: ast.Module) -> Iterator[int]:
    functions = (node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))
    inside = {node for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="re" | "regex", lineno=line):
                yield line
            case ast.Import(names=names, lineno=line) if any(name.name in _LIBRARIES and name.asname for name in names):
                yield line
            case ast.Attribute(lineno=line) if _is_of_re(node, [*_METHODS, *["compile"] * (node in inside)]):
                yield line


def _is_of_re(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) in _LIBRARIES


def uncounted_patterns() -> list[str]:
    """Returns the modules with more calls of `re.compile` than patterns in their names."""
    return [
        module.name
        for module in _modules()
        if (calls := sum(_is_of_re(node, ["compile"]) for node in ast.walk(module.tree)))
        and calls > sum(1 for _ in _patterns_of(module)) + (module.name == _OF_OTHERS)
    ]


def pattern_uses() -> list[PatternUse]:
    """Returns the product's patterns, each by the name that holds it, with the ways in which it is tried."""
    tried = _tried()
    uses: dict[AnyPattern, PatternUse] = {}
    for module in _modules():
        for key, label, pattern in _patterns_of(module):
            known = uses.get(pattern)  # the same pattern in two modules is one object
            methods = {*(tried.get(key) or _METHODS.values()), *(known.methods if known else ())}
            text = pattern.pattern
            uses[pattern] = PatternUse(
                known.name if known else label,
                text.decode("latin-1") if isinstance(text, bytes) else text,
                pattern.flags,
                isinstance(text, bytes),
                tuple(sorted(methods)),
            )
    return list(uses.values())


def _patterns_of(module: _Module) -> Iterator[tuple[str, str, AnyPattern]]:
    """Yields the patterns of a module: the name that holds each, its place in what that name holds, and itself."""
    if any(isinstance(node, ast.Import) and node.names[0].name == "re" for node in module.tree.body):
        values = vars(import_module(module.name))
        for name in _own_names(module.tree):
            key = f"{module.name}.{name}"
            yield from ((key, label, pattern) for label, pattern in _patterns_in(values.get(name), key))


def _own_names(tree: ast.Module) -> Iterator[str]:
    """Yields the names that a module assigns or defines itself."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def _patterns_in(value: Any, label: str) -> Iterator[tuple[str, AnyPattern]]:  # noqa: ANN401  # whatever a module holds
    """Yields the patterns that a value holds, with where they stand in it."""
    pattern = value if isinstance(value, re.Pattern) else getattr(value, "__self__", None)
    if isinstance(pattern, re.Pattern):
        yield label, pattern
    for key, item in _items(value):
        yield from _patterns_in(item, f"{label}[{key!r}]")


def _items(value: Any) -> Iterable[tuple[object, object]]:  # noqa: ANN401  # whatever a module holds
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, (tuple, list, set, frozenset)):
        return enumerate(value)
    if isinstance(value, type):
        return [(name, item) for name, item in vars(value).items() if not name.startswith("__")]
    return [(field.name, getattr(value, field.name)) for field in fields(value)] if is_dataclass(value) else ()


def _tried() -> dict[str, set[str]]:
    """Returns of each name in which ways what it holds is tried: those that a module uses it in.

    What a module does with a list of patterns isn't followed: it counts as tried in every way of that module.
    """
    tried: dict[str, set[str]] = {}
    for module in _modules():
        held = {name: f"{module.name}.{name}" for name in _own_names(module.tree)}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                held |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
        used = [node for node in ast.walk(module.tree) if isinstance(node, ast.Attribute) and node.attr in _METHODS]
        by_name = {node.value: node for node in used if isinstance(node.value, ast.Name) and node.value.id in held}
        # A string can be split, too.
        others = {_METHODS[node.attr] for node in used if node.value not in by_name and node.attr != "split"}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id in held:
                ways = {_METHODS[by_name[node].attr]} if node in by_name else others
                tried.setdefault(held[node.id], set()).update(ways if isinstance(node.ctx, ast.Load) else ())
    return tried
