"""Makes ordinary sentences about work: the shapes of both languages, filled with words, numbers and identifiers."""

from __future__ import annotations

import random
import string
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bench.secret import template_en, template_ko
from prompt.system.framing import Language

_HEX: Final = "0123456789abcdef"
_TOPICS: Final = ("passwords, tokens, keys without a value", "identifiers", "other work")
_TEMPLATES: Final[Mapping[Language, Sequence[Sequence[str]]]] = {
    "ko": (template_ko.SECRETS, template_ko.IDENTIFIERS, template_ko.PLAIN),
    "en": (template_en.SECRETS, template_en.IDENTIFIERS, template_en.PLAIN),
}
_EDGES: Final[Mapping[Language, tuple[Sequence[str], Sequence[str]]]] = {
    "ko": (template_ko.OPENINGS, template_ko.ENDINGS),
    "en": (template_en.OPENINGS, template_en.ENDINGS),
}
_WORDS: Final[Mapping[Language, Mapping[str, Sequence[str]]]] = {
    "ko": {
        "person": ("김하늘", "이서준", "박도윤", "최지우", "정유나", "한강", "오로라"),
        "team": ("플랫폼팀", "디자인팀", "인프라팀", "고객지원팀", "데이터팀"),
        "when": ("다음 주에", "내일", "금요일에", "이번 달 말에", "3월 2일에", "배포 뒤에", "2주 뒤에"),
        "place": ("3층 회의실", "부산 사무실", "성수동 카페", "본관 로비", "B동 204호"),
    },
    "en": {
        "person": ("Hana", "Jun Park", "Maria", "O'Neill", "Dr. Choi", "Alex", "Priya"),
        "team": ("platform", "the design team", "infra", "support", "the data team"),
        "when": ("next week", "tomorrow", "on Friday", "at the end of the month", "on 2 March", "after the release"),
        "place": ("room 3.14", "the Busan office", "the lobby", "building B, 204", "the café"),
    },
}
_TERMS: Final[Mapping[str, Sequence[str]]] = {
    "algo": (
        "bcrypt",
        "argon2id",
        "AES-256-GCM",
        "SHA-256",
        "RSA-4096",
        "Ed25519",
        "HS256",
        "PBKDF2",
        "TLS1.3",
        "scrypt",
    ),
    "tool": ("Vault", "1Password", "Kubernetes", "Bitwarden", "Docker", "Terraform", "Keycloak", "GitHub", "OAuth2"),
    "model": ("gpt-4o-2024-08-06", "claude-3-5-sonnet", "gemini-2.5-pro", "llama-3.1-70b", "qwen2.5-72b-instruct"),
    "env": ("OPENAI_API_KEY", "DB_PASSWORD", "MAX_TOKENS", "SECRET_KEY_BASE", "SESSION_TTL", "LOG_LEVEL", "NPM_TOKEN"),
    "column": ("user_id", "created_at", "password_hash", "session_key", "email", "token_type", "id", "display_name"),
    "function": (
        "refresh_token",
        "load_settings",
        "checkPassword",
        "parseKey2",
        "to_utf8",
        "on_login",
        "getTokenCount",
    ),
    "path": (
        "src/auth/token.py",
        "docs/api-keys.md",
        "./secrets/README.md",
        "/etc/ssl/certs/ca.pem",
        "app/password_form.tsx",
        "C:\\work\\2026\\plan.docx",
        "~/.config/app/config.toml",
        "graph/project/secret.py",
    ),
    "url": (
        "https://docs.example.com/keys/create",
        "http://localhost:8080/login",
        "https://git.example.org/team/app/-/issues/481",
        "https://example.com/a?token_type=bearer&lang=ko",
    ),
    "mail": ("security@example.com", "hana.kim@corp.example", "help+2026@example.org"),
    "host": ("db-01.internal", "web3", "build-7.corp.example", "localhost", "cache.ap-northeast-2"),
    "branch": ("feature/login-form", "fix/token-count", "release-2026.11", "hotfix-482", "team/secret-scan"),
    "ticket": ("TF-2031", "PROJ-118", "#4821", "AUTH-77", "GH-1204"),
}
_DRAWN: Final[Mapping[str, Callable[[random.Random], str]]] = {
    "sha": lambda draw: _some(draw, _HEX, 40),
    "digest": lambda draw: _some(draw, _HEX, 64),
    "short": lambda draw: _some(draw, _HEX, draw.choice((7, 8, 10))),
    "uuid": lambda draw: str(uuid.UUID(int=draw.getrandbits(128), version=4)),
    "version": lambda draw: (
        f"{draw.choice(('', 'v'))}{draw.randint(0, 24)}.{draw.randint(0, 30)}.{draw.randint(0, 12)}"
    ),
    "number": lambda draw: str(draw.randint(2, 98)),
    "count": lambda draw: draw.choice(("{}", "{:,}")).format(draw.choice((16, 128, 800, 4_096, 32_768, 1_200_000))),
    "price": lambda draw: draw.choice(("{:,}원", "${:,}", "₩{:,}", "{:,} EUR")).format(draw.randint(9, 9_000) * 100),
    "date": lambda draw: f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
    "clock": lambda draw: f"{draw.randint(0, 23):02}:{draw.choice((0, 15, 30)):02}",
    "stamp": lambda draw: f"2026-11-{draw.randint(1, 30):02}T{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07Z",
    "port": lambda draw: draw.choice(("5432", "6379", "8443", "27017")),
    "phone": lambda draw: f"{draw.randint(0, 9999):04}",
    "order": lambda draw: f"{draw.randint(0, 99_999_999):08}",
}


class Sentence(NamedTuple):
    """An ordinary sentence, what it is about, and its shape: the template between beginning and end."""

    language: Language
    topic: str
    shape: str
    text: str


def ordinary_sentences(seed: int, count: int) -> Iterator[Sentence]:
    """Yields so many different sentences, half of them in each language; each shape comes up about as often."""
    draw = random.Random(seed)  # noqa: S311  # a seeded run can be repeated
    seen: set[str] = set()
    for language, templates in _TEMPLATES.items():
        own = [(topic, template) for topic, of_it in zip(_TOPICS, templates, strict=True) for template in of_it]
        made = 0
        while made < count // len(_TEMPLATES):
            topic, template = own[made % len(own)]
            text = fill(draw, language, _framed(draw, language, template))
            if text not in seen:
                seen.add(text)
                made += 1
                yield Sentence(language, topic, template, text)


def fill(draw: random.Random, language: Language, shape: str) -> str:
    """Returns the shape with a word, number or identifier in each slot; one slot may have two values in a sentence."""
    words = {**_TERMS, **_WORDS[language]}
    parts = []
    for literal, slot, _, _ in string.Formatter().parse(shape):
        parts.append(literal)
        if slot:
            parts.append(_DRAWN[slot](draw) if slot in _DRAWN else draw.choice(words[slot]))
    return "".join(parts)


def _framed(draw: random.Random, language: Language, template: str) -> str:
    openings, endings = _EDGES[language]
    return draw.choice(("", "", *openings)) + template + draw.choice(("", ".", *endings))


def _some(draw: random.Random, alphabet: str, count: int) -> str:
    return "".join(draw.choices(alphabet, k=count))
