"""The schemas of tools, as the strictest endpoint takes them; the reference is `jsonschema`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from graph.core.text import HIDING
from graph.mcp.schema import UnusableError, strict_schema

TEXT = {"type": "string"}
HIDDEN = "".join(map(chr, (0x200B, 0xFE00, 0xFE0F, 0xE0100, 0xE01EF, 0xE0061, 0x202E, 0xAD, 0x3164, 0x85)))


def of(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def only(schema: object) -> object:
    """What becomes of a parameter's schema."""
    return strict_schema(of(a=schema))["properties"]["a"]


@pytest.mark.parametrize(
    "schema",
    [
        of(),
        {**of(a=TEXT), "required": ["a"], "additionalProperties": False},
        {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"enum": ["x", 1, None, {"k": 1}]}}, "title": "T"},
        {**of(a={"type": ["string", "null"], "default": None}), "$schema": "http://json-schema.org/draft-07/schema#"},
        of(a={"type": "array", "items": {"anyOf": [TEXT, {"type": "integer", "minimum": 0}]}, "maxItems": 5}),
        of(a={"type": "string", "format": "date-time", "pattern": "^[a-z]+$", "x-own": {"any": ["thing", 1]}}),
        of(a={"description": "예산 😀", "examples": ["x"], "const": "👍️"}),
    ],
)
def test_what_every_endpoint_takes_stays_as_it_is(schema: dict[str, object]) -> None:
    assert strict_schema(schema) == schema


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"anyOf": [{"type": "array"}]}, {"anyOf": [{"type": "array", "items": {}}]}),
        ({"type": "array", "items": [TEXT, {"type": "array"}]}, None),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"type": "array", "prefixItems": [TEXT]}, {"type": "array", "prefixItems": [TEXT], "items": {}}),
        ({"type": "string", "required": True, "description": None, "enum": []}, TEXT),
        ({"minimum": 1, "exclusiveMinimum": True, "exclusiveMaximum": False}, {"minimum": 1}),
        ({"pattern": r"^[\p{L}\-]+$"}, {"description": r"(pattern: ^[\p{L}\-]+$)"}),
        ({"description": "Name.", "pattern": "(?<year>a)"}, {"description": "Name. (pattern: (?<year>a))"}),
        ({"pattern": "[[a]"}, {"description": "(pattern: [[a])"}),
        ({"$ref": "https://example.com/schema.json"}, {}),
        ({"$ref": "#/$defs/Missing", "$id": "x", "$dynamicRef": "#a"}, {}),
        (True, {}),
        (False, {"not": {}}),
        ({"patternProperties": {r"^\p{L}": TEXT}, "additionalProperties": False}, {}),
        ({"required": ["b", "b"], "enum": [1, "1"]}, {"required": ["b"], "enum": [1, "1"]}),
        ({"anyOf": [], "dependencies": {"a": ["b"]}, "minLength": 2.0}, {"minLength": 2}),
    ],
)
def test_what_some_endpoints_refuse_is_made_what_they_take(schema: object, made: object) -> None:
    expected = made or {"type": "array", "items": {"anyOf": [TEXT, {"type": "array", "items": {}}]}}
    assert only(schema) == (made if made is not None else expected)


CHOICE = {
    "type": "object",
    "oneOf": [
        {"properties": {"kind": {"const": "file"}, "path": TEXT}, "required": ["kind", "path"]},
        {"properties": {"kind": {"const": "page"}, "url": TEXT}, "required": ["kind", "url"]},
    ],
}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({**of(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, of(a=TEXT, b=TEXT)),
        ({**of(a=TEXT), "not": {"required": ["b"]}, "if": {}, "then": {}, "enum": [{}]}, of(a=TEXT)),
        (CHOICE, of(kind={"anyOf": [{"const": "file"}, {"const": "page"}]}, path=TEXT, url=TEXT)),
        (
            {
                "allOf": [{"$ref": "#/definitions/A"}, of(b=TEXT)],
                "definitions": {"A": {**of(a=TEXT), "required": ["a"]}},
            },
            {**of(a=TEXT, b=TEXT), "definitions": {"A": {**of(a=TEXT), "required": ["a"]}}, "required": ["a"]},
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": of(a=TEXT)}}, {**of(a=TEXT), "$defs": {"A": of(a=TEXT)}}),
        ({}, of()),
        ({"type": None, "properties": None, "required": None}, of()),
        ({"type": ["object", "null"]}, of()),
        ({**of(a=TEXT), "required": ["a", "gone"]}, {**of(a=TEXT), "required": ["a"]}),
        ({**of(), "required": []}, of()),
    ],
)
def test_the_whole_is_an_object_without_conditions(schema: object, made: object) -> None:
    assert strict_schema(schema) == made


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "array"}, "type"),
        (of(a={"type": "strin"}), "properties.a.type"),
        (of(a={"type": [{}]}), "properties.a.type"),
        (of(a={"anyOf": [{"minimum": "low"}]}), "properties.a.anyOf.minimum"),
        (of(a={"minLength": -1}), "properties.a.minLength"),
        (of(a={"maximum": True}), "properties.a.maximum"),
        (of(a={"enum": "x"}), "properties.a.enum"),
        (of(a={"items": "x"}), "properties.a.items"),
        (of(a={"description": ["x"]}), "properties.a.description"),
        ({"properties": ["a"]}, "properties"),
        ({"required": "a"}, "required"),
        ({"required": [1]}, "required"),
        (of(a={"enum": [f"x{HIDDEN}"]}), "properties.a.enum"),
        (of(a={"const": "\U000e0061"}), "properties.a.const"),
        (of(a=of(**{"b\u200b": TEXT})), "properties.a.properties"),
        ([], "inputSchema"),
        (None, "inputSchema"),
    ],
)
def test_what_no_endpoint_takes_is_refused_at_its_place(schema: object, place: str) -> None:
    with pytest.raises(UnusableError) as caught:
        strict_schema(schema)
    assert (caught.value.reason, ".".join(reversed(caught.value.keys))) == ("schema", place)


