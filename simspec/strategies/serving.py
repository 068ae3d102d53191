"""Small serving scenarios: random ones under every option, and all of the smallest.

Loads, lengths and acceptance are made up; :mod:`simspec.strategies.small_engines` says what a scenario is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, product
from typing import Any, Literal, TypeVar

from hypothesis import strategies as st

from simspec.serving.kvcache import Memory
from simspec.serving.policies import ByRows, Fixed, Goodput, OffAbove, Policy
from simspec.strategies.small_engines import Drafting, PriceList, Scenario, Setup, Survival, Texts

T = TypeVar("T")

# Random scenarios.

SURVIVALS = st.lists(st.floats(0, 1), min_size=5, max_size=5).map(lambda s: tuple(sorted(s, reverse=True)))
TEXTS = st.builds(
    Texts,
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=12).map(tuple), min_size=1, max_size=4).map(
        tuple
    ),
)
LUCKY: st.SearchStrategy[Survival | Texts] = st.one_of(SURVIVALS.map(Survival), TEXTS)
ACCEPTANCES: st.SearchStrategy[Survival | Texts] = st.one_of(
    SURVIVALS.map(Survival), SURVIVALS.map(lambda s: Survival(s, mean=True)), TEXTS
)
POLICIES: st.SearchStrategy[Policy] = st.one_of(
    st.builds(Fixed, st.integers(0, 5)),
    st.integers(0, 4).flatmap(
        lambda n: st.builds(OffAbove, st.integers(0, 5), st.just(n), st.integers(0, n))
    ),
    st.just(ByRows(((1, 1, 4), (2, 3, 2)))),
    st.builds(Goodput, st.integers(0, 5), st.floats(0, 1), st.just(2.0), st.integers(0, 3)),
)


def draftings(
    policies: st.SearchStrategy[Policy] = POLICIES,
    acceptances: st.SearchStrategy[Survival | Texts] = ACCEPTANCES,
) -> st.SearchStrategy[Drafting]:
    """Policies and acceptances in any pair."""
    return st.builds(Drafting, policies, acceptances)


def sometimes(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """None in three cases of four: limits on queue and patience hide what happens without them."""
    return st.one_of(st.none(), st.none(), st.none(), strategy)


@st.composite
def scenarios(
    draw: st.DrawFn,
    drafting: st.SearchStrategy[Drafting] | None = None,
    open_loop: bool = False,
    memory: bool = True,
) -> Scenario:
    """Small engines under every option, with loads that make them queue, run out of memory and stand idle.

    Args:
        drafting: how they draft; None for plain decoding in one case of four, and anything else in three.
        open_loop: requests come at their instants and wait for as long as it takes.
        memory: whether it may be limited.
    """
    tick = draw(st.booleans())
    prices: PriceList = draw(st.sampled_from(("ticks", "padded"))) if tick else "device"
    some_time = st.integers(0, 60) if tick else st.integers(0, 40_000_000)
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 24)), min_size=count, max_size=count))
    how = draw(st.one_of(st.none(), *[draftings()] * 3) if drafting is None else drafting)
    ahead = how.policy.longest if how else 0
    limits: dict[str, Any] = {}
    if not open_loop:
        limits = {
            "queue_limit": draw(sometimes(st.integers(0, 3))),
            "patience_ns": draw(sometimes(some_time)),
        }
    engine = Setup(
        slots=draw(st.integers(1, 5)),
        drafting=how,
        prices=prices,
        drafter_prices=draw(st.sampled_from((None, None, "ticks"))),
        lookup=draw(st.booleans()),
        overhead_ns=draw(st.sampled_from((None, 3))),
        idle_ns=draw(st.sampled_from((0, 2))),
        memory=draw(_memories(max(p + o + ahead for p, o in sizes))) if memory else Memory(),
        prefill=draw(st.sampled_from(("whole", "chunked"))),
        mixed=draw(st.booleans()),
        token_budget=draw(st.integers(1, 24)),
        **limits,
    )
    gaps = draw(st.lists(some_time | st.just(0), min_size=count, max_size=count))
    sent = Scenario(engine, draw(st.integers(0, 1000)), tuple(sizes), tuple(accumulate(gaps)))
    if open_loop:
        return sent
    return replace(
        sent,
        clients=draw(st.sampled_from((0, 0, 1, 3))),
        think_ns=draw(some_time),
        until=draw(sometimes(some_time.map(lambda n: 1 + 10 * n))),
    )


@st.composite
def _memories(draw: st.DrawFn, most: int) -> Memory:
    """Often enough for a request of ``most`` tokens and not for two; now and then not for one."""
    block = draw(st.integers(1, 8))
    fair = -(-most // block)
    tight = st.integers(fair, fair + fair // 2)
    blocks = st.one_of(st.none(), tight, tight, st.integers(1, 3 * fair))
    return Memory(
        block,
        draw(blocks),
        draw(blocks),
        draw(st.sampled_from(("reserved", "used"))),
        draw(st.sampled_from(("recompute", "swap"))),
        draw(st.sampled_from((0.0, 2e-9))),
    )


@st.composite
def long_answers(draw: st.DrawFn) -> Scenario:
    """Mostly plain decoding, answers long enough for many steps at once, and requests that come between."""
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 60)), min_size=count, max_size=count))
    off: st.SearchStrategy[Policy] = st.sampled_from((Fixed(0), OffAbove(2, 1, 1), ByRows(((1, 1, 3),))))
    ahead: st.SearchStrategy[Literal["reserved", "used"]] = st.sampled_from(("reserved", "used"))
    engine = Setup(
        draw(st.integers(1, 4)),
        draw(st.none() | draftings(off, st.just(Survival((0.5, 0.5, 0.5))))),
        draw(st.sampled_from(("ticks", "padded"))),
        memory=Memory(draw(st.integers(1, 4)), draw(st.none() | st.integers(80, 200)), None, draw(ahead)),
        mixed=draw(st.booleans()),
    )
    gaps = draw(st.lists(st.integers(0, 200), min_size=count, max_size=count))
    return Scenario(
        engine,
        draw(st.integers(0, 9)),
        tuple(sizes),
        tuple(accumulate(gaps)),
        clients=draw(st.sampled_from((0, 0, 0, 2))),
        think_ns=draw(st.integers(0, 50)),
        until=draw(st.none() | st.integers(1, 1000)),
    )


# All small ones.

SURE, NEVER, HALF = Survival((1.0, 1.0)), Survival((0.0, 0.0)), Survival((0.5, 0.25))


def all_scenarios(level: int) -> Iterator[Scenario]:
    """Few requests for plain and drafting engines of 1 and 2 slots, small ones first.

    One request and two, at level 2 three; prompts of 1 token, outputs of 1 to 3 (2 at level 0); together, one
    in the midst of the other, and apart; drafts of 0 to 2 tokens that are always, never and by chance
    accepted. Then :func:`scarce_memory` and :func:`impatient`.
    """
    outputs = range(1, 3 if level == 0 else 4)
    gaps = ((0, 7), (0, 7, 40), (0, 7, 12, 40))[level]
    for count in range(1, 4 if level == 2 else 3):
        for answers, apart in product(product(outputs, repeat=count), product(gaps, repeat=count - 1)):
            sizes = tuple((1, o) for o in answers)
            for slots, drafting in product(range(1, min(count, 2) + 1), _draftings(level)):
                yield Scenario(Setup(slots, drafting), 0, sizes, (0, *accumulate(apart)))
    yield from scarce_memory(level)
    yield from impatient(level)


def _draftings(level: int) -> list[Drafting | None]:
    """None, and fixed lengths with what becomes of them, which no length of 0 needs to be told twice."""
    lengths = (1, 2) if level == 0 else (0, 1, 2)
    chances = ((HALF,), (SURE, HALF), (SURE, NEVER, HALF))[level]
    drafting = [Drafting(Fixed(n), one) for n in lengths for one in (chances if n else chances[:1])]
    return [None, *drafting]


def scarce_memory(level: int) -> Iterator[Scenario]:
    """Two requests, at level 2 three, that come together and have not enough memory to end together.

    Under every way of looking ahead and of preempting.
    """
    count = 3 if level == 2 else 2
    ahead: tuple[Literal["reserved", "used"], ...] = ("reserved", "used")
    losing: tuple[Literal["recompute", "swap"], ...] = ("recompute", "swap")
    for drafting, lookahead, preemption in product(_draftings(level), ahead, losing):
        blocks = 6 + Setup(2, drafting).longest
        memory = Memory(1, blocks, blocks, lookahead, preemption, 2e-9)
        yield Scenario(Setup(2, drafting, memory=memory), 0, ((1, 4),) * count, (0,) * count)


def impatient(level: int) -> Iterator[Scenario]:
    """Three requests to one slot, with a queue, a patience or a time that is too short; and from clients."""
    for drafting in _draftings(level):
        three = Scenario(Setup(1, drafting), 0, ((1, 2),) * 3, (0,) * 3)
        for limited in (Setup(1, drafting, queue_limit=1), Setup(1, drafting, patience_ns=7)):
            yield three.on(limited)
        yield replace(three, until=15)
        yield from (replace(three, clients=n, think_ns=think) for n, think in ((1, 0), (2, 7)))
