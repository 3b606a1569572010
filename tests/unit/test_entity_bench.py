from pathlib import Path

import pytest

from bench.quality.entity import FILE, Marked, figures_of, is_found, measure, read_marked

_SENTENCES = (
    "## 주석\n## klue-ner-v1_dev_00000 <박:PS>씨는 <3일:DT>\n박\tB-PS\n씨\tO\n는\tO\n \tO\n3\tB-DT\n일\tI-DT\n\n"
    "## second\n1\tB-QT\n2\tB-QT\n.\tO\n\n"
    "## third\n끝\tO\n\n\n"
)


def _folder(path: Path) -> Path:
    (path / FILE).parent.mkdir(parents=True)
    (path / FILE).write_text(_SENTENCES, encoding="utf-8")
    return path


def test_sentences_and_the_places_of_their_entities_are_read(tmp_path: Path) -> None:
    assert read_marked(_folder(tmp_path)) == [
        Marked("박씨는 3일", (("PS", 0, 1), ("DT", 4, 6))),
        Marked("12.", (("QT", 0, 1), ("QT", 1, 2))),
        Marked("끝", ()),
    ]


def test_the_reporting_half_is_every_other_sentence_from_the_first(tmp_path: Path) -> None:
    figures = measure(_folder(tmp_path))
    assert figures.sentences == 2
    assert dict(figures.marked) == {"PS": 1, "DT": 1}


def test_missing_data_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="klue-ner"):
        measure(tmp_path)


def test_found_whole_and_false_facts_are_counted() -> None:
    figures = figures_of(
        [
            Marked("지난 15일 5명과 '가나다라' AUTH-4821", (("DT", 0, 6), ("QT", 7, 9))),
            Marked("한 네티즌의 글 오늘", (("QT", 0, 5), ("TI", 9, 11))),
        ]
    )
    assert figures.found_share("DT", "QT") == pytest.approx(2 / 3)
    assert figures.whole_share("DT", "QT") == pytest.approx(1 / 3)
    assert (figures.found_share("TI"), figures.compared_share("TI")) == (1, 0)
    assert figures.compared_share("DT", "QT") == figures.found_share("DT", "QT")
    assert figures.false_facts == 2
    assert figures.false_facts_a_sentence == 1
    assert (figures.false_by_kind["quoted"], figures.false_by_kind["identifier"]) == (1, 1)
    assert figures.found_share("PS") == 0


def test_an_entity_is_found_only_with_all_its_digits_in_facts_of_its_sort() -> None:
    assert is_found("2013년 5월", "DT", (0, 8), [(0, 8, "date")])
    assert not is_found("2013년 5월", "DT", (0, 8), [(0, 5, "date")])
    assert not is_found("2013년 5월", "DT", (0, 8), [(0, 8, "quoted")])
    assert is_found("서울은행", "OG", (0, 4), [(2, 4, "name")])
    assert not is_found("서울은행", "OG", (0, 4), [(3, 4, "name")])
