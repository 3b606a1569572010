"""Makes the schema of a tool's arguments one that every endpoint takes, in time that grows with its length alone.

`jsonschema` compares the items of lists pairwise, and lets through what endpoints refuse, and with it each request.
What is left out here the server itself still asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from graph.core.text import HIDING
from graph.value.mcp import UnusableReason

_MOST_DEPTH: Final = 60
_MOST_BRANCHES: Final = 100
_PATTERN_CHARS: Final = 1_000
_TYPES: Final = ["array", "boolean", "integer", "null", "number", "object", "string"]
_LISTS: Final = {"anyOf", "oneOf", "allOf", "prefixItems"}
_MAPS: Final = {"properties", "$defs", "definitions"}
_COUNTS: Final = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
_DATA: Final = {"const", "default"}
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(_LISTS | {"enum", "required", "examples"}, (list,)),
    **dict.fromkeys(_MAPS, (dict,)),
    **dict.fromkeys({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} | _COUNTS, (int, float)),
    **dict.fromkeys(("title", "description", "format", "pattern", "$schema", "$comment", "$ref"), (str,)),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), (bool,)),
}
# What the strictest endpoints don't know.
_LEFT_OUT: Final = {
    *("$id", "$anchor", "$vocabulary", "$recursiveRef", "$recursiveAnchor", "$dynamicRef", "$dynamicAnchor"),
    *("if", "then", "else", "contains", "minContains", "maxContains", "multipleOf"),
    *("patternProperties", "propertyNames"),
    *("dependencies", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
    *("additionalItems", "contentSchema", "contentEncoding", "contentMediaType"),
}
_NOT_AT_ROOT: Final = {"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"}
_PARAMETER: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
# Python warns of these in a pattern, as they are to mean something else one day.
_SETS_OF_SETS: Final = re.compile(r"\[\[|--|&&|~~|\|\|")
_EMOJI_SIGN: Final = "\ufe0f"


class UnusableError(Exception):
    """A tool can't be used; `keys` lead to the place in its schema, the last one first."""

    def __init__(self, reason: UnusableReason, *keys: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keys = [*keys]


def strict_schema(raw: object) -> dict[str, Any]:
    """Returns the schema for the strictest endpoint: an object with properties, without conditions on the whole.

    Raises `UnusableError`.
    """
    if not isinstance(raw, dict):
        raise UnusableError("schema", "inputSchema")
    root = _schema({"type": "object", "properties": {}} | raw, raw, _MOST_DEPTH)
    root |= _merged(root, root, iter(range(_MOST_BRANCHES)))
    if "object" not in root.get("type", "object"):
        raise UnusableError("schema", "type")
    for name in root["properties"]:
        if not _PARAMETER.fullmatch(name):
            raise UnusableError("parameter", name)
    root["type"] = "object"
    return {key: each for key, each in root.items() if key not in _NOT_AT_ROOT and (key != "required" or each)}


def _schema(value: object, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if isinstance(value, bool):
        return {} if value else {"not": {}}
    if not isinstance(value, dict) or not depth:
        raise UnusableError("schema")
    made = _each(value.items(), partial(_value, root=root, depth=depth - 1))
    made = {_seen(key): each for key, each in made.items() if each is not None or key in _DATA}
    if "patternProperties" in value and made.get("additionalProperties") is False:
        del made["additionalProperties"]
    if "pattern" in made and not _is_known(made["pattern"]):
        made["description"] = f"{made.get('description', '')} (pattern: {made.pop('pattern')})".lstrip()
    if "array" in made.get("type", ()):
        made.setdefault("items", {})
    return made


def _each(items: Iterable[tuple[str, Any]], read: Callable[[str, Any], Any]) -> dict[str, Any]:
    made = {}
    for key, value in items:
        try:
            made[key] = read(key, value)
        except UnusableError as error:
            error.keys.append(key)
            raise
    return made


def _value(key: str, value: Any, *, root: Mapping[str, Any], depth: int) -> Any:  # noqa: ANN401, C901, PLR0911 - one line a kind of keyword
    """Returns what stands at a keyword, None if it is left out, as what is null, empty, or of an earlier draft."""
    schema = partial(_schema, root=root, depth=depth)
    is_old = isinstance(value, bool) and key in {"required", "exclusiveMinimum", "exclusiveMaximum"}
    if is_old or key in _LEFT_OUT or (value == [] and key in {*_LISTS, "enum"}) or (value is None and key not in _DATA):
        return None
    if (key in _KINDS and type(value) not in _KINDS[key]) or (key in _COUNTS and value < 0):
        raise UnusableError("schema")
    if key == "items" and isinstance(value, list):
        return {"anyOf": [*map(schema, value)]} if value else {}
    if key in {"items", "not"} or (key == "additionalProperties" and not isinstance(value, bool)):
        return schema(value)
    if key in _LISTS:
        return [*map(schema, value)]
    if key in _MAPS:
        _unhidden([*value])
        return _each(value.items(), lambda _, each: schema(each))
    if key == "$ref":
        return value if value == "#" or _at(root, value) else None
    if key == "type" and not (
        value in _TYPES or (isinstance(value, list) and value and all(map(_TYPES.__contains__, value)))
    ):
        raise UnusableError("schema")
    if key == "required" and not all(isinstance(name, str) for name in value):
        raise UnusableError("schema")
    if key in {"type", "required"} and isinstance(value, list):
        return [*dict.fromkeys(map(_unhidden, value))]
    return int(value) if key in _COUNTS else _unhidden(value) if key in {*_DATA, "enum"} else _seen(value)


def _seen(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape, returned in its shape
    """Returns what only people and models read, without the signs that people don't see."""
    return _texts(value, partial(HIDING.sub, ""))


def _unhidden(value: Any) -> Any:  # noqa: ANN401 - same
    """Returns what goes back to the server as it is. Raises `UnusableError`: some of it isn't seen."""

    def checked(text: str) -> str:
        if HIDING.search(text.replace(_EMOJI_SIGN, "")):
            raise UnusableError("schema")
        return text

    return _texts(value, checked)


def _texts(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - same
    if isinstance(value, dict):
        return {change(key): _texts(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [_texts(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


def _is_known(pattern: str) -> bool:
    """Returns whether endpoints can read a pattern: theirs are Python's, those of servers often JavaScript's."""
    if len(pattern) > _PATTERN_CHARS or _SETS_OF_SETS.search(pattern):
        return False
    try:
        return bool(re.compile(pattern))
    except (re.error, RecursionError, OverflowError):
        return False


def _at(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """Returns the schema that a reference leads to within the document, None if elsewhere or to none."""
    found: object = root if reference.startswith(("#/$defs/", "#/definitions/", "#/properties/")) else None
    for part in reference.split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any], branches: Iterator[int]) -> dict[str, Any]:
    """Returns the properties of a schema and of all that it is combined of, and those that are required in any case."""
    properties, required = dict(schema.get("properties", {})), list(schema.get("required", ()))
    followed = _at(root, schema.get("$ref", ""))
    several = {"allOf": [*([followed] if followed else []), *schema.get("allOf", ())]}
    for key, parts in (several | {key: schema.get(key, ()) for key in ("anyOf", "oneOf")}).items():
        for part in parts:
            if next(branches, None) is None:
                break
            more = _merged(part, root, branches)
            for name, each in more["properties"].items():
                known = properties.get(name, each)
                choices = known["anyOf"] if known.keys() == {"anyOf"} else [known]
                properties[name] = known if each in choices else {"anyOf": [*choices, each]}
            required += more["required"] if key == "allOf" else ()
    return {"properties": properties, "required": [name for name in dict.fromkeys(required) if name in properties]}
