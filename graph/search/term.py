"""Turns texts into the terms of the full-text index, and queries into phrases of the same terms."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, zip_longest
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.language import STOP_BIGRAMS, STOP_WORDS, split_sentences
from graph.core.turn import closed_mark, is_recalled, text_of
from graph.fold.extract import cut_at_word

MAX_PHRASES: Final = 32
# A longer query is cut; the first 32 words are nearly always within the limit.
QUERY_CHARS: Final = 2_000
PHRASE_TERMS: Final = 64
# Suffix of a phrase whose last term may be a prefix.
OPEN_END: Final = "*"

_TERM_CHARS: Final = 64
# Porter's rules leave shorter words alone.
_STEMMED_CHARS: Final = 3
_STEM_SYLLABLES: Final = 2
_PARTICLE_SYLLABLES: Final = 16
_COMPOUND_SYLLABLES: Final = 4
_PREFIX_CHARS: Final = 4
_LEAD_CHARS: Final = 20
_NAMED_WORDS: Final = 12
_LEAST_WORDS: Final = 2
_LEAST_SHARE: Final = 0.5
# How much longer a text's compatibility forms may make it: "㈜" is three characters, a ligature of Arabic eighteen.
_MOST_GROWTH: Final = 3
_HANGUL: Final = "가-힣"
# Chinese and Japanese have no spaces between words either.
_HAN: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN: Final = re.compile(rf"[{_HANGUL}]+|[{_HAN}]+|[^\W_{_HANGUL}{_HAN}]+")
_WORD: Final = re.compile(rf"[{_HANGUL}]+|[{_HAN}]+|[^\W_{_HANGUL}{_HAN}]+(?:[-_.:/@+][^\W_{_HANGUL}{_HAN}]+)*")
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+\S*")
_UNSPACED: Final = re.compile(rf"[{_HANGUL}{_HAN}]")
_PARTICLE: Final = re.compile(
    r"(?:에서|에게|에게서|한테|께서|으로|로|까지|부터|처럼|보다|마다|하고|이랑|랑|만|와|과|이라|라|이란|란|조차|마저|밖에|대로|만큼"
    r"|이나|에|으로서|으로써|로서|로써|으로부터|에서부터|이며|이고|이든|들)(?:은|는|도|만|의|이|을|까지|부터|고|요)?"
    r"|은|는|이|가|을|를|의|도|나|야|요|이야|이요|이에요|예요|입니다|인가요?|인지|이었\S*|였\S*"
)
# A one-syllable noun with one of these can be distinguished from a two-syllable one.
_CLEAR_PARTICLES: Final = frozenset("은는을를")
_ASKING: Final = re.compile(
    r"무엇|무슨|뭐|뭘|뭔|언제|어디|어느|어떤|어떻|누구|누가|얼마|알려|말해|말했|기억|찾아|궁금|했[던었더]|그때|아까|우리가?$|제가$|내가$"
    r"|저[는의도]$|나[는의도]$|그리고$|그런데$|대해서?$|대한$|관해서?$|있[었나어는]|없[었나어는]"
)


def searchable_text(message: AnyMessage) -> str:
    """Returns the indexed text of a message; none for `recall` results and the fixed sentence of a missing answer."""
    if is_recalled(message):
        return ""
    mark = closed_mark(message)
    return text_of(message) if mark is None or mark.get("is_partial") else ""


def index_terms(text: str) -> str:
    """Returns the space-separated terms of a text: Hangul, Han and kana as bigrams, other words whole.

    Words are in lower case, without accents, stemmed as English (Porter2), and in ordinary characters ("㈜" is "주"). A
    change of the result needs a migration that rebuilds the index: rows are deleted by the same terms.
    """
    runs = _RUN.findall(_normal(text))
    return " ".join(chain.from_iterable(_terms_of(run) for run in runs))


def phrase_terms(phrase: str) -> list[str]:
    """Returns the different terms of a phrase, of its first 64, that a matching message must have."""
    return list(dict.fromkeys(index_terms(phrase).split()[:PHRASE_TERMS]))


def _terms_of(run: str) -> list[str]:
    if not _UNSPACED.match(run):
        return [_stem(_folded(run[:_TERM_CHARS]))]
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


def _folded(word: str) -> str:
    word = word.casefold()
    return word if word.isascii() else "".join(sign for sign in unicodedata.normalize("NFD", word) if sign.isalnum())


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    if len(word) < _STEMMED_CHARS or not "a" <= word[-1] <= "z":
        return word
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415  # its import takes 30 ms

    # A new one each time: it keeps the word it works on, and threads would mix theirs.
    stemmed: str = EnglishStemmer().stemWord(word)
    return stemmed


def broad_words(query: str) -> list[list[str]]:
    """Returns the alternative phrases of each word of a query, at most 32 in all, for a search for any word.

    Phrases are the word, its stems without Korean particles ("예산은" gives "예산") and its parts, as compounds may be
    written apart. Stop words are left out, unless there is nothing else.
    """
    return _within_bound([[*_forms(word), *_parts(word)] for word in _content_words(query)])


def strict_words(query: str) -> list[list[str]]:
    """Returns the alternative phrases of each word, written in one or in two, for a search for every word."""
    return _within_bound([[*_forms(word), *_written_otherwise(word)] for word in _content_words(query)])


def named_words(query: str) -> list[tuple[str, list[str]]]:
    """Returns the words of a query as written, without stop words, each with its phrases: a text with one has the word.

    A Korean word is there by its first two syllables, in which its forms and most compounds of it agree.
    """
    written = {word.lower(): word for word in reversed(_WORD.findall(_normal(query[:QUERY_CHARS])))}
    words = [word for word in _words(query) if not _is_stop_word(word)][:_NAMED_WORDS]
    return [(written.get(word, word), _beginnings(word)) for word in words]


def _beginnings(word: str) -> list[str]:
    if _UNSPACED.match(word) and len(word) > _STEM_SYLLABLES:
        return [word[:_STEM_SYLLABLES]]
    return [*_forms(word), *_written_otherwise(word)]


def has_words(text: str, words: Iterable[Iterable[str]]) -> bool:
    """Returns True if a matching text contains the CJK phrases as written: bigrams may be scattered."""
    folded = _normal(text)
    return all(
        any(not _UNSPACED.match(phrase) or phrase.removesuffix(OPEN_END) in folded for phrase in phrases)
        for phrases in words
    )


def _content_words(query: str) -> list[str]:
    words = _words(query)
    return [word for word in words if not _is_stop_word(word)] or words


def _words(query: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(_normal(query[:QUERY_CHARS]).lower())))


def _normal(text: str) -> str:
    """Returns a text in composed letters, compatibility forms such as full width as the ordinary characters (NFKC)."""
    return unicodedata.normalize("NFKC", text)[: max(_MOST_GROWTH * len(text), QUERY_CHARS)]


def _as_written(text: str, begin: int, end: int) -> slice:
    """Returns the least part of a text whose `_normal` has these characters of the text's."""

    def length_of(count: int) -> int:
        return len(_normal(text[:count]))

    counts = range(len(text) + 1)
    return slice(bisect_right(counts, begin, key=length_of) - 1, bisect_left(counts, end, key=length_of))


