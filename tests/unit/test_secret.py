from __future__ import annotations

import itertools
import re
import time
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graph.project.secret import SECRET_KINDS, SecretMatch, find_secret, mask_secrets

HEX = "0123456789abcdef"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA7bq8Zt3LmP0vXw9RkYQ2nC5\n" * 3
    + "-----END RSA PRIVATE KEY-----"
)

# In pieces, so that no scanner of repositories takes them for real ones.
SECRETS = {
    "ghp_" + "aB3dE6gH9j" * 3 + "k2m4p6": "GitHub token",
    "github_pat_" + "11ABCDEFG0aB3dE6gH9jk2_" + "aB3dE6gH9j" * 5: "GitHub token",
    "glpat-" + "aB3dE6gH9jk2m4p6q8s0": "GitLab token",
    "xoxb-" + "123456789012-1234567890123-aB3dE6gH9jk2m4p6q8s0tUvW": "Slack token",
    "sk-proj-" + "aB3dE6gH9j_-" * 4: "OpenAI key",
    "sk-" + "aB3dE6gH9j" * 4: "OpenAI key",
    "sk-ant-api03-" + "aB3dE6gH9j" * 9: "Anthropic key",
    "AIzaSy" + "aB3dE6gH9j-" * 3: "Google key",
    "hf_" + "aBcDeFgHiJ" * 3 + "kLmN": "Hugging Face token",
    "sk_live_" + "aB3dE6gH9j" * 3: "Stripe key",
    "npm_" + "aB3dE6gH9j" * 3 + "k2m4p6": "npm token",
    "pypi-AgEIcHlwaS5vcmcCJ" + "aB3dE6gH9j" * 6: "PyPI token",
    "AKIAIOSFODNN7EXAMPLE": "AWS key",
    "1234567890:AAF" + "aB3dE6gH9j" * 3 + "kL": "Telegram token",
    "xapp-1-A" + "B3CD4EF5G6" + "-1234567890123-" + "a3d6e9f2" * 8: "Slack token",
    "GOCSPX-" + "aB3dE6gH9j-_" * 2 + "kLmN": "Google token",
    "ya29.a0" + "aB3dE6gH9j" * 12: "Google token",
    "aB3" + "8Q~" + "dE6gH9j_.-" * 3 + "kLmx": "Azure key",
    "M" + "aB3dE6gH9j" * 2 + "kLmNo" + ".aB3dE6." + "gH9jk2m4p6" * 3 + "q8s0tUvW": "Discord token",
    "SG." + "aB3dE6gH9jk2m4p6q8s0tU" + "." + "aB3dE6gH9j" * 4 + "k2m": "SendGrid key",
    "dop_v1_" + "a3d6e9f2" * 8: "DigitalOcean token",
    JWT: "JWT",
    PEM: "private key",
    PEM.replace("\n", "\\n"): "private key",
}


FRAMES = itertools.cycle(["{}", "토큰은 {}이고 곧 지운다.", "export X='{}'\n", '{{"a": "{}", "b": 1}}', "({})"])


@pytest.mark.parametrize(("secret", "kind", "frame"), [(*each, next(FRAMES)) for each in SECRETS.items()])
def test_a_secret_is_masked_whole_wherever_it_stands(secret: str, kind: str, frame: str) -> None:
    found = find_secret(frame.format(secret))
    assert found is not None
    assert found.kind == kind
    assert mask_secrets(frame.format(secret)) == frame.format(f"[secret: {kind}]")


MASKED = {
    "비밀번호는 봄날의곰123!": "비밀번호는 [secret: password]",
    "비밀번호를 hunter2hunter로 바꿨어": "비밀번호를 [secret: password]로 바꿨어",
    "DB 비번 바꿨어요: Qw3rty!2026": "DB 비번 바꿨어요: [secret: password]",
    "비밀번호는 다음과 같다: qwer1234": "비밀번호는 다음과 같다: [secret: password]",
    '"password": "Secret:2026x!"': '"password": "[secret: password]"',
    "the password for staging: Tr0ub4dor&3": "the password for staging: [secret: password]",
    "비밀번호: 2580사랑해요": "비밀번호: [secret: password]",
    "비밀번호: 19870412": "비밀번호: [secret: password]",
    "the password is now P@ssw0rd": "the password is now [secret: password]",
    "DB_PASSWORD=$up3rS3cret!": "DB_PASSWORD=[secret: password]",
    "password = correcthorsebatterystaple": "password = [secret: password]",
    '{"password":"letmein-please","user":"kim"}': '{"password":"[secret: password]","user":"kim"}',
    "<password>hunter2hunter</password>": "<password>[secret: password]</password>",
    "| password | hunter2hunter |": "| password | [secret: password] |",
    "토큰: a1b2c3d4e5f6g7h8": "토큰: [secret: key or token]",
    "키 = 9fKx02LmQz81": "키 = [secret: key or token]",
    'export API_KEY="q8Zt3LmP0vXw9RkY"': 'export API_KEY="[secret: key or token]"',
    "token=a1b2&password=hunter2hunter": "token=a1b2&password=[secret: password]",
    "postgres://app:hunter2@db:5432/x": "postgres://app:[secret: password in an address]@db:5432/x",
    "redis://:hunter2@localhost/0": "redis://:[secret: password in an address]@localhost/0",
    "curl -u kim:hunter2 https://a.b": "curl -u kim:[secret: password in a command] https://a.b",
    "Authorization: Basic a2ltOmh1bnRlcjIh": "Authorization: Basic [secret: authorization header]",
    "aws_secret_access_key = " + "aB3d/E6gH9" * 4: "aws_secret_access_key = [secret: AWS key]",
    "AccountName=shop;AccountKey=" + "aB3dE6gH9+" * 8 + "kLm4p6==": "AccountName=shop;AccountKey=[secret: Azure key]",
    "https://hooks.slack.com/services/T" + "AB3CD4EF/B" + "A3CD4EF5G6/" + "aB3dE6gH9j" * 2 + "kLmN": (
        "https://hooks.slack.com/[secret: Slack webhook]"
    ),
    "와이파이 패스워드: winter2026!": "와이파이 패스워드: [secret: password]",
}


