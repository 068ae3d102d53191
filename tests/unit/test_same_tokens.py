"""Tokenizers compared token by token: what is refused, and what may differ."""

from __future__ import annotations

import pytest

from simspec.errors import BadInput
from simspec.record.tokenizers import check_ids_fit, check_same_tokens, mask_token_id, vocabulary_hash
from tests import tiny

pytestmark = pytest.mark.real_model  # of the extra `record`, only tokenizers is needed


def swapped(first: int, second: int) -> tuple[str, ...]:
    words = list(tiny.WORDS)
    words[first], words[second] = words[second], words[first]
    return tuple(words)


def test_the_same_tokens_pass():
    check_same_tokens(tiny.tokenizer(), tiny.tokenizer(), "drafter")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: tiny.tokenizer(words=swapped(3, 8)), ["2 places", "id 3: 'i' here, 'd' in the target"]),
        (lambda: tiny.tokenizer(special=("<end>", "<pad>")), ["1 places", "id 31: '<pad>' here, '<mask>'"]),
        (
            lambda: tiny.tokenizer(special=("<end>",)),
            ["1 places", "id 31: none here, '<mask>' in the target"],
        ),
        (
            lambda: tiny.tokenizer(special=("<end>", "<mask>", "<more>")),
            ["1 places", "id 32: '<more>' here, none in the target"],
        ),
    ],
    ids=["swapped", "special", "missing", "more"],
)
def test_the_first_id_that_differs_is_named_with_both_tokens(other, said):
    with pytest.raises(BadInput) as refused:
        check_same_tokens(tiny.tokenizer(), other(), "drafter x")
    for words in ["drafter x", *said]:
        assert words in str(refused.value)


MERGES = (("u", "i"), ("i", "c"))


def test_merges_that_change_ids_are_refused():
    """Both hold ui and ic; of "quick" the one makes q ui c k, the other q u ic k."""
    here, there = tiny.tokenizer(merges=MERGES), tiny.tokenizer(merges=MERGES[::-1])
    assert here.get_vocab() == there.get_vocab()
    with pytest.raises(BadInput, match=r"quick.*'u'.*'ui'"):
        check_same_tokens(here, there, "drafter")


def test_what_normalises_text_counts_where_it_changes_ids():
    from tokenizers import normalizers

    lower = tiny.tokenizer()
    lower.backend_tokenizer.normalizer = normalizers.Lowercase()
    with pytest.raises(BadInput, match="splits"):
        check_same_tokens(tiny.tokenizer(), lower, "drafter")


def test_what_changes_no_ids_may_differ():
    """Another order of merges that never meet: the files differ, no text is cut otherwise."""
    apart = (("a", "b"), ("x", "y"))
    here, there = tiny.tokenizer(merges=apart), tiny.tokenizer(merges=apart[::-1])
    assert here.backend_tokenizer.to_str() != there.backend_tokenizer.to_str()
    check_same_tokens(here, there, "drafter")


def test_a_drafter_may_have_a_mask_of_its_own():
    """Only where the target has nothing at that id."""
    more = tiny.tokenizer(special=("<end>", "<mask>", "<hole>"))
    check_same_tokens(tiny.tokenizer(), more, "drafter", own=[32])
    other = tiny.tokenizer(special=("<end>", "<hole>"))
    with pytest.raises(BadInput, match="id 31"):
        check_same_tokens(tiny.tokenizer(), other, "drafter", own=[31])


def test_ids_without_a_token_may_be_missing_from_a_smaller_table():
    tokens = tiny.tokenizer()  # 32 of them
    check_ids_fit(tokens, {"small": 32, "large": 40})
    check_ids_fit(tokens, {"small": 31, "other": 31})  # id 31 is out of reach for all
    check_ids_fit(None, {"small": 10, "large": 40})
    with pytest.raises(BadInput, match="small tells 31 token ids apart, but id 31 is '<mask>'"):
        check_ids_fit(tokens, {"small": 31, "large": 40})


def test_a_mask_token_by_name():
    assert mask_token_id("<mask>", tiny.tokenizer(), "mask") == 31
    assert mask_token_id(7, None, "mask") == 7
    with pytest.raises(BadInput, match="'<hole>'"):
        mask_token_id("<hole>", tiny.tokenizer(), "mask")


def test_the_hash_is_of_ids_and_tokens_alone():
    assert vocabulary_hash({"a": 0, "b": 1}) == vocabulary_hash({"b": 1, "a": 0})
    assert vocabulary_hash({"a": 0, "b": 1}) != vocabulary_hash({"b": 0, "a": 1})
