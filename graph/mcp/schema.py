"""Makes the schema of a tool's arguments one that every endpoint takes, in time that grows with its length alone.

The checks of `jsonschema` compare the items of a list pairwise, and let through what an endpoint refuses, and with it
each request. What is left out here the server still holds its arguments to, and tells the model so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from graph.core.text import HIDING

_MOST_DEPTH: Final = 60
_MOST_BRANCHES: Final = 100
_PATTERN_CHARS: Final = 1_000
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_SCHEMAS: Final = {"not", "if", "then", "else", "contains", "propertyNames", "contentSchema"}
_OR_BOOLEAN: Final = {"additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"}
_LISTS: Final = {"anyOf", "oneOf", "allOf", "prefixItems"}
_MAPS: Final = {"properties", "$defs", "definitions", "dependentSchemas"}
_NUMBERS: Final = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_COUNTS: Final = {
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")
}
_TEXTS: Final = {"title", "description", "format", "$schema", "$comment", "contentEncoding", "contentMediaType"}
_MARKS: Final = {"uniqueItems", "readOnly", "writeOnly", "deprecated"}
# Names of other places, which the strictest endpoints don't follow, and rules that they don't know.
_LEFT_OUT: Final = {
    *("$id", "$anchor", "$vocabulary", "$recursiveRef", "$recursiveAnchor", "$dynamicRef", "$dynamicAnchor"),
    *("dependencies", "dependentRequired", "patternProperties"),
}
_NOT_AT_ROOT: Final = {"$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else"}
_PARAMETER: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_REFERENCE: Final = re.compile(r"#/(?:\$defs|definitions|properties)/")
_EMOJI_SIGN: Final = "\ufe0f"
# Python warns of these in a pattern, as they are to mean something else one day.
_SETS_OF_SETS: Final = re.compile(r"\[\[|--|&&|~~|\|\|")


class SchemaError(ValueError):
    """A schema that no endpoint would take; `parameter` is the name that not every endpoint takes, if it is that."""

    def __init__(self, *, parameter: str = "") -> None:
        super().__init__()
        self.parameter = parameter
        self.keys: list[str] = []

    @property
    def place(self) -> str:
        return ".".join(reversed(self.keys))


def strict_schema(raw: object) -> dict[str, Any]:
    """Returns the schema for the strictest endpoint: an object with properties, without conditions on the whole.

    Raises `SchemaError`.
    """
    if not isinstance(raw, Mapping):
        raise SchemaError
    root = _Reading(raw).schema({"type": "object", "properties": {}} | dict(raw), _MOST_DEPTH)
    root |= _merged(root, root, iter(range(_MOST_BRANCHES)))
    if "object" not in root.get("type", "object"):
        raise _wrong("type")
    for name in root["properties"]:
        if not _PARAMETER.fullmatch(name):
            raise SchemaError(parameter=name)
    root["type"] = "object"
    return {key: each for key, each in root.items() if key not in _NOT_AT_ROOT and (key != "required" or each)}


def _wrong(key: str) -> SchemaError:
    error = SchemaError()
    error.keys.append(key)
    return error


class _Reading:
    """The schemas of one document; `_root` is the document as it came."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def schema(self, value: object, depth: int) -> dict[str, Any]:
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, dict) or not depth:
            raise SchemaError
        made = self._read(value, depth)
        if "patternProperties" in value and made.get("additionalProperties") is False:
            del made["additionalProperties"]
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if value.get(exclusive) is True and bound in made:  # as draft 4 has it
                made[exclusive] = made.pop(bound)
        if "pattern" in made and not _is_known(made["pattern"]):
            told = made.get("description", ""), f"(pattern: {made.pop('pattern')})"
            made["description"] = " ".join(filter(None, told))
        if "array" in made.get("type", ()):
            made.setdefault("items", {})
        return made

    def _read(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, each in value.items():
            # Some servers write null for what they don't say, and true at a parameter that is required.
            if key in _LEFT_OUT or (each is None and key not in {"const", "default"}):
                continue
            try:
                found = self._value(key, each, depth - 1)
            except SchemaError as error:
                error.keys.append(_seen(key))
                raise
            if found is not None or key in {"const", "default"}:
                made[_seen(key)] = found
        return made

    def _value(self, key: str, value: Any, depth: int) -> Any:  # noqa: ANN401, C901, PLR0911, PLR0912 - one line a kind of keyword
        """Returns what stands at a keyword, None if it is left out."""
        match key:
            case "type":
                kinds = value if isinstance(value, list) else [value]
                if not kinds or any(kind not in _TYPES for kind in kinds):
                    raise SchemaError
                return [*dict.fromkeys(kinds)] if isinstance(value, list) else value
            case "items" if isinstance(value, list):  # as draft 7 has tuples
                return {"anyOf": [self.schema(each, depth) for each in value]} if value else {}
            case "items":
                return self.schema(value, depth)
            case "required" if isinstance(value, bool):
                return None
            case "required":
                if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                    raise SchemaError
                return [*dict.fromkeys(map(_unhidden, value))]
            case "enum":
                if not isinstance(value, list):
                    raise SchemaError
                return [*{json.dumps(each, sort_keys=True): _unhidden(each) for each in value}.values()] or None
            case "const" | "default":
                return _unhidden(value)
            case "examples":
                return _seen(value) if isinstance(value, list) else None
            case "pattern" if isinstance(value, str):
                return _seen(value)
            case "$ref" if isinstance(value, str):
                return value if value == "#" or _at(self._root, value) else None
        if key in _SCHEMAS:
            return self.schema(value, depth)
        if key in _OR_BOOLEAN:
            return value if isinstance(value, bool) else self.schema(value, depth)
        if key in _LISTS and isinstance(value, list):
            return [self.schema(each, depth) for each in value] or None
        if key in _MAPS and isinstance(value, dict):
            return {_unhidden(name): self._named(name, each, depth) for name, each in value.items()}
        if key in _NUMBERS and isinstance(value, bool) and key.startswith("exclusive"):
            return None
        if key in _NUMBERS and _is_number(value) and (key != "multipleOf" or value > 0):
            return value
        if key in _COUNTS and _is_number(value) and value >= 0 and value == int(value):
            return int(value)
        if (key in _TEXTS and isinstance(value, str)) or (key in _MARKS and isinstance(value, bool)):
            return _seen(value)
        if key in {"pattern", "$ref"} | _LISTS | _MAPS | _NUMBERS | _COUNTS | _TEXTS | _MARKS:
            raise SchemaError
        return _seen(value)

    def _named(self, name: str, value: object, depth: int) -> dict[str, Any]:
        try:
            return self.schema(value, depth)
        except SchemaError as error:
            error.keys.append(_seen(name))
            raise


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _seen(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape, returned in its shape
    """Returns what only people and models read, without the signs that people don't see."""
    return _texts(value, lambda text: HIDING.sub("", text))


def _unhidden(value: Any) -> Any:  # noqa: ANN401 - same
    """Returns what goes back to the server as it is. Raises `SchemaError`: some of it isn't seen."""

    def checked(text: str) -> str:
        if HIDING.search(text.replace(_EMOJI_SIGN, "")):
            raise SchemaError
        return text

    return _texts(value, checked)


def _texts(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - same
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _texts(each, change) for key, each in value.items()}
    return [_texts(each, change) for each in value] if isinstance(value, list) else value


def _is_known(pattern: str) -> bool:
    """Returns whether endpoints can read a pattern: theirs are Python's, those of servers often JavaScript's."""
    if len(pattern) > _PATTERN_CHARS or _SETS_OF_SETS.search(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _at(root: Mapping[str, Any], reference: str) -> object:
    """Returns what a reference leads to within the document, None if nothing or elsewhere."""
    found: object = root if _REFERENCE.match(reference) else None
    for part in reference.split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any], branches: Iterator[int]) -> dict[str, Any]:
    """Returns the properties of a schema and of all that it is combined of, and those that are required in any case."""
    properties: dict[str, Any] = dict(schema.get("properties", {}))
    required: list[str] = list(schema.get("required", ()))
    several = {key: schema.get(key, ()) for key in ("allOf", "anyOf", "oneOf")}
    followed = _at(root, str(schema.get("$ref", "")))
    for key, parts in {"$ref": [followed] if followed else [], **several}.items():
        for part in parts:
            if next(branches, None) is None:
                break
            more = _merged(part, root, branches)
            for name, each in more["properties"].items():
                known = properties.get(name, each)
                choices = known["anyOf"] if known.keys() == {"anyOf"} else [known]
                properties[name] = known if each in choices else {"anyOf": [*choices, each]}
            if key in {"$ref", "allOf"}:
                required += more["required"]
    return {"properties": properties, "required": [name for name in dict.fromkeys(required) if name in properties]}
