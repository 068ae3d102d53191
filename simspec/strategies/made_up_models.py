"""Made-up deterministic models: what each says, how sure it is, and the prompts and texts of a setting.

A made-up model is a function of the whole token history, as a real one is under greedy decoding, and so
is its confidence. Nothing here is measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from simspec.speculation.drafters import PromptLookup
from simspec.streams import stream

VOCABULARY = 20
EOS = VOCABULARY - 1
TARGET, MIDDLE, SMALL, LOOKUP = "target", "middle", "small", "ngram"
MODELS = (TARGET, LOOKUP, SMALL, MIDDLE)

# What follows token 0 and what follows token 1.
FUNCTIONS: tuple[tuple[int, int], ...] = tuple((a, b) for a in (0, 1, EOS) for b in (0, 1, EOS))

# Token ids from the prompt's first on.
History = Sequence[int]


@dataclass(frozen=True)
class Setting:
    """What the models, prompts and texts of a synthetic trace are made from.

    Attributes:
        seed: of everything that is made up.
        prompts: how many, each of 3 to 17 tokens.
        output_tokens: a text ends there, or at an end-of-text token, one in ``VOCABULARY`` at each place.
        block_length: tokens recorded of each block.
        order: tokens that the target looks back on; 1 makes texts that repeat themselves, so that a
            look-up finds something, and from 3 on they hardly do, so that it often finds nothing.
        middle_rate, small_rate: how often a model says what the one it follows says: 0 is never, 1 always.
            ``MIDDLE`` follows the target.
        small_follows: whom ``SMALL`` follows. Following ``MIDDLE``, it is right mostly where that is.
    """

    seed: int = 0
    prompts: int = 3
    output_tokens: int = 12
    block_length: int = 5
    order: int = 2
    middle_rate: float = 0.7
    small_rate: float = 0.6
    small_follows: str = MIDDLE

    def __post_init__(self) -> None:
        for name in ("prompts", "output_tokens", "block_length", "order"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("middle_rate", "small_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.small_follows not in (TARGET, MIDDLE):
            raise ValueError(f"{SMALL} follows {TARGET} or {MIDDLE}, not {self.small_follows}")


@dataclass(frozen=True)
class Tabulated:
    """All models that look back on one token, over the tokens 0 and 1 and an end of text.

    There are 9 such next-token functions: what follows 0, and what follows 1. A prompt's first tokens say
    which of them the target, ``SMALL`` and ``MIDDLE`` are, and its last one is 0; with a prompt for each of
    9 x 9 x ``middles`` triples, one replay of the trace is a replay of all these models.

    Attributes:
        middles: how many of the functions ``MIDDLE`` runs through, 1 to 9.
    """

    middles: int = 9
    output_tokens: int = 3
    block_length: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.middles <= len(FUNCTIONS):
            raise ValueError(f"middles must be from 1 to {len(FUNCTIONS)}, not {self.middles}")

    @property
    def prompts(self) -> int:
        return len(FUNCTIONS) ** 2 * self.middles

    def models(self, prompt: int) -> dict[str, tuple[int, int]]:
        """What each model says after 0 and after 1, at this prompt."""
        pair, middle = divmod(prompt, self.middles)
        target, small = divmod(pair, len(FUNCTIONS))
        return {TARGET: FUNCTIONS[target], SMALL: FUNCTIONS[small], MIDDLE: FUNCTIONS[middle]}


def settings_of(
    *, prompts: int = 4, output_tokens: tuple[int, int] = (4, 24), block_length: tuple[int, int] = (3, 10)
) -> st.SearchStrategy[Setting]:
    """Settings within the given bounds, perfect and worthless drafters among them."""
    rate = st.sampled_from([0.0, 0.3, 0.6, 0.8, 0.95, 1.0])
    return st.builds(
        Setting,
        seed=st.integers(0, 10_000),
        prompts=st.integers(1, prompts),
        output_tokens=st.integers(*output_tokens),
        block_length=st.integers(*block_length),
        order=st.integers(1, 3),
        middle_rate=rate,
        small_rate=rate,
        small_follows=st.sampled_from([TARGET, MIDDLE]),
    )


def all_settings(
    seeds: int, output_tokens: tuple[int, ...] = (1, 3, 6, 10), prompts: int = 3
) -> Iterator[Setting]:
    """Small settings, short texts first: each seed below ``seeds`` with each kind of models."""
    for size, seed, order, middle, small, follows in product(
        output_tokens, range(seeds), (1, 3), (0.0, 0.6, 1.0), (0.0, 0.6, 1.0), (TARGET, MIDDLE)
    ):
        yield Setting(seed, prompts, size, max(1, size // 2), order, middle, small, follows)


class MadeUpModels:
    """The models of a setting, their prompts and texts.

    Attributes:
        prompts: token ids of each prompt.
        texts: token ids of each text, the target's own greedy output.
    """

    def __init__(self, setting: Setting | Tabulated):
        self.setting = setting
        self.lookup = PromptLookup(3, 1)
        self._memo: dict[tuple[str, tuple[int, ...]], tuple[int, float]] = {}
        self.prompts = [self._prompt(p) for p in range(setting.prompts)]
        self.texts = [self._decode(prompt) for prompt in self.prompts]

    # The models, one token at a time.

    def next_token(self, model: str, history: History) -> int:
        """The model's most probable token after ``history``."""
        return self._asked(model, tuple(history))[0]

    def confidence(self, model: str, history: History) -> float:
        """The probability that it gives to that token; it says nothing of whether the token is right."""
        return self._asked(model, tuple(history))[1]

    def greedy(self, model: str, history: History, block: History) -> NDArray[np.int32]:
        """What it would put at each place of ``block`` and one past its end, shape (n + 1,)."""
        whole = [*history, *block]
        first = len(history)
        return np.array(
            [self.next_token(model, whole[:i]) for i in range(first, len(whole) + 1)], dtype=np.int32
        )

    def draft(self, model: str, history: History, length: int) -> tuple[list[int], list[float]]:
        """At most ``length`` drafted tokens, none after an end of text, and their confidences."""
        if model == LOOKUP:
            found = self.lookup.draft(np.array(history, dtype=np.int32), max(length, 0)).tolist()
            if EOS in found:
                found = found[: found.index(EOS) + 1]
            return found, [1.0] * len(found)
        tokens: list[int] = []
        sure: list[float] = []
        while len(tokens) < length and EOS not in tokens:
            seen = [*history, *tokens]
            sure.append(self.confidence(model, seen))
            tokens.append(self.next_token(model, seen))
        return tokens, sure

    def _asked(self, model: str, history: tuple[int, ...]) -> tuple[int, float]:
        key = (model, history)
        if key not in self._memo:
            chance = float(np.float32(0.02 + 0.98 * self._unit(model, "confidence", history)))
            self._memo[key] = (self._choose(model, history), chance)
        return self._memo[key]

    def _choose(self, model: str, history: tuple[int, ...]) -> int:
        s = self.setting
        if isinstance(s, Tabulated):
            function = FUNCTIONS[history[(TARGET, SMALL, MIDDLE).index(model)] - 2]
            return function[history[-1]] if history[-1] in (0, 1) else 0
        if model == TARGET:
            return int(self._unit(TARGET, history[-s.order :]) * VOCABULARY)
        rate, follows = {MIDDLE: (s.middle_rate, TARGET), SMALL: (s.small_rate, s.small_follows)}[model]
        theirs = self.next_token(follows, history)
        if self._unit(model, "follows", history) < rate:
            return theirs
        # Any token but theirs: a rate of 0 is a drafter that is never right.
        return (theirs + 1 + int(self._unit(model, "own", history) * (VOCABULARY - 1))) % VOCABULARY

    def _unit(self, *what: object) -> float:
        """A number in [0, 1) that is a function of the seed and of ``what``."""
        digest = hashlib.blake2b(repr((self.setting.seed, *what)).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "little") / 2**48

    def _prompt(self, index: int) -> list[int]:
        if isinstance(self.setting, Tabulated):
            return [*(2 + FUNCTIONS.index(f) for f in self.setting.models(index).values()), 0]
        generator = stream(self.setting.seed, "toy", "prompt", index)
        words = generator.integers(0, VOCABULARY, int(generator.integers(2, 9))).tolist()
        # A chat template has the end-of-text token in it too, and a prompt may say a thing twice.
        return [*words, EOS, *words[: int(generator.integers(1, len(words) + 1))]]

    def _decode(self, prompt: list[int]) -> list[int]:
        text: list[int] = []
        while len(text) < self.setting.output_tokens and EOS not in text:
            text.append(self.next_token(TARGET, [*prompt, *text]))
        return text


class OtherFuture(MadeUpModels):
    """The models of a setting up to a point of one text, and others from there on.

    After a history that begins with ``since`` networks answer as those of another seed do, after any other
    as they did. Blocks that were drafted earlier and left the text are such others, so the past of the
    text is the same to the last verdict.

    Args:
        since: tokens of the prompt and of the text so far.
        luck: seed of the other answers.
    """

    def __init__(self, setting: Setting, since: History, luck: int):
        self.since = tuple(since)
        self.later = MadeUpModels(replace(setting, seed=setting.seed + 1 + luck))
        super().__init__(setting)

    def _asked(self, model: str, history: tuple[int, ...]) -> tuple[int, float]:
        if history[: len(self.since)] == self.since:
            return self.later._asked(model, history)
        return super()._asked(model, history)
