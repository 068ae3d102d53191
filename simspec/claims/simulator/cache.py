"""Rolling back a batch's KV cache without moving it: what rows attend to, what truncating cuts (S9, S9b)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator import faulty_slots
from simspec.claims.simulator.cases import counted
from simspec.claims.simulator.stories import (
    OVER_STORIES,
    Cache,
    Entry,
    Make,
    Story,
    Texts,
    afresh,
    after,
    all_stories,
    narrated,
    stories,
)
from simspec.speculation.slots import Ints, Slots

# S9


def _sees_what_fresh_cache_shows(make: Make) -> Rule:
    """After every step each row holds, and each new token sees, what a cache built afresh would.

    Each entry once, in whatever slots: attention goes by positions. Rolling back goes by the order of
    slots, so a cache that loses it is caught there.
    """

    def rule(story: Story) -> Outcome:
        texts: Texts = [[] for _ in range(story.rows)]
        cache, fresh = Cache(make(story.rows)), 0
        for step in (*story.steps, None):
            when = "after that"
            if step is None:
                # One more token in every row that goes on: what the next forward would attend to.
                step, when = ("append", tuple(int(t is not None) for t in texts)), "at the next token"
                if not any(step[1]):
                    break
            texts = after(texts, step, fresh)
            seen = cache.do(step, texts)
            fresh += sum(step[1]) if step[0] == "append" else 0
            for r, text in enumerate(t or [] for t in texts):
                if sorted(cache.held(r)) != afresh(text):
                    return _differ(story, f"{when} row {r} holds", cache.held(r), text)
                new = step[1][r] if step[0] == "append" else 0
                for j in range(new):
                    before = text[: len(text) - new + j + 1]
                    if sorted(seen[r][j]) != afresh(before):
                        return _differ(story, f"{when} new token {j} of row {r} sees", seen[r][j], before)
            cache.slots.check_integrity()
        return None

    return rule


def _differ(story: Story, who: str, found: list[Entry], text: list[int]) -> Outcome:
    return against(
        f"{counted(story.rows, 'row')}: {narrated(story)}",
        f"{who} (token, position) {shown(tuple(found))}",
        f"a cache built afresh shows {shown(tuple(afresh(text)))}",
    )


def _by_two(level: int) -> Iterator[Story]:
    """Level 0 appends one token at a time, which some faults leave right."""
    yield from all_stories(max(level, 1))


S9_STATEMENT = Statement(
    words=(
        "After any sequence of append, roll back, truncate, finish, remove, join and compact, every row of a "
        "masked cache holds exactly the tokens of a cache built afresh, at exactly their positions, and a "
        "new token attends to exactly those up to itself"
    ),
    formula=(
        "held in row r = {(text_r[i], i) : i < length_r}, each once; seen by its new token at position n = "
        "{(text_r[i], i) : i <= n}, each once"
    ),
    rule=_sees_what_fresh_cache_shows(Slots),
    over=OVER_STORIES + "; looked at after every step and after one token more in every row at the end",
    domain=stories(),
    every=all_stories,
    examples=150,
)
S9 = Claim(
    id="S9",
    source="SpecRouter (2505.07680), StateManager: logical validity mask, no data moved",
    statement=S9_STATEMENT,
    expected="holds",
    because=(
        "By induction over steps a row's valid slots, in order, hold its tokens in order, the i-th at "
        "position i. Append puts new tokens behind all slots and counts their positions from the row's "
        "length; roll back clears the last valid slots; truncate cuts columns that no row uses; finish and "
        "remove touch whole rows; compact gathers the valid slots in order. Positions are a matter of the "
        "row, never of the slot, so holes shift nothing. A new token's mask is its row's valid slots, the "
        "append's own up to itself among them."
    ),
    broken=(
        S9_STATEMENT.but(
            "The same without the mask: causal order over all slots",
            _sees_what_fresh_cache_shows(faulty_slots.CausalOnly),
        ),
        S9_STATEMENT.but(
            "The same with the first row's mask for every row",
            _sees_what_fresh_cache_shows(faulty_slots.OneMaskForAll),
        ),
        S9_STATEMENT.but(
            "The same where tokens of one append do not see one another",
            _sees_what_fresh_cache_shows(faulty_slots.NewSeeOnlyThemselves),
            every=_by_two,
        ),
        S9_STATEMENT.but(
            "The same where tokens of one append see those behind them, too",
            _sees_what_fresh_cache_shows(faulty_slots.NewSeeAllNew),
            every=_by_two,
        ),
        S9_STATEMENT.but(
            "The same with positions counted by slot", _sees_what_fresh_cache_shows(faulty_slots.CountsSlots)
        ),
        S9_STATEMENT.but(
            "The same where a finished row keeps its tokens",
            _sees_what_fresh_cache_shows(faulty_slots.NeverFinishes),
        ),
        S9_STATEMENT.but(
            "The same, packing each row's tokens in reverse order",
            _sees_what_fresh_cache_shows(faulty_slots.PacksBackwards),
            every=_by_two,
        ),
        S9_STATEMENT.but(
            "The same, rolling back a row's last n slots where its last n tokens are meant",
            _sees_what_fresh_cache_shows(faulty_slots.CutsSlots),
        ),
        S9_STATEMENT.but(
            "The same, packing the mask without moving keys and values",
            _sees_what_fresh_cache_shows(faulty_slots.MovesNothing),
        ),
    ),
)

# S9b


def _truncate_spares_valid(make: Make) -> Rule:
    """Truncate cuts the common minimum of what the rows that go on have free at their end."""

    def rule(story: Story) -> Outcome:
        texts: Texts = [[] for _ in range(story.rows)]
        cache, fresh, met = Cache(make(story.rows)), 0, False
        for step in story.steps:
            texts = after(texts, step, fresh)
            fresh += sum(step[1]) if step[0] == "append" else 0
            before = cache.entries
            cache.do(step, texts)
            if step[0] != "truncate":
                continue
            met = True
            free = [_behind(r, t) for r, t in zip(before, texts, strict=True) if t is not None]
            slots, left = before.shape[1], cache.entries.shape[1]
            if slots - left != min(free, default=slots):
                return against(
                    f"{counted(story.rows, 'row')}: {narrated(story)}",
                    f"free slots at the end of each row that goes on: {shown(tuple(free))}",
                    f"truncating cut {slots - left}; the common minimum is {min(free, default=slots)}",
                )
        return None if met else UNMET

    return rule


def _behind(row: Ints, text: list[int]) -> int:
    """Slots behind the row's last token, told by the tokens that lie in them; shape of ``row`` (slots, 2)."""
    if not text:
        return len(row)
    # No two tokens are alike; packing leaves stale copies, further to the right.
    tokens: list[int] = row[:, 0].tolist()
    return len(tokens) - 1 - tokens.index(text[-1]) if text[-1] in tokens else 0


