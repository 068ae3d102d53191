"""ShareGPT conversations: texts, without instants and without counts of tokens.

Only lengths come out of it. How a text is counted in tokens must be said: so many characters a token, or
a tokenizer of the caller's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput

Ints = NDArray[np.int64]

ASKING = frozenset({"human", "user"})
ANSWERING = frozenset({"gpt", "chatgpt", "assistant", "bing", "bard"})
BESIDE = frozenset({"system"})


@dataclass(frozen=True)
class Counter:
    """How a text's tokens are counted: the rule in words, and the rule."""

    unit: str
    count: Callable[[str], int]


@dataclass(frozen=True)
class Lengths:
    """Lengths of requests without instants, in the order of the file.

    Attributes:
        prompt_tokens, output_tokens: (N,), each at least 1.
        source: the file's name and format.
        unit: how tokens were counted.
        dropped: reason -> conversations or replies left out for it.
    """

    prompt_tokens: Ints
    output_tokens: Ints
    source: str
    unit: str
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.prompt_tokens)


def by_characters(per_token: float) -> Counter:
    """Unicode characters over ``per_token``, rounded up: an approximation, and its unit says so."""
    if not (np.isfinite(per_token) and 0 < per_token <= 100):
        raise BadInput(f"characters_per_token is {per_token}", allowed="above 0, at most 100")
    # Of the number as it is written: 0.1 is a tenth here, so that ten characters are 100 tokens and not 99.
    exact = Fraction(repr(float(per_token)))

    def count(text: str) -> int:
        return -(-len(text) * exact.denominator // exact.numerator)

    return Counter(f"approximate: characters over {per_token:g}, rounded up", count)


def by_tokenizer(path: Path) -> Counter:
    """What a tokenizer.json makes of a text, without special tokens.

    Raises BadInput if the package ``tokenizers`` is absent or the file is none of its.
    """
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError as error:
        raise BadInput(
            "counting with a tokenizer.json needs the package tokenizers",
            where=path,
            hint="install it, or give characters_per_token instead",
        ) from error
    try:
        tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except Exception as error:  # the package raises nothing narrower
        raise BadInput(f"is no tokenizer.json: {error}", where=path) from error
    return Counter(
        f"tokens of {path.name}, without special tokens and chat template",
        lambda text: len(tokenizer.encode(text, add_special_tokens=False)),
    )


def read_sharegpt(path: Path, counter: Counter, turns: Literal["first", "all"] = "first") -> Lengths:
    """``[{"conversations": [{"from": "human", "value": ...}, {"from": "gpt", ...}, ...]}, ...]``.

    Args:
        turns: ``first``: of each conversation its first question and the reply to it, as serving
            benchmarks do; ``all``: every reply, its prompt being all text before it.

    Left out and counted: conversations that do not begin with a question that is answered (a system
    text may stand before it; with ``all``, what follows the first turn out of order too), and
    exchanges with an empty text. Raises BadInput naming conversation, turn and field.
    """
    try:
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except msgspec.DecodeError as error:
        raise BadInput(f"is no JSON: {error}", where=path) from error
    if not isinstance(found, list) or not found:
        raise BadInput("is no list of conversations", where=path)
    prompts, outputs = [], []
    lost: dict[str, int] = {}
    for number, conversation in enumerate(found):
        said = list(_turns(conversation, number, path))
        pairs, reasons = _exchanges(said, counter, turns)
        prompts += [prompt for prompt, _ in pairs]
        outputs += [output for _, output in pairs]
        for reason in reasons:
            lost[reason] = lost.get(reason, 0) + 1
    if not prompts:
        raise BadInput("holds no question that is answered", where=path)
    return Lengths(
        np.array(prompts, np.int64),
        np.array(outputs, np.int64),
        f"{path.name} (ShareGPT)",
        counter.unit,
        lost,
    )


def _turns(conversation: Any, number: int, path: Path) -> Iterator[tuple[str, str]]:
    turns = conversation.get("conversations") if isinstance(conversation, dict) else None
    if not isinstance(turns, list):
        raise BadInput(f"conversation {number} has no list 'conversations'", where=path)
    for place, turn in enumerate(turns):
        speaker, text = (turn.get("from"), turn.get("value")) if isinstance(turn, dict) else (None, None)
        if not isinstance(text, str):
            raise BadInput(f"conversation {number}, turn {place}: 'value' is no text", where=path)
        if not isinstance(speaker, str) or speaker not in ASKING | ANSWERING | BESIDE:
            raise BadInput(
                f"conversation {number}, turn {place}: from {speaker!r}",
                where=path,
                allowed=", ".join(sorted(ASKING | ANSWERING | BESIDE)),
            )
        yield speaker, text


def _exchanges(
    said: list[tuple[str, str]], counter: Counter, turns: Literal["first", "all"]
) -> tuple[list[tuple[int, int]], list[str]]:
    """(prompt tokens, output tokens) of a conversation's exchanges, and reasons for those left out."""
    pairs: list[tuple[int, int]] = []
    reasons: list[str] = []
    before = 0
    asked: str | None = None
    for speaker, text in said:
        if speaker in ASKING and asked is None:
            asked = text
        elif speaker in ANSWERING and asked is not None:
            before += counter.count(asked)
            output = counter.count(text)
            if asked and text and before and output:
                pairs.append((before, output))
            else:
                reasons.append("empty text")
            before, asked = before + output, None
            if turns == "first":
                return pairs, reasons
        elif speaker in BESIDE and asked is None and not pairs:
            before += counter.count(text)
        else:
            reasons.append("turns out of order" if pairs or reasons else "no question first")
            return pairs, reasons
    if not pairs and not reasons:
        reasons.append("no reply")
    return pairs, reasons
