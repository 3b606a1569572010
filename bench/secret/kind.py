"""Makes secrets of each kind as their issuers form them, or as people choose them, and texts in which they stand."""

from __future__ import annotations

import base64
import json
import random
import string
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

_ALNUM: Final = string.ascii_letters + string.digits
_URL_SAFE: Final = _ALNUM + "-_"
_BASE64: Final = _ALNUM + "+/"
_HEX: Final = "0123456789abcdef"
_UPPER: Final = string.ascii_uppercase + string.digits

Make = Callable[[random.Random], str]


class Sample(NamedTuple):
    """A secret of a kind and a text in which it stands."""

    kind: str
    secret: str
    text: str


def secret_samples(seed: int, each: int) -> Iterator[Sample]:
    """Yields so many samples of each kind, each with a secret of its own; the texts take turns."""
    draw = random.Random(seed)  # noqa: S311  # nothing here is a real secret
    for kind, (make, frames) in KINDS.items():
        for number in range(each):
            secret = make(draw)
            yield Sample(kind, secret, frames[number % len(frames)].replace("{}", secret))


def some(draw: random.Random, alphabet: str, count: int) -> str:
    """Returns so many characters of the alphabet."""
    return "".join(draw.choices(alphabet, k=count))


def _drawn(*parts: str | tuple[str, int]) -> Make:
    """Returns what joins the texts as they are and drawn characters: an alphabet and how many."""
    return lambda draw: "".join(part if isinstance(part, str) else some(draw, *part) for part in parts)


def _one_of(*makes: Make) -> Make:
    return lambda draw: draw.choice(makes)(draw)


def _jwt(draw: random.Random) -> str:
    claims = {"sub": some(draw, string.digits, 8), "name": "kim", "exp": draw.randint(1_700_000_000, 1_900_000_000)}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    return ".".join(
        [*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), some(draw, _URL_SAFE, 43)]
    )