def test_a_schema_in_schemas_without_end_is_refused() -> None:
    schema: Mapping[str, object] = TEXT
    for depth in range(200):
        schema = {"anyOf": [schema]}
        if depth < 50:
            strict_schema(of(a=schema))
    with pytest.raises(UnusableError):
        strict_schema(of(a=schema))


@pytest.mark.parametrize("name", ["$filter", "이름", "a b", "x" * 65, "", "a\u200b"])
def test_a_parameter_whose_name_some_endpoint_refuses_is_named(name: str) -> None:
    with pytest.raises(UnusableError) as caught:
        strict_schema(of(**{name: TEXT}))
    assert (caught.value.reason, caught.value.keys) in (("parameter", [name]), ("schema", ["properties"]))


def test_what_isnt_seen_stands_in_no_text() -> None:
    texts = {"description": f"Look{HIDDEN}", "title": f"T{HIDDEN}", "x-note": [{f"k{HIDDEN}": HIDDEN}]}
    nested = {**texts, "enum": ["a"], "enumDescriptions": [f"A{HIDDEN}"], "examples": [HIDDEN]}
    schema = {**texts, **of(a={**texts, "items": nested, "anyOf": [nested]}), "$defs": {"D": nested}}
    made = strict_schema(schema)
    assert not HIDING.search(json.dumps(made, ensure_ascii=False))
    assert (made["description"], made["$defs"]["D"]["enumDescriptions"]) == ("Look", ["A"])


def schemas_within(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, each in schema.items():
            if key not in {"const", "default", "enum", "examples", "x-own"}:
                yield from schemas_within(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from schemas_within(each)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab$"), inner, max_size=3),
    max_leaves=4,
)
_KEYWORDS = [
    *("type", "properties", "items", "anyOf", "oneOf", "allOf", "not", "if", "enum", "const", "default", "required"),
    *(
        "pattern",
        "patternProperties",
        "additionalProperties",
        "prefixItems",
        "minimum",
        "exclusiveMinimum",
        "minLength",
    ),
    *("multipleOf", "uniqueItems", "description", "format", "$ref", "$defs", "$id", "dependencies", "examples"),
    *("dependentRequired", "contains", "propertyNames", "deprecated", "$anchor", "contentSchema", "x-own"),
]


def _schemas(inner: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    fitting = {
        **dict.fromkeys(("properties", "$defs", "patternProperties"), st.dictionaries(st.sampled_from("abc"), inner)),
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), st.lists(inner, max_size=3)),
        **dict.fromkeys(("not", "if", "items", "additionalProperties", "contains"), inner),
        "type": st.sampled_from(["array", "object", "string", ["array", "null"], None]),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/properties/b", "#/$defs/none", "http://a.example"]),
        "required": st.lists(st.sampled_from("abc")) | st.booleans(),
        "pattern": st.sampled_from(["^a$", r"\p{L}", "(", "[[a]", "a{99999999999}"]),
    }
    keyword = st.sampled_from(_KEYWORDS)
    pair = keyword.flatmap(lambda key: st.tuples(st.just(key), fitting.get(key, _VALUES) | _VALUES))
    return st.lists(pair, max_size=5).map(dict)


@given(st.recursive(_VALUES, _schemas, max_leaves=12).filter(lambda value: isinstance(value, dict)))
def test_whatever_is_taken_is_valid_and_has_what_strict_endpoints_ask_for(schema: dict[str, object]) -> None:
    try:
        made = strict_schema(schema)
    except UnusableError:
        return
    Draft202012Validator.check_schema(made)
    assert made["type"] == "object"
    assert made.keys().isdisjoint({"anyOf", "oneOf", "allOf", "not", "enum", "$ref"})
    for each in schemas_within({key: made[key] for key in made.keys() & {"properties", "$defs", "items"}}):
        assert "array" not in each.get("type", ()) or "items" in each
    assert strict_schema(made) == made


@pytest.mark.parametrize(
    "schema",
    [
        of(a={"enum": [{"k": 1}, *range(7_000)]}),
        of(a={"type": [{"k": 1}, *range(7_000)]}),
        of(a={"required": [{"k": 1}, *range(7_000)]}),
        {**of(), "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 20} for n in range(50)}},
        {"$ref": "#/$defs/d0", "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 20} for n in range(50)}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        of(**{"x" * 20_000: {f"k{n}": n for n in range(3_000)}}),
        of(a={"pattern": "(" * 40_000}),
        of(a={"pattern": "(a|" * 400 + "b" + ")*" * 400}),
        {"anyOf": [of(**{f"p{n}": {"const": m}}) for m in range(80) for n in range(10)]},
    ],
)
def test_time_grows_with_the_length_alone(schema: dict[str, object]) -> None:
    began = time.process_time()
    with suppress(UnusableError):
        strict_schema(schema)
    assert time.process_time() - began < 0.5
