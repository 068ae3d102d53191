"""ShareGPT's texts as lengths: how tokens are counted is said, what is left out is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
from simspec.interop.sharegpt import by_characters, by_tokenizer, read_sharegpt

FOUR = by_characters(4.0)


def file(folder: Path, *conversations: Any) -> Path:
    path = folder / "sharegpt.json"
    path.write_text(json.dumps(list(conversations)), encoding="utf-8")
    return path


def talk(*turns: tuple[str, str]) -> dict[str, Any]:
    return {"id": "x", "conversations": [{"from": speaker, "value": text} for speaker, text in turns]}


LONG = talk(("human", "a" * 8), ("gpt", "b" * 5), ("human", "c" * 4), ("gpt", "d" * 12))


def test_the_first_exchange_or_every_reply_with_all_text_before_it(tmp_path):
    path = file(tmp_path, LONG)
    first = read_sharegpt(path, FOUR)
    assert (first.prompt_tokens.tolist(), first.output_tokens.tolist()) == ([2], [2])
    every = read_sharegpt(path, FOUR, "all")
    assert (every.prompt_tokens.tolist(), every.output_tokens.tolist()) == ([2, 2 + 2 + 1], [2, 3])
    assert "approximate: characters over 4" in first.unit
    assert first.dropped == every.dropped == {}


def test_a_system_text_is_part_of_the_prompt(tmp_path):
    found = read_sharegpt(file(tmp_path, talk(("system", "s" * 40), ("human", "a" * 4), ("gpt", "b"))), FOUR)
    assert found.prompt_tokens.tolist() == [11]


def test_what_is_left_out_is_counted_by_reason(tmp_path):
    path = file(
        tmp_path,
        LONG,
        talk(("gpt", "goes on"), ("human", "a"), ("gpt", "b")),
        talk(("human", "a")),
        talk(),
        talk(("human", "a"), ("gpt", "")),
        talk(("human", "a"), ("human", "b"), ("gpt", "c")),
    )
    found = read_sharegpt(path, FOUR)
    assert len(found) == 1
    assert found.dropped == {"no question first": 2, "no reply": 2, "empty text": 1}
    broken = talk(("human", "a"), ("gpt", "b"), ("gpt", "c"), ("human", "d"), ("gpt", "e"))
    assert read_sharegpt(file(tmp_path, broken), FOUR, "all").dropped == {"turns out of order": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "no list"),
        ("[]", "no list"),
        ("[", "no JSON"),
        ('[{"id": "x"}]', "conversation 0 has no list 'conversations'"),
        ('[{"conversations": [{"from": "human"}]}]', "conversation 0, turn 0: 'value' is no text"),
        ('[{"conversations": [{"from": "dog", "value": "woof"}]}]', "turn 0: from 'dog'"),
        ('[{"conversations": [{"from": 3, "value": "x"}]}]', "turn 0: from 3"),
        ('[{"conversations": []}]', "no question that is answered"),
    ],
)
def test_refusals_name_the_place(tmp_path, text, said):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(BadInput) as error:
        read_sharegpt(path, FOUR)
    assert said in str(error.value)
    assert error.value.where == str(path)


def test_no_such_file(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_sharegpt(tmp_path / "nowhere.json", FOUR)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 101.0])
def test_characters_a_token_are_a_positive_number(bad):
    with pytest.raises(BadInput, match="characters_per_token"):
        by_characters(bad)


@given(st.text(max_size=50), st.integers(1, 40))
def test_characters_are_rounded_up_exactly(text, tenths):
    found = by_characters(tenths / 10).count(text)
    assert (found - 1) * tenths < 10 * len(text) <= found * tenths or (not text and found == 0)


def test_a_tokenizer_counts(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    counter = by_tokenizer(path)
    assert counter.count("a b a c") == 4
    found = read_sharegpt(file(tmp_path, talk(("human", "a b"), ("gpt", "b a b"))), counter)
    assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([2], [3])
    assert found.unit.startswith("tokens of tokenizer.json")
    path.write_text("{}")
    with pytest.raises(BadInput, match=r"no tokenizer\.json"):
        by_tokenizer(path)
    with pytest.raises(BadInput, match="cannot be read"):
        by_tokenizer(tmp_path / "nowhere.json")


def test_without_the_package_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(BadInput, match="needs the package tokenizers"):
        by_tokenizer(tmp_path / "tokenizer.json")