def _is_stop_word(word: str) -> bool:
    if not _UNSPACED.match(word):
        return word in STOP_WORDS
    terms = _terms_of(_forms(word)[-1].removesuffix(OPEN_END))
    is_filler = sum(term in STOP_BIGRAMS for term in terms) * 2 > len(terms)
    return is_filler or bool(_ASKING.match(word) or _PARTICLE.fullmatch(word))


def _forms(word: str) -> list[str]:
    if not _UNSPACED.match(word):
        return [word]
    if len(word) == 1:
        return [word + OPEN_END]
    ends = range(len(word) - 1, max(_STEM_SYLLABLES, len(word) - _PARTICLE_SYLLABLES) - 1, -1)
    stems = [word[:end] for end in ends if _PARTICLE.fullmatch(word[end:])]
    if len(word) == _STEM_SYLLABLES and word[-1] in _CLEAR_PARTICLES:
        stems.append(word[0] + OPEN_END)
    return [word, *stems]


def _parts(word: str) -> list[str]:
    """Returns the parts of a word that may be separate words: a compound's pairs of syllables, a path's names."""
    if not _UNSPACED.match(word):
        runs = _RUN.findall(word)
        return [run for run in runs if len(run) > 1 and run not in STOP_WORDS] if len(runs) > 1 else []
    stem = _forms(word)[-1]
    ends = range(0, len(stem) - 1, 2) if len(stem) >= _COMPOUND_SYLLABLES else range(len(stem) > _STEM_SYLLABLES)
    return [part for start in ends if (part := stem[start : start + 2]) not in STOP_BIGRAMS]


