"""Faults by place and operator: which function or constant, what is changed in it, and which of those it is.

In `title_of` of `graph/core/text.py`, `negate 2` is the second condition turned round, and `Call 3 = False` has that in
place of the third call. Such a mutant stays what it is while lines are moved, wrapped or commented.

python -m tests.mutation.place FILE [PLACE]    lists the places of a file, or what can be changed in one
"""

from __future__ import annotations

import ast
import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

_PAIRS: Final[tuple[tuple[type[ast.AST], type[ast.AST]], ...]] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
_OTHER: Final = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_LEFT_OUT: Final = ("annotation", "returns", "decorator_list")
_YES, _NO = (ast.Constant(value) for value in (True, False))
# The operator, the node that it replaces and what takes its place.
_Operators = Iterator[tuple[str, Any, Any]]


class Change(NamedTuple):
    """One fault: its name, the node of the file's syntax that is replaced, and the source in its place."""

    name: str
    node: Any
    source: str


def mutated(source: str, place: str, name: str) -> str:
    """Returns a file's source with one change; raises `LookupError` if there is no such place or change."""
    change = next((each for each in changes(source, place, name.partition(" = ")[2]) if each.name == name), None)
    if change is None:
        msg = f"there is no {name!r} in {place}"
        raise LookupError(msg)
    return replaced(source, change)


def replaced(source: str, change: Change) -> str:
    """Returns a file's source with a change made; everything else stays byte for byte."""
    node = change.node
    lines = source.encode().splitlines(keepends=True)  # the columns of syntax are bytes
    before = [*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]]
    behind = [lines[node.end_lineno - 1][node.end_col_offset :], *lines[node.end_lineno :]]
    return b"".join([*before, change.source.encode(), *behind]).decode()


def places(source: str) -> dict[str, ast.stmt]:
    """Returns the functions, methods and constants of a file by their qualified names."""
    found: dict[str, ast.stmt] = {}

    def look(body: list[ast.stmt], within: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{within}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[within + node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                named = target.elts[0] if isinstance(target, ast.Tuple) else target
                if isinstance(named, ast.Name):
                    found[within + named.id] = node

    look(ast.parse(source).body, "")
    return found


def changes(source: str, place: str, new: str = "") -> Iterator[Change]:
    """Yields all changes of a place, in the order of its source; those of one operator are numbered from 1 on.

    With `new`, each expression may be replaced by it, too: "Name 2 = new".
    """
    whole = places(source).get(place)
    numbers: Counter[str] = Counter()
    for node in nodes_of(whole) if whole is not None else ():
        kind = type(node).__name__
        if new and isinstance(node, ast.expr):
            numbers[kind] += 1
            yield Change(f"{kind} {numbers[kind]} = {new}", node, f"({new})")
        operators = _OPERATORS.get(type(node))
        for operator, target, other in operators(node) if operators is not None else ():
            numbers[operator] += 1
            # In brackets, as it may bind otherwise than what it takes the place of.
            text = f"({ast.unparse(other)})" if isinstance(other, ast.expr) else ast.unparse(other)
            yield Change(f"{operator} {numbers[operator]}", target, text)


def nodes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes below one that are read, not written, without annotations, patterns and documentation.

    What a formatted string holds is left out, too: Python 3.11 doesn't know its place.
    """
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_documentation = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            is_left_out = isinstance(child, ast.JoinedStr | ast.pattern) or name in _LEFT_OUT
            if isinstance(child, ast.AST) and not (is_documentation or is_left_out):
                if isinstance(getattr(child, "ctx", ast.Load()), ast.Load):
                    yield child
                yield from nodes_of(child)


def _with(node: Any, **fields: object) -> Any:  # noqa: ANN401  # a node of the same class
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _without_each(nodes: list[Any]) -> Iterator[list[Any]]:
    return ([*nodes[:number], *nodes[number + 1 :]] for number in range(len(nodes)))


def _condition(test: ast.expr) -> _Operators:
    yield from zip(("negate", "always", "never"), (test,) * 3, (ast.UnaryOp(ast.Not(), test), _YES, _NO), strict=True)


def _choice(node: ast.IfExp) -> _Operators:
    yield from _condition(node.test)
    yield from (("then", node, node.body), ("else", node, node.orelse))


def _statement(node: ast.stmt) -> _Operators:
    yield "drop statement", node, ast.Pass()


def _boolean(node: ast.BoolOp) -> _Operators:
    yield "and or", node, _with(node, op=_OTHER[type(node.op)]())
    for rest in _without_each(node.values):
        yield "drop operand", node, rest[0] if len(rest) == 1 else _with(node, values=rest)


def _comparison(node: ast.Compare) -> _Operators:
    yield "compare", node, _with(node, ops=[_OTHER[type(node.ops[0])](), *node.ops[1:]])


def _arithmetic(node: ast.BinOp) -> _Operators:
    yield from (("left", node, node.left), ("right", node, node.right))
    if (other := _OTHER.get(type(node.op))) is not None:
        yield "other operator", node, _with(node, op=other())


def _call(node: ast.Call) -> _Operators:
    if isinstance(node.func, ast.Attribute):
        yield "receiver", node, node.func.value
    yield from (("argument", node, argument) for argument in node.args)
    yield from (("drop argument", node, _with(node, args=rest)) for rest in _without_each(node.args))
    yield from (("drop keyword", node, _with(node, keywords=rest)) for rest in _without_each(node.keywords))


def _collection(node: ast.Tuple | ast.List | ast.Set) -> _Operators:
    yield from (("drop element", node, _with(node, elts=rest)) for rest in _without_each(node.elts))


def _comprehension(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> _Operators:
    for loop in node.generators:
        for test, rest in zip(loop.ifs, _without_each(loop.ifs), strict=True):
            yield from _condition(test)
            loops = [_with(loop, ifs=rest) if each is loop else each for each in node.generators]
            yield "drop filter", node, _with(node, generators=loops)


def _constant(node: ast.Constant) -> _Operators:
    if isinstance(node.value, bool):
        yield "constant", node, ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield from (("more", node, ast.Constant(node.value + 1)), ("less", node, ast.Constant(node.value - 1)))
    elif node.value and isinstance(node.value, str):
        yield "constant", node, ast.Constant("")


_OPERATORS: Final[dict[type[ast.AST], Callable[[Any], _Operators]]] = {
    **dict.fromkeys((ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete), _statement),
    **dict.fromkeys((ast.If, ast.While), lambda node: _condition(node.test)),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _comprehension),
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), _collection),
    ast.UnaryOp: lambda node: iter([("drop sign", node, node.operand)]),
    ast.Subscript: lambda node: iter([("whole", node, node.value)]),
    ast.IfExp: _choice,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.BinOp: _arithmetic,
    ast.Call: _call,
    ast.Constant: _constant,
}


def main(file: str, place: str = "") -> None:
    """Writes what can be changed in a place, or the places of a file."""
    source = Path(file).read_text(encoding="utf-8")
    if not place:
        sys.stdout.writelines(f"{name}\n" for name in places(source))
    for change in changes(source, place, "…") if place else ():
        before = " ".join((ast.get_source_segment(source, change.node) or "").split())
        sys.stdout.write(f"{change.name}: {before} -> {change.source}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
