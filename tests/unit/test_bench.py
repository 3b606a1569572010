from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

import pytest

from bench.secret.kind import secret_samples
from bench.secret.measure import measure
from bench.secret.sentence import ordinary_sentences
from graph.project.secret import mask_secrets

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
# Their group of requirements is installed for the benches alone.
PEERS: Final = {"langchain", "langmem", "matplotlib"}


def test_each_bench_still_finds_what_it_uses_of_the_product() -> None:
    for path in sorted(ROOT.glob("bench/**/*.py")):
        if path.match("page/bare.py"):  # a page that Streamlit runs
            continue
        try:
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        except ModuleNotFoundError as error:
            assert str(error.name).partition(".")[0] in PEERS, path  # noqa: PT017  # which module is missing


def test_masking_meets_its_bounds_over_other_samples_than_the_page_has() -> None:
    figures = measure(secret_samples(7, 8), ordinary_sentences(7, 1_000), mask_secrets)
    assert all(met for met, _ in figures.requirements), figures.failures
