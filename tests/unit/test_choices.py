"""Table ``choices``: read where it is told of, refused where it does not fit; recipes that ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simspec.errors import BadInput
from simspec.provenance import sha256_file
from simspec.tables import CHOICES
from simspec.traces.drafters import NEVER
from simspec.traces.files import behaviour_hash, write_trace
from simspec.traces.index import load_trace
from simspec.traces.manifest import MANIFEST_NAME, Manifest
from simspec.traces.reader import read_tables
from tests.toy import EOS, LOOKUP, MIDDLE, SMALL, Setting, Toy, table_of

K = 2
Rows = list[dict[str, Any]]


def choices(toy: Toy) -> pa.Table:
    """What a recorder would write: a second token of what is left, rank 1 where a draft is wrong."""
    stored = {
        (r["prompt_id"], r["start"], r["drafter"]): r
        for r in toy.tables["blocks"].to_pylist()
        if r["drafter"] != LOOKUP
    }
    along = {(r["prompt_id"], r["position"], r["model"]): r for r in toy.tables["along"].to_pylist()}
    rows = []
    for p, text in enumerate(toy.texts):
        for drafter in (SMALL, MIDDLE):
            for start in range(len(text) + (text[-1] != EOS)):
                key = (p, start, drafter)
                here = stored.get(key) or {
                    "tokens": [along[key]["greedy_token"]],
                    "top1_prob": [along[key]["top1_prob"]],
                }
                tops = np.array(here["top1_prob"], dtype=np.float16)
                second = np.minimum(tops, (1 - tops) / 2)
                rest = text[start : start + len(tops)]
                rows.append(
                    {
                        "prompt_id": p,
                        "start": start,
                        "drafter": drafter,
                        "confidence": np.stack([tops, second], axis=1).ravel(),
                        "text_rank": [int(t != d) for t, d in zip(rest, here["tokens"], strict=False)],
                    }
                )
    return table_of(CHOICES, rows)


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy(Setting(seed=17, prompts=2, output_tokens=21, block_length=4, order=3))


@pytest.fixture
def folder(toy: Toy, tmp_path: Path) -> Path:
    manifest = msgspec.structs.replace(toy.manifest, alternatives=K)
    write_trace(tmp_path / "toy", manifest, {**toy.tables, "choices": choices(toy)})
    return tmp_path / "toy"


def rewrite(folder: Path, change: Callable[[Rows], object]) -> None:
    """Another table, with the manifest telling its hash, as a faulty recorder would."""
    path = folder / "choices.parquet"
    rows = pq.read_table(path).to_pylist()
    change(rows)
    pq.write_table(table_of(CHOICES, rows), path, version="2.6")
    manifest = msgspec.json.decode((folder / MANIFEST_NAME).read_bytes(), type=Manifest)
    entry = msgspec.structs.replace(manifest.tables["choices"], sha256=sha256_file(path), rows=len(rows))
    told = msgspec.structs.replace(manifest, tables={**manifest.tables, "choices": entry})
    (folder / MANIFEST_NAME).write_bytes(msgspec.json.encode(told))


def long(rows: Rows) -> dict[str, Any]:
    """The first row of a whole block inside its text."""
    return next(r for r in rows if len(r["confidence"]) > K and len(r["text_rank"]) > 1)


def short(rows: Rows) -> dict[str, Any]:
    """The first row of a single place."""
    return next(r for r in rows if len(r["confidence"]) == K)


def test_what_is_written_is_read_back(folder: Path, toy: Toy) -> None:
    read = read_tables(folder)
    assert read.tables["choices"].to_pylist() == choices(toy).to_pylist()
    trace = load_trace(folder)
    assert trace.drafters[LOOKUP].choices is None
    for drafter in (SMALL, MIDDLE):
        index = trace.drafters[drafter]
        assert index.choices is not None
        # Both ways of telling how far a block follows its text.
        wrong = index.choices.text_rank != 0
        assert np.array_equal(np.where(wrong.any(1), wrong.argmax(1), wrong.shape[1]), index.matched)
        off = np.cumsum(wrong, axis=1) > wrong  # after the first wrong one
        assert (index.choices.text_rank[off] == NEVER).all()
        assert off.any()
        assert np.allclose(index.choices.confidence[..., 0], index.confidence, atol=1e-3)


def test_a_trace_without_them_is_what_it_was(toy: Toy, tmp_path: Path) -> None:
    """No file, no entry, the same hash, though a table lies about."""
    manifest = write_trace(tmp_path / "toy", toy.manifest, {**toy.tables, "choices": choices(toy)})
    assert "choices" not in manifest.tables
    assert not (tmp_path / "toy" / "choices.parquet").exists()
    assert manifest.behaviour_sha256 == behaviour_hash(toy.tables)
    assert set(read_tables(tmp_path / "toy").tables) == set(toy.tables)
    old = msgspec.json.decode((tmp_path / "toy" / MANIFEST_NAME).read_bytes())
    del old["alternatives"]  # as before there was such a thing
    (tmp_path / "toy" / MANIFEST_NAME).write_bytes(msgspec.json.encode(old))
    assert load_trace(tmp_path / "toy").manifest.alternatives == 0


def test_choices_are_part_of_what_the_models_said(folder: Path) -> None:
    rewrite(folder, lambda rows: long(rows)["confidence"].__setitem__(1, 0.0))
    with pytest.raises(BadInput, match="behaviour_sha256"):
        read_tables(folder)


def test_a_missing_table_is_refused(folder: Path) -> None:
    (folder / "choices.parquet").unlink()
    with pytest.raises(BadInput, match=r"choices\.parquet.*cannot be read|cannot be read.*choices"):
        read_tables(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.pop(3), ["start", "none of", "every start"]),
        (lambda rows: rows.append({**rows[0], "start": 99}), ["start", "99", "every start"]),
        (lambda rows: rows.append({**rows[0], "drafter": LOOKUP}), ["'start'", "every drafter but look-ups"]),
        (lambda rows: long(rows)["confidence"].pop(), ["confidence", "7 items", "8"]),
        (lambda rows: long(rows)["text_rank"].pop(), ["text_rank", "items"]),
        (lambda rows: long(rows)["confidence"].__setitem__(3, 1.0), ["confidence", "place 2", "fall"]),
        (lambda rows: long(rows).update(confidence=[0.7] * 8), ["confidence", "at most 1 together"]),
        (lambda rows: long(rows).update(confidence=[0.01] * 8), ["confidence", "top1_prob"]),
        (lambda rows: short(rows).update(confidence=[0.01, 0.0]), ["confidence", "top1_prob"]),
        (lambda rows: short(rows).update(text_rank=[1]), ["text_rank", "1 at place 1", "only where"]),
        (lambda rows: long(rows)["text_rank"].__setitem__(0, 0), ["text_rank", "0 at place 1", "only where"]),
        (lambda rows: long(rows)["text_rank"].__setitem__(0, 10**6), ["text_rank", "1000000", "vocabulary"]),
        (lambda rows: long(rows)["text_rank"].__setitem__(0, -1), ["text_rank", "-1"]),
    ],
)
def test_choices_that_do_not_fit(folder: Path, change: Callable[[Rows], object], words: list[str]) -> None:
    rewrite(folder, change)
    with pytest.raises(BadInput) as caught:
        read_tables(folder)
    for word in ["choices.parquet", *words]:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


RECIPE = """
name = "x"
alternatives = {alternatives}
drafters = []
prompts = []
{more}
[target]
source = "x"
"""


@pytest.mark.parametrize(
    ("alternatives", "more", "words"),
    [
        (65, "", "alternatives"),
        (-1, "", "alternatives"),
        (2, "sampling = {temperature = 1.0}", "drawn texts"),
    ],
)
def test_recipes_that_ask_for_what_cannot_be(
    tmp_path: Path, alternatives: int, more: str, words: str
) -> None:
    from simspec.record.recipe import read_recipe

    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(alternatives=4, more=""))
    assert read_recipe(path)[0].alternatives == 4
    path.write_text(RECIPE.format(alternatives=alternatives, more=more))
    with pytest.raises(BadInput, match=words):
        read_recipe(path)
