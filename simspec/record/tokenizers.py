"""Whether two models mean the same by a token id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from simspec.errors import BadInput

# Text on which tokenizers that hold the same tokens may still part: words, case, digits, blanks,
# line ends, scripts, signs.
PROBES = (
    "The quick brown fox doesn't jump; it WALKS over 12,345.678 dogs (twice).",
    "def f(x):\n\treturn {'a': x**2}  # squared\n\n    if x != 0:\r\n        pass\n",
    "   leading and trailing   \n\n\n",
    "naïve café – Straße, cafe\u0301, Ωμέγα, привет, 你好世界, こんにちは, مرحبا, 👩🏽‍💻🙂",
    'https://example.org/a_b?c=d&e=%20f <tag attr="1"/> \\frac{1}{2} $x_i^2$',
)

# Parts of a tokenizer that decide which ids a text becomes. How ids become text again, and what a
# template puts around them, is not compared: a drafter is handed ids.
_DECIDING = ("normalizer", "pre_tokenizer", "model", "added_tokens")


def vocabulary_hash(vocabulary: Mapping[str, int]) -> str:
    """SHA-256 over ids and tokens, in the order of ids."""
    digest = hashlib.sha256()
    for token, index in sorted(vocabulary.items(), key=lambda pair: pair[1]):
        digest.update(f"{index}\t{token}\n".encode())
    return digest.hexdigest()


def check_same_tokens(target: Any, other: Any, where: str, *, own: Collection[int] = ()) -> None:
    """Refuse a drafter whose token ids mean something else than the target's.

    Special tokens are tokens as any other. Merges and the splitting of text count where they
    change what ids a text becomes: on :data:`PROBES`, and on the text of every token.

    Args:
        where: names the drafter, for messages.
        own: ids that the drafter may have and the target lacks, such as that of its mask.

    Raises:
        BadInput: naming the first id that differs, with both tokens.
    """
    ours = {(index, token) for token, index in target.get_vocab().items()}
    theirs = {(index, token) for token, index in other.get_vocab().items()}
    known = {index for index, _ in ours}
    theirs = {pair for pair in theirs if pair[0] not in own or pair[0] in known}
    different = ours ^ theirs
    if different:
        first = min(index for index, _ in different)
        raise BadInput(
            f"token ids differ from the target's in {len({i for i, _ in different})} places, first at id "
            f"{first}: {_token(theirs, first)} here, {_token(ours, first)} in the target",
            where=where,
            allowed="the same token at every id",
        )
    if _deciding(target, own) != _deciding(other, own):
        _check_same_splitting(target, other, where)


def check_ids_fit(tokenizer: Any, rows: Mapping[str, int]) -> None:
    """Refuse models of which some know a token that others have no room for.

    Ids that no token has, at the end of a larger table, may be missing from the others.

    Args:
        tokenizer: the target's, or None.
        rows: of each model, how many ids it tells apart.
    """
    fewest, most = min(rows, key=lambda name: rows[name]), max(rows.values())
    used = sorted(index for index in tokenizer.get_vocab().values()) if tokenizer is not None else []
    lost = [index for index in used if rows[fewest] <= index < most]
    if lost:
        raise BadInput(
            f"{fewest} tells {rows[fewest]} token ids apart, but id {lost[0]} is "
            f"{tokenizer.convert_ids_to_tokens(lost[0])!r} to others",
            where="models",
            allowed="differing sizes only where no token has the ids beyond",
        )


def mask_token_id(token: int | str, tokenizer: Any, where: str) -> int:
    """The id of a mask token that a recipe gives as an id or as a token.

    Raises:
        BadInput: when the tokenizer has no such token, or there is none to ask.
    """
    if isinstance(token, int):
        return token
    known = tokenizer.get_vocab() if tokenizer is not None else {}
    if token not in known:
        raise BadInput(
            f"mask_token {token!r} is no token of its tokenizer",
            where=where,
            allowed="a token as the tokenizer writes it, or its id",
        )
    return int(known[token])


def _token(pairs: set[tuple[int, str]], wanted: int) -> str:
    found = sorted(token for index, token in pairs if index == wanted)
    return " and ".join(map(repr, found)) or "none"


def _deciding(tokenizer: Any, own: Collection[int]) -> Any:
    """What decides a tokenizer's ids, to compare; equal only to itself where that cannot be seen."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return tokenizer
    parts = json.loads(backend.to_str())
    added = [
        {name: value for name, value in token.items() if name != "special"}
        for token in parts.get("added_tokens") or []
        if token["id"] not in own
    ]
    return {**{name: parts.get(name) for name in _DECIDING}, "added_tokens": added}


def _check_same_splitting(target: Any, other: Any, where: str) -> None:
    texts = [*PROBES, *(target.decode([i]) for i in sorted(target.get_vocab().values()))]
    ours = target(texts, add_special_tokens=False)["input_ids"]
    theirs = other(texts, add_special_tokens=False)["input_ids"]
    for text, a, b in zip(texts, ours, theirs, strict=True):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            raise BadInput(
                f"splits {text!r} into other tokens than the target: at place {at} it has "
                f"{_at(other, b, at)}, the target {_at(target, a, at)}",
                where=where,
                allowed="the same ids for the same text",
            )


def _at(tokenizer: Any, ids: list[int], place: int) -> str:
    if place >= len(ids):
        return "none"
    return f"id {ids[place]} {tokenizer.convert_ids_to_tokens(ids[place])!r}"