def _written_otherwise(word: str) -> list[str]:
    """Returns other spellings of the whole word: a Korean compound as two words, a version with its "v"."""
    if not _UNSPACED.match(word):
        return [f"v{word}"] if _VERSION.fullmatch(word) else []
    stem = _forms(word)[-1].removesuffix(OPEN_END)
    splits = range(_STEM_SYLLABLES, min(len(stem), _COMPOUND_SYLLABLES * 2) - 1)
    return [f"{stem[:at]} {stem[at:]}" for at in splits]


def _within_bound(words: Iterable[list[str]]) -> list[list[str]]:
    """Drops phrases beyond the limit: parts before stems, and stems before words."""
    by_rank = zip_longest(*(dict.fromkeys(phrases) for phrases in words))
    numbered = ((index, phrase) for rank in by_rank for index, phrase in enumerate(rank) if phrase is not None)
    retained: dict[int, list[str]] = {}
    for index, phrase in islice(numbered, MAX_PHRASES):
        retained.setdefault(index, []).append(phrase)
    return [retained[index] for index in sorted(retained)]


def excerpt(text: str, words: Iterable[Iterable[str]], limit_chars: int) -> str:
    """Returns the sentence with most of the words; a long sentence is cut around the first of them."""
    surfaces = [list(_surfaces(phrases)) for phrases in words]
    best, most = "", -1
    for sentence in split_sentences(unicodedata.normalize("NFC", text)):
        folded = _fold(sentence)
        count = sum(_find(folded, phrases) >= 0 for phrases in surfaces)
        if count > most:
            best, most = sentence, count
    if len(best) <= limit_chars:
        return best
    folded = _fold(best)
    positions = [position for phrases in surfaces if (position := _find(folded, phrases)) >= 0]
    first = min(positions, default=0)
    begin = max(0, _as_written(best, first, first).start - _LEAD_CHARS)
    if begin + limit_chars > len(best):
        begin = min(begin, len(best) - limit_chars + 1)  # the mark of omission takes a character
    return cut_at_word(("…" if begin else "") + best[begin:], limit_chars)


def written_words(text: str, search: str) -> set[str]:
    """Returns a search's words as a text has them, those of other scripts in each form with the same stem.

    What is searched in one ("10월") and stands so in the text isn't marked in its parts.
    """
    normal = _normal(text)
    joined = {word for word in _normal(search).split() if len(strict_words(word)) > 1}
    whole = {word for word in joined if word in normal}
    parts = " ".join(word for word in _normal(search).split() if word not in whole)
    found = whole | _written_parts(normal, parts)
    return found | _compatible(unicodedata.normalize("NFC", text), found)


def _compatible(text: str, found: Iterable[str]) -> set[str]:
    """Returns how words stand in a text that has them in compatibility forms, full width for example."""
    written: set[str] = set()
    for word in {word for word in text.split() if not unicodedata.is_normalized("NFKC", word)}:
        normal = _normal(word)
        for each in filter(None, found):
            written |= {word[_as_written(word, at, at + len(each))] for at in _places_of(each, normal)}
    return written


def _written_parts(normal: str, search: str) -> set[str]:
    phrases = [phrase.removesuffix(OPEN_END) for phrase in chain.from_iterable(strict_words(search))]
    unspaced = {phrase for phrase in phrases if _UNSPACED.match(phrase) and phrase in normal}
    terms = {term for phrase in phrases if not _UNSPACED.match(phrase) for term in index_terms(phrase).split()}
    runs = {run for run in _RUN.findall(normal) if not _UNSPACED.match(run)} if terms else set()
    return unspaced | {run for run in runs if terms.issuperset(_terms_of(run))}


def count_marks(text: str, marks: Iterable[str]) -> int:
    """Returns how often a text has these words, as the page marks them: others than Korean ones whole."""
    normal = unicodedata.normalize("NFC", text).lower()
    taken = bytearray(len(normal))
    count = 0
    for mark in sorted(map(str.lower, marks), key=len, reverse=True):
        for at in _places_of(mark, normal):
            end = at + len(mark)
            beside = (normal[max(0, at - 1) : at], normal[end : end + 1]) if mark[0].isascii() else ()
            if not any(taken[at:end]) and not any(char.isascii() and char.isalnum() for char in beside):
                taken[at:end] = b"1" * len(mark)
                count += 1
    return count


