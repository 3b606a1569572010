from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from graph.project.brain_folder import folder_of
from graph.server.identity import owner_of

OWNERS = st.one_of(
    st.text(st.characters(codec=None), min_size=1, max_size=80),
    st.text(st.sampled_from("aAkK-_./0\0"), min_size=1, max_size=80),
)


@given(OWNERS, OWNERS)
@example("kim", "Kim")
@example("Kim", folder_of("Kim"))
@example("..", "a" * 80)
@example("\ud800", ".")
def test_each_owner_has_a_folder_of_one_name_that_every_file_system_takes(one: str, other: str) -> None:
    assert (folder_of(one) == folder_of(other)) == (one == other)
    name = folder_of(one)
    assert 0 < len(name) <= 64
    assert name.isascii()
    assert name == name.lower()
    assert not {*name} & {"/", ".", "\0", "\\", " "}


def test_an_owner_of_a_sign_in_is_his_folders_name() -> None:
    owner = owner_of("https://id.example.com", "kim")
    assert folder_of(owner) == owner