def _pem(draw: random.Random) -> str:
    name = draw.choice(
        ("RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
    )
    lines = [some(draw, _BASE64, 64) for _ in range(draw.randint(3, 26))]
    end = draw.choice(("\n", "\\n", "\r\n"))
    return end.join([f"-----BEGIN {name}-----", *lines, some(draw, _BASE64, 30) + "==", f"-----END {name}-----"])


def _password(draw: random.Random) -> str:
    """Returns a password of at least eight characters with a digit, as people or generators make them."""
    word = draw.choice(("winter", "dragon", "Coffee", "Seoul", "monkey", "Project", "hunter", "Naver"))
    return draw.choice(
        (
            f"{word}{draw.randint(1990, 2026)}!",
            f"{word}{draw.randint(100, 9999)}",
            f"{word[0].upper()}@{word[2:]}{draw.randint(10, 9999)}#",
            f"{draw.randint(1, 99)}{word}{draw.choice(('Tiger', 'river', 'Moon'))}{draw.randint(1, 99)}",
            some(draw, string.ascii_lowercase, 6) + some(draw, string.digits, 4),
            some(draw, _ALNUM, 11) + str(draw.randint(0, 9)),
            some(draw, _ALNUM, 6) + draw.choice("!@#$%^*") + some(draw, _ALNUM, 5) + str(draw.randint(0, 9)),
        )
    )


def _korean_password(draw: random.Random) -> str:
    phrase = draw.choice(("봄날의곰", "우리집강아지", "커피두잔", "사랑해요", "비오는수요일"))
    digits = str(draw.randint(1_000, 99_999))
    mark = draw.choice("!@#$^*")
    return draw.choice(
        (f"{phrase}{digits}{mark}", f"{phrase}{mark}{digits}", f"{digits}{phrase}{mark}", _password(draw))
    )


def _password_in_address(draw: random.Random) -> str:
    """Returns a password with its reserved characters escaped, as an address takes it."""
    return urllib.parse.quote(_password(draw), safe="!$*")


def _key(draw: random.Random) -> str:
    """Returns what services without a prefix of their own issue: never of 40 or 64 hexadecimal digits."""
    made = draw.choice(
        (some(draw, _HEX, 32), some(draw, _ALNUM, 24), some(draw, _UPPER, 20), some(draw, _URL_SAFE, 43))
    )
    return made if any(char.isdigit() for char in made) and made[-1].isalnum() else _key(draw)


_ANYWHERE: Final = (
    "{}",
    "토큰은 {}이고 다음 주에 지운다.",
    "이 키로 해 보세요: {}",
    "{}를 쓰면 됩니다",
    "방금 받은 값은 `{}`입니다.",
    "I use {} for now, don't tell anybody.",
    "export X={}\nmake run",
    '{"a": "{}", "b": [1, 2]}',
    "config:\n  value: '{}'\n  other: 3",
    "결정: 배포에는 ({})을 쓴다",
    "curl -H 'X-Key: {}' https://api.example.com/v1/items",
    "- {}\n- 두 번째 줄",
)
_ADDRESSES: Final = (
    "DATABASE_URL=postgres://app:{}@db.internal:5432/main",
    "주소는 mysql+pymysql://root:{}@127.0.0.1/shop 입니다",
    "redis://:{}@cache:6379/0",
    "mongodb+srv://admin:{}@cluster0.example.mongodb.net/?w=majority",
    "git clone https://kim:{}@git.example.com/team/app.git",
    "프록시는 http://user1:{}@proxy.corp.example:3128로 잡으세요",
    "amqp://guest:{}@[::1]:5672/%2F",
)
_ENGLISH_PASSWORDS: Final = (
    "password: {}",
    "The password is {}.",
    "the new password is now {}, please change it",
    "DB_PASSWORD={}",
    'password = "{}"',
    '{"user": "kim", "password": "{}"}',
    "passwd: {}\nhost: db",
    "<password>{}</password>",
    "mysql --password={} shop",
    "admin_pwd: '{}'",
    "| password | {} |",
    "client_secret={}&grant_type=client_credentials",
)
_KOREAN_PASSWORDS: Final = (
    "비밀번호는 {}",
    "비밀번호는 {}입니다.",
    "비밀번호: {}",
    "새 비밀번호는 이제 {}이에요",
    "비밀번호를 {}로 바꿨어요",
    "비번 {}",
    "비번은 {}야",
    "암호: {}\n서버: db-01",
    "암호는 '{}'입니다",
    "관리자 비밀번호 = {}",
    "와이파이 패스워드: {}",
    "공유 폴더 비밀번호({})는 바꾸지 마세요",
)
_ENGLISH_KEYS: Final = (
    'api_key = "{}"',
    "API_KEY={}",
    "api key: {}",
    "The access token is {}.",
    "token: {}",
    '{"apiKey": "{}"}',
    "SOME_SERVICE_TOKEN={}\nDEBUG=1",
    "https://api.example.com/v1?token={}&page=2",
    "auth-token: {}",
    "encryption_key: '{}'",
)
_KOREAN_KEYS: Final = (
    "키는 {}",
    "API 키: {}",
    "API 키는 {}입니다.",
    "토큰: {}",
    "토큰은 {}이에요",
    "인증키={}",
    "액세스 토큰을 {}로 바꿔 주세요",
    "서비스 키 값은 {}",
)

KINDS: Final[Mapping[str, tuple[Make, Sequence[str]]]] = {
    "AWS access key": (_drawn("AKIA", (_UPPER, 16)), _ANYWHERE),
    "AWS secret key": (
        _drawn((_BASE64, 40)),
        (
            "aws_secret_access_key = {}",
            "AWS_SECRET_ACCESS_KEY={}",
            '{"SecretAccessKey": "{}"}',
            "secret access key: {}",
        ),
    ),
    "GitHub, classic": (
        lambda draw: f"gh{draw.choice('pousr')}_{some(draw, _ALNUM, 36)}",
        _ANYWHERE,
    ),
    "GitHub, fine-grained": (_drawn("github_pat_", (_ALNUM, 22), "_", (_ALNUM, 59)), _ANYWHERE),
    "GitLab": (_drawn("glpat-", (_URL_SAFE, 20)), _ANYWHERE),
    "Slack": (
        _one_of(
            _drawn("xoxb-", (string.digits, 12), "-", (string.digits, 13), "-", (_ALNUM, 24)),
            _drawn("xapp-1-A", (_UPPER, 10), "-", (string.digits, 13), "-", (_HEX, 64)),
        ),
        _ANYWHERE,
    ),
    "Slack webhook": (
        _drawn("https://hooks.slack.com/services/T", (_UPPER, 8), "/B", (_UPPER, 10), "/", (_ALNUM, 24)),
        _ANYWHERE,
    ),
    "OpenAI": (
        _one_of(
            _drawn("sk-", (_ALNUM, 20), "T3BlbkFJ", (_ALNUM, 20)),
            _drawn("sk-proj-", (_URL_SAFE, 74), "T3BlbkFJ", (_URL_SAFE, 74)),
        ),
        _ANYWHERE,
    ),
    "Anthropic": (_drawn("sk-ant-api03-", (_URL_SAFE, 93), "AA"), _ANYWHERE),
    "Google API": (_drawn("AIzaSy", (_URL_SAFE, 33)), _ANYWHERE),
    "Google OAuth": (_one_of(_drawn("GOCSPX-", (_URL_SAFE, 28)), _drawn("ya29.a0", (_URL_SAFE, 120))), _ANYWHERE),
    "Hugging Face": (_drawn("hf_", (string.ascii_letters, 34)), _ANYWHERE),
    "Stripe": (
        lambda draw: f"{draw.choice(('sk', 'rk'))}_{draw.choice(('live', 'test'))}_{some(draw, _ALNUM, 24)}",
        _ANYWHERE,
    ),
    "npm": (_drawn("npm_", (_ALNUM, 36)), _ANYWHERE),
    "PyPI": (_drawn("pypi-AgEIcHlwaS5vcmc", (_URL_SAFE, 150)), _ANYWHERE),
    "JWT": (_jwt, _ANYWHERE),
    "private key": (_pem, ("{}", "키 파일은 이렇습니다:\n{}\n끝", '{"key": "{}"}', "> {}")),
    "password in an address": (_password_in_address, _ADDRESSES),
    "Azure storage": (
        _drawn((_BASE64, 86), "=="),
        (
            "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={};EndpointSuffix=core.windows.net",
            "연결 문자열: Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
        ),
    ),
    "Azure client": (_drawn((_ALNUM, 3), "8Q~", (_ALNUM + "_~.-", 33), "x"), _ANYWHERE),
    "Telegram": (_drawn("7", (string.digits, 9), ":AA", (_URL_SAFE, 33)), _ANYWHERE),
    "Discord": (_drawn("M", (_ALNUM, 25), ".", (_URL_SAFE, 6), ".", (_URL_SAFE, 38)), _ANYWHERE),
    "SendGrid": (_drawn("SG.", (_URL_SAFE, 22), ".", (_URL_SAFE, 43)), _ANYWHERE),
    "DigitalOcean": (_drawn("dop_v1_", (_HEX, 64)), _ANYWHERE),
    "authorization header": (
        lambda draw: base64.b64encode(f"kim:{_password(draw)}".encode()).decode().rstrip("="),
        (
            "Authorization: Basic {}",
            "curl -H 'Authorization: Basic {}' https://x.example",
            '"authorization": "Basic {}"',
        ),
    ),
    "password behind an English name": (_password, _ENGLISH_PASSWORDS),
    "password behind a Korean name": (_korean_password, _KOREAN_PASSWORDS),
    "key behind an English name": (_key, _ENGLISH_KEYS),
    "key behind a Korean name": (_key, _KOREAN_KEYS),
}
