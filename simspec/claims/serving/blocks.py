"""Counting KV blocks is enough: a pool beside blocks that have numbers and owners (M3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.serving.kvcache import Pool

# What is done, and to which slots: take (slot, tokens), release (slot), grow and shrink (tokens of each).
Step = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Story:
    """What slots ask of a pool of ``total`` blocks (None: no limit) of ``block_tokens`` tokens."""

    slots: int
    total: int | None
    block_tokens: int
    steps: tuple[Step, ...]


class Numbered:
    """The naive twin: blocks with numbers, each in the list of one slot or free."""

    def __init__(self, story: Story):
        self.size, self.total = story.block_tokens, story.total
        self.held: list[list[int]] = [[] for _ in range(story.slots)]
        self.tokens = [0] * story.slots

    def do(self, step: Step) -> bool:
        """Do it, or nothing and return False where there are not blocks enough or a slot is held already."""
        does, told = step
        if does == "take" and self.held[told[0]]:
            return False
        wanted = self.wanted(does, told)
        needs = [len(range(0, tokens, self.size)) for tokens in wanted]
        if does in ("take", "grow"):
            needs = [max(n, len(held)) for n, held in zip(needs, self.held, strict=True)]
        free = self._free(sum(needs))
        if sum(max(0, n - len(held)) for n, held in zip(needs, self.held, strict=True)) > len(free):
            return False
        for need, held in zip(needs, self.held, strict=True):
            while len(held) > need:
                held.pop()
            while len(held) < need:
                held.append(free.pop())
        self.tokens = wanted
        return True

    def wanted(self, does: str, told: tuple[int, ...]) -> list[int]:
        """Tokens of every slot when that is done."""
        if does in ("take", "release"):
            new = told[1] if does == "take" else 0
            return [new if slot == told[0] else t for slot, t in enumerate(self.tokens)]
        sign = 1 if does == "grow" else -1
        return [max(t + sign * n, 1) if t else 0 for t, n in zip(self.tokens, told, strict=True)]

    def _free(self, most: int) -> list[int]:
        """Numbers that nobody holds; of endlessly many, enough."""
        owned = {block for held in self.held for block in held}
        return [n for n in range(len(owned) + most if self.total is None else self.total) if n not in owned]


def _done(pool: Pool, step: Step, tokens: list[int]) -> bool:
    """Have the pool do it; ``tokens`` are those that slots have after it. False where it refuses."""
    does, told = step
    try:
        if does == "take":
            pool.take(*told)
        elif does == "release":
            pool.release(told[0])
        elif does == "shrink":
            pool.shrink(np.array(tokens))
        else:
            pool.missing(np.array(tokens))
            pool.grow()
    except ValueError:
        return False
    return True


def _counts_as_numbered(make: Callable[[int, int | None, int], Pool]) -> Rule:
    """After every step a pool has refused, holds and has free what the twin has."""

    def rule(story: Story) -> Outcome:
        pool, twin = make(story.slots, story.total, story.block_tokens), Numbered(story)
        for n, step in enumerate(story.steps, 1):
            wanted = twin.wanted(*step)
            right = twin.do(step)
            found = _done(pool, step, wanted)
            held, owned = pool.held.tolist(), [len(blocks) for blocks in twin.held]
            used = sum(owned)
            if (found, held, pool.used, pool.free) != (right, owned, used, pool.total - used):
                steps = "; ".join(f"{does} {shown(what)}" for does, what in story.steps[:n])
                return against(
                    f"{story.slots} slots, {story.total} blocks of {story.block_tokens} tokens: {steps}",
                    f"the last is {'done' if found else 'refused'}; with numbered blocks "
                    f"{'done' if right else 'refused'}",
                    f"slots hold {shown(tuple(held))} and {pool.free} are free of {pool.total}",
                    f"numbered, slots hold {shown(tuple(map(tuple, twin.held)))}: {used} in use",
                )
        return None

    return rule


class _RoundsDown(Pool):
    """Counts full blocks only."""

    def take(self, slot: int, tokens: int) -> None:
        super().take(slot, tokens - tokens % self.block_tokens)


class _ForgetsLast(Pool):
    """Releases all blocks but the last one, which may not be full."""

    def release(self, slot: int) -> None:
        kept = int(self.held[slot]) > 1
        super().release(slot)
        self.free -= kept


class _Promises(Pool):
    """Hands out blocks whether there are any or not."""

    def grow(self) -> None:
        self.held += self._extra
        self.free -= self.short
        self.short = 0


def all_stories(level: int) -> Iterator[Story]:
    """Two slots, 1 to 3 blocks of 1 and 2 tokens, and 2 to 4 steps by level that begin with a taking."""
    takes = [("take", (slot, tokens)) for slot in (0, 1) for tokens in (1, 2, 3)]
    others: list[Step] = [("grow", more) for more in ((0, 1), (1, 0), (1, 1), (2, 1))]
    others += [("shrink", (1, 0)), ("shrink", (1, 1)), ("release", (0,)), ("release", (1,))]
    for count in range(1, 3 + level):
        for first, *rest in product(takes, *[[*takes, *others]] * (count - 1)):
            for total, size in product((1, 2, 3), (1, 2)):
                yield Story(2, total, size, (first, *rest))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """One to four slots, up to 30 blocks or no limit, up to 15 steps."""
    slots = draw(st.integers(1, 4))
    slot, each = st.integers(0, slots - 1), st.tuples(*[st.integers(0, 12)] * slots)
    step = st.one_of(
        st.tuples(st.just("take"), st.tuples(slot, st.integers(1, 40))),
        st.tuples(st.sampled_from(("grow", "shrink")), each),
        st.tuples(st.just("release"), st.tuples(slot)),
    )
    steps = draw(st.lists(step, min_size=1, max_size=15))
    return Story(slots, draw(st.integers(1, 30) | st.none()), draw(st.integers(1, 5)), tuple(steps))


M3_STATEMENT = Statement(
    words=(
        "Counting blocks is enough: after every step a pool holds, has free and refuses exactly what a store "
        "of numbered blocks would, in which no block has two owners; and used + free = total"
    ),
    formula="sum_slot held + free = total;  held_slot = |numbers of the slot|, those sets disjoint",
    rule=_counts_as_numbered(Pool),
    over=(
        "all stories of 2 slots, 1 to 3 blocks of 1 and 2 tokens and up to 3 steps (2 and 4 at the smallest "
        "and the largest budget) that take, grow, shrink and release; random ones of up to 4 slots, 30 "
        "blocks and 15 steps"
    ),
    domain=stories(),
    every=all_stories,
    examples=100,
)
M3 = Claim(
    id="M3",
    source="claims ledger, M3; paged KV memory as in vLLM (2309.06180)",
    statement=M3_STATEMENT,
    expected="holds",
    because=(
        "A slot with t tokens needs ceil(t / size) blocks, whichever they are. Handing out moves a count "
        "from free to the slot and is refused beyond free; taking back moves it the other way. Both keep the "
        "sum, and numbers can be dealt to any such counts without one being dealt twice, since they never "
        "exceed the total."
    ),
    broken=(
        M3_STATEMENT.but(
            "The same of a pool that does not count a block that is not full",
            _counts_as_numbered(_RoundsDown),
        ),
        M3_STATEMENT.but(
            "The same of a pool that does not take back a slot's last block",
            _counts_as_numbered(_ForgetsLast),
        ),
        M3_STATEMENT.but(
            "The same of a pool that hands out blocks that it has not", _counts_as_numbered(_Promises)
        ),
    ),
)

CLAIMS = (M3,)