def _then_truncated(level: int) -> Iterator[Story]:
    yield from (replace(story, steps=(*story.steps, ("truncate", ()))) for story in all_stories(level))


S9B_STATEMENT = Statement(
    words=(
        "Truncating by the common minimum of what the rows have rolled back removes no valid entry, and all "
        "slots that no row needs at the end"
    ),
    formula="slots cut = min over rows that go on of (slots after the row's last valid one)",
    rule=_truncate_spares_valid(Slots),
    over=OVER_STORIES + "; all of the former truncated at their end",
    domain=stories(),
    every=_then_truncated,
    examples=150,
)
S9B = Claim(
    id="S9b",
    source="SpecRouter (2505.07680), StateManager: truncation by the batch's common minimum roll back",
    statement=S9B_STATEMENT,
    expected="holds",
    because=(
        "A row whose last valid slot is the k-th from the end has k - 1 free slots behind it, and the "
        "minimum is at most that. What a row rolled back in one cycle is at most what it has free at its "
        "end, so the minimum of the roll backs of one cycle is safe as well; padding of ragged rows makes it "
        "too small. Finished rows hold nothing, so they do not hold the minimum up."
    ),
    broken=(
        S9B_STATEMENT.but("The same with the maximum", _truncate_spares_valid(faulty_slots.CutsMost)),
        S9B_STATEMENT.but(
            "The same with the minimum over those rows that have rolled anything back",
            _truncate_spares_valid(faulty_slots.CutsByThoseWithSome),
        ),
        S9B_STATEMENT.but(
            "The same with the minimum of the tokens just rolled back, padding left out",
            _truncate_spares_valid(faulty_slots.CutsOnlyTokens),
        ),
        S9B_STATEMENT.but(
            "The same where a finished row stays in the minimum",
            _truncate_spares_valid(faulty_slots.NeverFinishes),
        ),
    ),
)

CLAIMS = (S9, S9B)
