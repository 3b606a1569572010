import pytest

from graph.core.particle import strip_particle


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("도쿄역에서", "도쿄역"),
        ("야간버스는", "야간버스"),
        ("후쿠오카에서부터", "후쿠오카"),
        ("호텔까지", "호텔"),
        ("예산을", "예산"),
        ("K7QX2M이", "K7QX2M"),
        ("order_events를", "order_events"),
        ("180만 원을", "180만 원"),
        ("회의", "회의"),
        ("지도", "지도"),
        ("나는", "나는"),
        ("어린이", "어린이"),
        ("효과", "효과"),
        ("Tokyo", "Tokyo"),
        ("", ""),
        ("은", "은"),
    ],
)
def test_a_particle_goes_only_where_a_noun_is_left(word: str, stem: str) -> None:
    assert strip_particle(word) == stem