def count_words(text: str, words: Iterable[Iterable[str]]) -> int:
    """Returns how many of the words a text has, each by any of its phrases."""
    folded = _fold(text)
    return sum(_find(folded, _surfaces(phrases)) >= 0 for phrases in words)


def has_content_of(text: str, query: str) -> bool:
    """Returns True if a text has each word of a query, or a part of it, in any form; stop words are ignored."""
    found, count = count_content_of(text, query)
    return found == count


def count_content_of(text: str, query: str) -> tuple[int, int]:
    """Returns how many of a query's words a text has, in any form or part, and how many there are but stop words."""
    folded = _fold(text)
    words = [word for word in _words(query) if not _is_stop_word(word)]
    return sum(_find(folded, _surfaces([*_forms(word), *_parts(word)])) >= 0 for word in words), len(words)


def matches_well(text: str, query: str) -> bool:
    """Returns True if a text has at least two, and half, of a query's words."""
    found, asked = count_content_of(text, query)
    return found >= _LEAST_WORDS and found >= asked * _LEAST_SHARE


def closeness(text: str, words: Sequence[tuple[float, Sequence[str]]], within_chars: int) -> float:
    """Returns the largest sum of the weights of words that stand within so many characters; `words` as `weighed`."""
    folded = _fold(text)
    places = sorted({(place, index) for index, (_, word) in enumerate(words) for place in _places(folded, word)})
    counts = [0] * len(words)
    best = together = 0.0
    first = 0
    for place, index in places:
        counts[index] += 1
        together += words[index][0] if counts[index] == 1 else 0.0
        while places[first][0] < place - within_chars:
            left = places[first][1]
            counts[left] -= 1
            together -= words[left][0] if counts[left] == 0 else 0.0
            first += 1
        best = max(best, together)
    return best


def weighed(words: Iterable[Iterable[str]], weights: Iterable[float]) -> list[tuple[float, Sequence[str]]]:
    """Returns words with their weights, each as its beginnings in a text in lower case."""
    surfaces = (sorted({surface.lower() for surface in _surfaces(phrases)}) for phrases in words)
    return list(zip(weights, surfaces, strict=True))


def _places(text: str, surfaces: Iterable[str]) -> Iterator[int]:
    """Yields where a word begins: at the beginning of one of the text's, unless its script has no spaces."""
    for surface in filter(None, surfaces):
        for place in _places_of(surface, text):
            if place == 0 or _UNSPACED.match(surface) or not text[place - 1].isalnum():
                yield place


def _places_of(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def cut_around(text: str, words: Iterable[Iterable[str]], limit_chars: int) -> str:
    """Returns the part of a text with most of the words, in its middle; at most `limit_chars` long.

    "…" marks omissions.
    """
    if len(text) <= limit_chars:
        return text
    surfaces = [list(_surfaces(phrases)) for phrases in words]
    length = max(1, limit_chars - 2)
    end = len(text) - length
    begins = [*range(0, end, max(1, length // 4)), end] if surfaces else [0]
    windows = (_fold(text[begin : begin + length]) for begin in begins)
    counts = [sum(_find(window, phrases) >= 0 for phrases in surfaces) for window in windows]
    most = max(counts)
    first = counts.index(most)
    alike = next((index for index, count in enumerate(counts[first:]) if count < most), len(counts) - first)
    begin = begins[first + alike // 2] if most else 0  # what is asked for mostly follows the words
    return (("…" if begin else "") + text[begin : begin + length] + ("…" if begin < end else ""))[: max(0, limit_chars)]


def _surfaces(phrases: Iterable[str]) -> Iterator[str]:
    """Yields the beginnings of phrases as they occur in a text; words of other scripts may have different endings."""
    for phrase in phrases:
        surface = phrase.removesuffix(OPEN_END)
        yield surface if _UNSPACED.match(surface) else surface[: max(_PREFIX_CHARS, len(surface) - _PREFIX_CHARS)]


def _find(folded: str, surfaces: Iterable[str]) -> int:
    return next((position for surface in surfaces if (position := folded.find(surface)) >= 0), -1)


def _fold(text: str) -> str:
    return _normal(text).lower()
