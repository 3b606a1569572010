"""Renders the OpenAPI document as a plain page: no script, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

from api.docs_word import ENGLISH, LANGUAGES, DocsWords

_STYLE: Final = """
:root { color-scheme: light dark; --line: light-dark(#c8ccd2, #464b53); --soft: light-dark(#f2f4f6, #23262b); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.5rem;
  background: light-dark(#fff, #17191c); color: light-dark(#1c2024, #e6e8eb); overflow-wrap: anywhere; }
a { color: light-dark(#0b57a4, #8ab8f0); } a:focus-visible { outline: 2px solid; outline-offset: 2px; }
code { font: .92em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: 4px; }
article { border-top: 1px solid var(--line); padding-block: 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3, h4 { font-size: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: start; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
nav ul { padding-inline-start: 1.2rem; }
"""


def chosen_language(asked: str, accepted: str) -> str:
    """Returns the language of the page.

    Args:
        asked: What `?lang=` says, "" for nothing; another language than ours counts as nothing.
        accepted: The header `Accept-Language`.
    """
    if asked in LANGUAGES:
        return asked
    ranked = []
    for place, part in enumerate(accepted.split(",")):
        name, _, weight = part.strip().partition(";q=")
        language = name.strip().lower().partition("-")[0]
        try:
            quality = float(weight or 1)
        except ValueError:
            quality = 0.0
        if language in LANGUAGES and quality > 0:
            ranked.append((-quality, place, language))
    return min(ranked)[2] if ranked else ENGLISH.language


def render(document: Mapping[str, Any], language: str) -> str:
    """Returns the page in one of `LANGUAGES`."""
    words = LANGUAGES[language]
    other = next(name for name in LANGUAGES if name != language)
    operations = [
        (path, method, told) for path, described in document["paths"].items() for method, told in described.items()
    ]
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    return "\n".join(
        [
            f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(words.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f'<p><a href="?lang={other}" lang="{other}" hreflang="{other}">{escape(words.other)}</a></p>',
            f"<h1>{escape(words.title)}</h1>\n<p>{escape(words.lead)}</p>\n<p>{escape(words.token)}</p>",
            f'<p><a href="/openapi.json">{escape(words.document)}</a></p>',
            f"<nav>\n<h2>{escape(words.contents)}</h2>\n<ul>",
            *(_link(path, method, told) for path, method, told in operations),
            "</ul>\n</nav>",
            *(_operation(path, method, told, words) for path, method, told in operations),
            f"<h2>{escape(words.values)}</h2>",
            *(_schema(name, schema, words) for name, schema in sorted(schemas.items())),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _link(path: str, method: str, told: Mapping[str, Any]) -> str:
    return f'<li><a href="#{escape(told["operationId"])}"><code>{method.upper()} {escape(path)}</code></a></li>'


def _operation(path: str, method: str, told: Mapping[str, Any], words: DocsWords) -> str:
    name = told["operationId"]
    parts = [
        f'<article id="{escape(name)}">\n<h3><code>{method.upper()} {escape(path)}</code></h3>',
        f"<p>{escape(words.operations[name])}</p>",
    ]
    if told["parameters"]:
        rows = [
            (_code(taken["name"]), escape(taken["in"]), _type(taken["schema"]), _yes(taken["required"], words))
            for taken in told["parameters"]
        ]
        parts.append(_table(words.takes, (words.field, words.place, words.kind, words.required), rows))
    if "requestBody" in told:
        parts.append(f"<h4>{escape(words.body)}</h4>\n<p>{_contents(told['requestBody'], words)}</p>")
    answers = {status: answer for status, answer in told["responses"].items() if status < "400"}
    for status, answer in answers.items():
        parts.append(f"<h4>{escape(words.answer)} {status}</h4>\n<p>{_contents(answer, words)}</p>")
    errors = [(status, escape(words.statuses[int(status)])) for status in told["responses"] if status not in answers]
    return "\n".join([*parts, _table(words.errors, (), errors), "</article>"])


def _schema(name: str, schema: Mapping[str, Any], words: DocsWords) -> str:
    needed = schema.get("required", ())
    rows = [
        (_code(field), _type(kind), _yes(field in needed, words))
        for field, kind in schema.get("properties", {}).items()
    ]
    table = _table("", (words.field, words.kind, words.required), rows)
    return f'<article id="value-{escape(name)}">\n<h3>{_code(name)}</h3>\n{table}\n</article>'


def _contents(told: Mapping[str, Any], words: DocsWords) -> str:
    contents = told.get("content")
    if not contents:
        return escape(words.no_body)
    return ", ".join(
        _code(kind) + (f": {_type(content['schema'])}" if content else "") for kind, content in contents.items()
    )


def _type(schema: Mapping[str, Any]) -> str:
    """Renders a schema in one line; another value of the document is a link."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#value-{name}">{name}</a>'
    if "enum" in schema:
        return " | ".join(_code(str(value)) for value in schema["enum"])
    if "const" in schema:
        return _code(str(schema["const"]))
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if schema.get("type") == "array":
        return f"{_type(schema.get('items', {}))}[]"
    bounds = [
        f"≥ {schema['minimum']}" if "minimum" in schema else "",
        f"≤ {schema['maximum']}" if "maximum" in schema else "",
    ]
    return escape(" ".join(filter(None, (schema.get("format") or schema.get("type", "…"), *bounds))))


def _table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    title = f"<h4>{escape(caption)}</h4>\n" if caption else ""
    return f"{title}<table>\n" + (f"<tr>{head}</tr>\n" if head else "") + "\n".join(lines) + "\n</table>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _yes(value: bool, words: DocsWords) -> str:  # noqa: FBT001  # the value that is shown
    return escape(words.yes if value else words.no)