def test_the_value_behind_a_name_that_says_secret_is_masked() -> None:
    assert {text: mask_secrets(text) for text in MASKED} == MASKED


ORDINARY = [
    "비밀번호는 다음 주에 바꾸기로 했다",
    "비밀번호는 8자리이상이어야 한다",
    "비밀번호: 2026-11-30까지 변경",
    "비밀번호(최소8자,최대20자), 비밀번호 입력(6~12자)",
    "비밀번호는 영문숫자8자이상으로 하자",
    "비밀번호 변경 안내: 2026-11-30부터",
    "**비밀번호**: 추후공지예정입니다, `token`: required-by-default",
    "password: [redacted], token=[secret: unknown]",
    "비밀번호: 010-1234-5678로 문의",
    '비밀번호: "변경되었습니다"',
    "암호는 bcrypt(12)로 저장하고, 키는 ed25519를 쓴다",
    "암호: AES-256-GCM",
    "토큰은 gpt-4o-2024-08-06 기준으로 4,096개까지 센다",
    "키는 175.5cm입니다",
    "단축키: Ctrl+Shift+F12",
    "캐시 키는 094d39f5a1이다",
    "API 키: https://docs.example.com/keys/create",
    "password: required",
    "password: str = Field(min_length=8)",
    "token: Optional[str] = None",
    "api_key=settings.openai_api_key",
    'token = os.environ["GITHUB_TOKEN"]',
    "password=<your-password> or ${DB_PASSWORD} or ********",
    "postgres://user:password@localhost/db, postgres://user:${PASS}@localhost/db",
    "http://localhost:8080/@kim",
    f"key: {HEX * 4}, token: {HEX * 2}01234567",
    "token=550e8400-e29b-41d4-a716-446655440000&page=2",
    "grant_type=password, max_tokens=100000000, primary_key=True",
    "sk-learn-compatible-estimators and pypi-package-index-mirror-of-the-company",
    "-----BEGIN PRIVATE KEY----- is the first line of the file",
    "The token expires 2026-11-23T10:00:00Z",
    "Notices don't pass PgBouncer, and the tests pass 12of13cases",
    "const password = 'Password used to sign in'",
]


def test_ordinary_text_passes() -> None:
    assert {text: find_secret(text) for text in ORDINARY if find_secret(text)} == {}
    assert [mask_secrets(text) for text in ORDINARY] == ORDINARY


def test_a_match_says_where_and_what_without_the_secret() -> None:
    assert find_secret("내 토큰 AKIAIOSFODNN7EXAMPLE.") == SecretMatch("AWS key", 5, 25)
    assert find_secret("") is None


def test_a_long_value_is_masked_to_its_end() -> None:
    for before, behind in (("password=", " end"), ('"token": "', '", "b": 1}'), ("비밀번호는 ", "")):
        masked = mask_secrets(f"{before}{'aB3dE6' * 1_000}{behind}")
        assert re.fullmatch(rf"{re.escape(before)}\[secret: [a-z ]+\]{re.escape(behind)}", masked)


def test_a_name_is_known_in_decomposed_letters_too() -> None:
    assert mask_secrets(unicodedata.normalize("NFD", "비밀번호는 봄날의곰123!")) == "비밀번호는 [secret: password]"
    ordinary = unicodedata.normalize("NFD", "비밀번호는 다음 주에 바꾸기로 했다")
    assert mask_secrets(ordinary) == ordinary


def test_a_mark_in_the_text_is_no_secret_and_hides_none() -> None:
    for kind in SECRET_KINDS:
        assert find_secret(f"password=[secret: {kind}]") is None
    assert find_secret("[secret: AKIAIOSFODNN7EXAMPLE]") is not None


PIECE = st.sampled_from(
    [
        *SECRETS,
        *("password", "비밀번호", "토큰", "=", "@", "://", "a", "가", "-", "_", ".", "!"),
        *('"', "'", "hunter2hunter", "봄날의곰123!", "eyJ", "]"),
        *(": ", "는 ", "\n", " ", "[secret: ", "[secret: password]", "\x00", "\ud800", "😀", "\u202e"),
    ]
)
AROUND = st.lists(PIECE, max_size=8).map("".join)
HOSTILE = st.one_of(st.lists(PIECE, max_size=30).map("".join), st.text(st.characters(codec=None), max_size=200))


@given(HOSTILE)
def test_masked_text_has_no_secret_left(text: str) -> None:
    masked = mask_secrets(text)
    assert find_secret(masked) is None, find_secret(masked)
    assert mask_secrets(masked) == masked
    assert (find_secret(text) is None) == (masked == text)


@given(AROUND, st.sampled_from(sorted(SECRETS)), AROUND)
def test_no_secret_that_stands_alone_is_left_whatever_is_around(before: str, secret: str, after: str) -> None:
    assume(secret not in before + after)  # where it doesn't stand alone
    assert secret not in mask_secrets(f"{before} {secret} {after}")


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(PIECE, min_size=1, max_size=3).map("".join))
def test_time_grows_with_the_length_alone(piece: str) -> None:
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    began = time.process_time()
    mask_secrets(text)
    assert time.process_time() - began < 10  # 0.2 s; a quadratic pattern takes minutes
