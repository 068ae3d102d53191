"""One draft-verify cycle of one request, token by token.

The one statement of a cycle's rules. Replay follows them in bulk (:mod:`simspec.replay`) and
is held against them; the decoder of real models drives them for many requests at once. It is
free of torch: a cycle is a generator that asks for drafts and for verifiers' words and is
sent the answers, so whoever drives it decides how forwards are batched.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simspec.speculation.chains import Chain, Semantics
from simspec.speculation.verify import NOTHING, Block, GreedyJudge, Judge, Settled, Tokens

# Given a block of n tokens after the text, the verifier's most probable token at each
# place of the block and one past its end, shape (n + 1,).
Verifier = Callable[[Tokens], Tokens]


@dataclass(frozen=True)
class AskDraft:
    """Draft at most ``most`` tokens after the text and ``ahead``; answered by a :class:`Block`."""

    ahead: Tokens
    most: int


@dataclass(frozen=True)
class AskWords:
    """Read ``block`` after the text and ``ahead`` with the chain's model at ``level``.

    Answered by what the judge takes: the model's words at each place of the block and one
    past its end.
    """

    level: int
    ahead: Tokens
    block: Tokens


@dataclass(frozen=True)
class Tell:
    """A drafted block has been settled: so many of its tokens were submitted and kept. No answer."""

    submitted: int
    kept: int


@dataclass(frozen=True)
class Cycle:
    """What one cycle did.

    Attributes:
        offered: tokens that each verifier was given, the target's last; for a nested chain
            the target's alone.
        kept: drafts of the first block that are among the emitted tokens; for a nested chain
            as ``accepted``.
        accepted: tokens of the target's block that it accepted (that it was handed, under
            early-emit).
        emitted: the tokens added to the text.
        block: the tokens of the first block.
        survived: how many of those came through the intermediates.
    """

    offered: tuple[int, ...]
    kept: int
    accepted: int
    emitted: Tokens
    block: Tokens
    survived: int


CycleSteps = Generator[AskDraft | AskWords | Tell, Any, Cycle]


def cycle(chain: Chain, judge: Judge, room: int, eos_tokens: Sequence[int]) -> CycleSteps:
    """The steps of one cycle.

    Args:
        room: tokens that the text may still grow by, at least 1.
        eos_tokens: tokens that end the text.

    Conventions, which replay shares: at most ``room - 1`` tokens are drafted, since the
    target adds one, and nothing after an end of text; an intermediate is left out when it is
    given nothing and passes nothing of its own upward; it adds no token after an end of text
    nor beyond ``room - 1``; the target always runs, and adds its own token unless the accepted
    drafts have ended the text.
    """
    if room < 1:
        raise ValueError(f"room must be at least 1, not {room}")
    top = len(chain.levels) - 1
    nested = chain.semantics == "nested" and top > 1
    block = NOTHING
    if nested:
        block = yield from _collect(chain, top - 1, judge, NOTHING.tokens, room - 1, eos_tokens)
    elif top:
        block = yield AskDraft(NOTHING.tokens, room - 1)
        _check(block, room - 1)
    drafted, kept, offered = block.tokens, len(block), []
    for level in range(1, 1 if nested else top):
        offered.append(len(block))
        if not len(block) and chain.semantics != "funnel-replace":
            continue
        settled = judge.settle(block, (yield AskWords(level, NOTHING.tokens, block.tokens)))
        kept = min(kept, settled.accepted)
        block = settled.survivors
        if chain.semantics == "funnel-replace" and not _ended(block, eos_tokens):
            block = settled.owned.first(room - 1)
    survived = kept
    offered.append(len(block))
    words = yield AskWords(top, NOTHING.tokens, block.tokens)
    if chain.lossless:
        settled = judge.settle(block, words)
    else:
        # Nobody checks the block: only the word past its end is the target's.
        settled = judge.settle(NOTHING, words[len(block) :])
        tokens = np.append(block.tokens, settled.own).astype(np.int32)
        settled = Settled(len(block), block, settled.own, Block(tokens))
    ended = _ended(block.first(settled.accepted), eos_tokens)
    emitted = settled.owned.tokens[: settled.accepted + (not ended)]
    kept = min(kept, settled.accepted)
    if top and not nested:
        yield Tell(len(drafted), kept)
    return Cycle(tuple(offered), kept, settled.accepted, emitted, drafted, survived)


def _collect(
    chain: Chain, level: int, judge: Judge, ahead: Tokens, most: int, eos_tokens: Sequence[int]
) -> Generator[AskDraft | AskWords | Tell, Any, Block]:
    """Rounds of the levels below ``level`` until it has tokens of its own to hand up (nested chains)."""
    wanted = min(chain.collect[level - 1], most)
    got = NOTHING
    while len(got) < wanted and not _ended(got, eos_tokens):
        left = wanted - len(got)
        so_far = np.concatenate([ahead, got.tokens])
        inner = NOTHING
        if level > 1:
            inner = yield from _collect(chain, level - 1, judge, so_far, left - 1, eos_tokens)
        elif left > 1:
            inner = yield AskDraft(so_far, left - 1)
            _check(inner, left - 1)
        settled = judge.settle(inner, (yield AskWords(level, so_far, inner.tokens)))
        if level == 1 and left > 1:
            yield Tell(len(inner), settled.accepted)
        ended = _ended(inner.first(settled.accepted), eos_tokens)
        got = got.then(settled.owned.first(settled.accepted + (not ended)))
    return got


def _check(block: Block, most: int) -> None:
    if len(block) > most:
        raise ValueError(f"{len(block)} drafted tokens, room for {most}")


def _ended(block: Block, eos_tokens: Sequence[int]) -> bool:
    return bool(len(block)) and int(block.tokens[-1]) in eos_tokens


def run_cycle(
    drafted: Tokens,
    verifiers: Sequence[Verifier],
    semantics: Semantics,
    room: int,
    eos_tokens: Sequence[int],
) -> Cycle:
    """Drive one greedy cycle of a funnel with functions in the place of models.

    Args:
        drafted: the block, cut to what is submitted; at most ``room - 1`` tokens, and
            nothing after an end-of-text token.
        verifiers: the intermediates in order and then the target.
    """
    levels = tuple(str(i) for i in range(len(verifiers) + 1))
    steps = cycle(Chain(levels, semantics), GreedyJudge(), room, eos_tokens)
    answer: Any = None
    try:
        while True:
            ask = steps.send(answer)
            match ask:
                case AskDraft():
                    answer = Block(drafted)
                case AskWords():
                    answer = verifiers[ask.level - 1](ask.block)
                case Tell():
                    answer = None
    except StopIteration as stop:
        done: Cycle = stop.value
        return done
