"""Rolling back a batch's KV cache without moving it: what a row attends to, and what is wasted (S9, S9b-S9e).

S = slots of the rectangle of rows x slots; a row's length = its valid slots; needed = the longest row's
length; waste that packing can win back = S - needed. gamma = drafts a cycle, so a cycle appends gamma + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.speculation.slots import Appended, Ints, Slots

# What is done, and to what: new tokens of each row, tokens each row gives up, rows.
Step = tuple[str, tuple[int, ...]]
Make = Callable[[int], Slots]
Entry = tuple[int, int]


@dataclass(frozen=True)
class Story:
    """What happens to a cache of ``rows`` rows.

    Steps are ``append`` (new tokens of each row), ``roll back`` (tokens that each row gives up),
    ``truncate``, ``finish`` (rows), ``keep`` (the rows that stay, in their new order), ``join`` (how many)
    and ``compact``.
    """

    rows: int
    steps: tuple[Step, ...]


# A row's tokens, or None once it has finished.
Texts = list[list[int] | None]


def _after(texts: Texts, step: Step, fresh: int) -> Texts:
    """The naive twin: rows as lists of tokens; new tokens are ``fresh``, ``fresh`` + 1, ..."""
    does, told = step
    if does == "append":
        ends = [fresh + sum(told[: r + 1]) for r in range(len(told))]
        new = [list(range(e - n, e)) for e, n in zip(ends, told, strict=True)]
        return [None if t is None else [*t, *n] for t, n in zip(texts, new, strict=True)]
    if does == "roll back":
        return [None if t is None else t[: len(t) - n] for t, n in zip(texts, told, strict=True)]
    if does == "finish":
        return [None if r in told else t for r, t in enumerate(texts)]
    if does == "keep":
        return [texts[r] for r in told]
    return [*texts, *([] for _ in range(told[0]))] if does == "join" else texts


class _Cache:
    """Entries (token, position) in rows x slots that do only what Slots says, as keys and values would."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.entries = np.zeros((slots.rows, 0, 2), dtype=np.int64)

    def do(self, step: Step, texts: Texts) -> list[list[list[Entry]]]:
        """One step, ``texts`` being the rows after it; what each new token sees, in the order of slots."""
        does, told = step
        slots = self.slots
        if does == "append":
            return self._append(told, texts)
        if does == "roll back":
            slots.roll_back(np.array([len(t or ()) for t in texts], dtype=np.int64))
        elif does == "truncate":
            self.entries = self.entries[:, : slots.truncate()]
        elif does == "finish":
            slots.finish(np.array(told, dtype=np.int64))
        elif does == "keep":
            slots.remove(np.array(told, dtype=np.int64))
            self.entries = self.entries[list(told)]
        elif does == "join":
            slots.join(told[0])
            empty = np.zeros((told[0], *self.entries.shape[1:]), dtype=np.int64)
            self.entries = np.concatenate([self.entries, empty])
        elif does == "compact":
            self.entries = np.take_along_axis(self.entries, slots.compact()[:, :, None], axis=1)
        else:
            raise ValueError(f"no such step: {does}")
        return []

    def _append(self, widths: tuple[int, ...], texts: Texts) -> list[list[list[Entry]]]:
        added = self.slots.append(np.array(widths, dtype=np.int64))
        held = self.entries.shape[1]
        new = np.full((len(widths), added.width, 2), -1, dtype=np.int64)
        for r, (text, n) in enumerate(zip(texts, widths, strict=True)):
            if text is not None and n:
                new[r, :n, 0] = text[-n:]
        new[:, :, 1] = added.positions
        self.entries = np.concatenate([self.entries, new], axis=1)
        mask = added.mask
        if mask is None:  # plain causal order
            within = np.arange(held + added.width) <= held + np.arange(added.width)[:, None]
            mask = np.broadcast_to(within, (len(widths), *within.shape))
        return [
            [_listed(self.entries[r][mask[r, j]]) for j in range(added.width)] for r in range(len(widths))
        ]

    def held(self, row: int) -> list[Entry]:
        return _listed(self.entries[row][self.slots.valid[row]])


def _listed(entries: Ints) -> list[Entry]:
    return [(token, position) for token, position in entries.tolist()]


def _afresh(tokens: list[int]) -> list[Entry]:
    """The entries of a cache that has read these tokens and nothing else."""
    return [(token, position) for position, token in enumerate(tokens)]


# Stories.


def _choices(texts: Texts, most: int) -> Iterator[Step]:
    """The steps that are tried after ``texts``: up to ``most`` tokens a row."""
    wide = list(product(*(range(most + 1) if t is not None else (0,) for t in texts)))
    yield from (("append", w) for w in wide if any(w))
    drops = product(*(range(min(len(t or ()), most) + 1) for t in texts))
    yield from (("roll back", d) for d in drops if any(d))
    yield from (("finish", (r,)) for r, t in enumerate(texts) if t is not None)
    if len(texts) == 2:
        yield from (("keep", kept) for kept in ((1,), (1, 0)))
    else:
        yield ("join", (1,))
    yield from (("truncate", ()), ("compact", ()))


def all_stories(level: int) -> Iterator[Story]:
    """Stories of one and two rows that begin with an append, short ones first.

    Of at most 3 steps at level 0 and 1, by 1 and 2 tokens a row; of 5 steps by 1 token at level 2.
    """
    most = (1, 2, 1)[level]
    before: list[tuple[int, Texts, tuple[Step, ...]]] = [
        (rows, [[] for _ in range(rows)], ()) for rows in (1, 2)
    ]
    for _ in range((3, 3, 5)[level]):
        longer = []
        for rows, texts, steps in before:
            for step in _choices(texts, most):
                if steps or step[0] == "append":
                    longer.append((rows, _after(texts, step, 0), (*steps, step)))
                    yield Story(rows, longer[-1][2])
        before = longer


@st.composite
def stories(draw: st.DrawFn, longest: int = 20) -> Story:
    """Stories of one to four rows at first, ragged appends, and roll backs from nothing to everything."""
    rows = draw(st.integers(1, 4))
    texts: Texts = [[] for _ in range(rows)]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, longest))):
        step = _drawn_step(draw, texts)
        texts = _after(texts, step, 0)
        steps.append(step)
    return Story(rows, tuple(steps))


def _drawn_step(draw: st.DrawFn, texts: Texts) -> Step:
    live = [r for r, t in enumerate(texts) if t is not None]
    kinds = ["append", "roll back", "truncate", "compact", "finish", "keep", "join"]
    does = draw(st.sampled_from(kinds if live else ["join"]))
    if does == "append":
        most = draw(st.integers(1, 4))
        widths = [draw(st.integers(0, most)) if t is not None else 0 for t in texts]
        if not any(widths):
            widths[live[0]] = most
        return does, tuple(widths)
    if does == "roll back":
        most = draw(st.sampled_from([1, 4, 100]))
        return does, tuple(draw(st.integers(0, min(most, len(t or ())))) for t in texts)
    if does == "finish":
        return does, (draw(st.sampled_from(live)),)
    if does == "keep":
        order = draw(st.permutations(range(len(texts))))
        return does, tuple(order[draw(st.integers(0, 1)) :])
    return does, ((draw(st.integers(1, 2)),) if does == "join" else ())


# S9


def _sees_what_fresh_cache_shows(make: Make) -> Rule:
    """After every step each row holds, and each new token sees, what a cache built afresh would."""

    def rule(story: Story) -> Outcome:
        texts: Texts = [[] for _ in range(story.rows)]
        cache, fresh = _Cache(make(story.rows)), 0
        for step in (*story.steps, None):
            when = "after that"
            if step is None:
                # One more token in every row that goes on: what the next forward would attend to.
                step, when = ("append", tuple(int(t is not None) for t in texts)), "at the next token"
                if not any(step[1]):
                    break
            texts = _after(texts, step, fresh)
            seen = cache.do(step, texts)
            fresh += sum(step[1]) if step[0] == "append" else 0
            for r, text in enumerate(t or [] for t in texts):
                if cache.held(r) != _afresh(text):
                    return _differ(story, f"{when} row {r} holds", cache.held(r), text)
                new = step[1][r] if step[0] == "append" else 0
                for j in range(new):
                    before = text[: len(text) - new + j + 1]
                    if seen[r][j] != _afresh(before):
                        return _differ(story, f"{when} new token {j} of row {r} sees", seen[r][j], before)
            cache.slots.check_integrity()
        return None

    return rule


def _told(story: Story) -> str:
    return "; ".join(f"{does} {shown(what)}" if what else does for does, what in story.steps)


def _differ(story: Story, who: str, found: list[Entry], text: list[int]) -> Outcome:
    return against(
        f"{story.rows} rows: {_told(story)}",
        f"{who} (token, position) {shown(tuple(found))}",
        f"a cache built afresh shows {shown(tuple(_afresh(text)))}",
    )


class _CausalOnly(Slots):
    """Leaves the validity mask out."""

    def append(self, widths: Ints) -> Appended:
        return replace(super().append(widths), mask=None)


class _CountsSlots(Slots):
    """Gives a token the position of its slot."""

    def append(self, widths: Ints) -> Appended:
        added = super().append(widths)
        count = np.arange(added.first_slot, added.first_slot + added.width)
        return replace(added, positions=np.tile(count, (self.rows, 1)))


class _CutsSlots(Slots):
    """Rolls back the last n slots of a row where it should roll back its last n tokens."""

    def roll_back(self, lengths: Ints) -> None:
        back = self.lengths - lengths
        self.valid = self.valid & (np.arange(self.slots) < self.slots - back[:, None])
        self.lengths = self.valid.sum(axis=1)


class _MovesNothing(Slots):
    """Packs the mask and leaves the entries where they are."""

    def compact(self) -> Ints:
        source = super().compact()
        return np.tile(np.arange(source.shape[1]), (self.rows, 1))


OVER_STORIES = (
    "all stories of 1 and 2 rows of at most 3 steps by at most 2 tokens a row (5 steps by 1 token at the "
    "largest budget); random ones of up to 20 steps, 4 rows at first and 4 tokens a row"
)
S9_STATEMENT = Statement(
    words=(
        "After any sequence of append, roll back, truncate, finish, remove, join and compact, every row of a "
        "masked cache attends to exactly the tokens, at exactly the positions, of a cache built afresh"
    ),
    formula="{(token, position) seen in row r} = {(text_r[i], i) : i < length_r}, in that order",
    rule=_sees_what_fresh_cache_shows(Slots),
    over=OVER_STORIES,
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
        "row, never of the slot, so holes shift nothing."
    ),
    broken=(
        S9_STATEMENT.but(
            "The same without the mask: causal order over all slots",
            _sees_what_fresh_cache_shows(_CausalOnly),
        ),
        S9_STATEMENT.but(
            "The same with positions counted by slot", _sees_what_fresh_cache_shows(_CountsSlots)
        ),
        S9_STATEMENT.but(
            "The same, rolling back a row's last n slots where its last n tokens are meant",
            _sees_what_fresh_cache_shows(_CutsSlots),
        ),
        S9_STATEMENT.but(
            "The same, packing the mask without moving keys and values",
            _sees_what_fresh_cache_shows(_MovesNothing),
        ),
    ),
)

# S9b


def _truncate_spares_valid(make: Make) -> Rule:
    """Truncate cuts the common minimum of what the rows that go on have free at their end."""

    def rule(story: Story) -> Outcome:
        texts: Texts = [[] for _ in range(story.rows)]
        cache, fresh, met = _Cache(make(story.rows)), 0, False
        for step in story.steps:
            texts = _after(texts, step, fresh)
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
                    f"{story.rows} rows: {_told(story)}",
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
    return len(tokens) - 1 - tokens.index(text[-1])


def _trailing(row: list[bool]) -> int:
    return next((back for back, used in enumerate(reversed(row)) if used), len(row))


def _then_truncated(level: int) -> Iterator[Story]:
    yield from (replace(story, steps=(*story.steps, ("truncate", ()))) for story in all_stories(level))


def _cut(slots: Slots, by: int) -> int:
    """Cut the last ``by`` slots, whatever they hold."""
    left = slots.slots - by
    slots.valid = slots.valid[:, :left]
    slots.lengths = slots.valid.sum(axis=1)
    return left


class _CutsMost(Slots):
    """Cuts what the row with most to give up has free at its end."""

    def truncate(self) -> int:
        return _cut(self, max((_trailing(row) for row in self.valid.tolist()), default=0))


class _CutsByThoseWithSome(Slots):
    """Takes the minimum over the rows that have anything to give up."""

    def truncate(self) -> int:
        free = [_trailing(row) for row in self.valid.tolist()]
        return _cut(self, min((n for n in free if n), default=0))


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
        S9B_STATEMENT.but("The same with the maximum", _truncate_spares_valid(_CutsMost)),
        S9B_STATEMENT.but(
            "The same with the minimum over those rows that have rolled anything back",
            _truncate_spares_valid(_CutsByThoseWithSome),
        ),
    ),
)

# S9c, S9e: decoding in cycles without packing.


@dataclass(frozen=True)
class Pattern:
    """What a batch keeps, cycle by cycle: ``kept[c][r]`` of the gamma + 1 tokens appended, 1 to gamma + 1."""

    gamma: int
    kept: tuple[tuple[int, ...], ...]


def all_patterns(level: int) -> Iterator[Pattern]:
    """Patterns of 1 to 3 rows, 1 to 3 cycles and 1 or 2 drafts, few cycles first."""
    sizes = ((1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (2, 3, 1), (3, 2, 1), (3, 2, 2))
    for cycles, rows, gamma in sizes if level == 2 else sizes[:-1]:
        one = list(product(range(1, gamma + 2), repeat=rows))
        yield from (Pattern(gamma, kept) for kept in product(one, repeat=cycles))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Patterns of up to 5 rows, 6 cycles and 5 drafts."""
    rows, gamma = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    one = st.tuples(*[st.integers(1, gamma + 1)] * rows)
    return Pattern(gamma, tuple(draw(st.lists(one, min_size=1, max_size=6))))


def _cycle(slots: Slots, gamma: int, kept: tuple[int, ...]) -> None:
    """Append gamma + 1 tokens in every row, keep the first ``kept`` of them, cut the common minimum."""
    before = slots.lengths
    slots.append(np.full(len(kept), gamma + 1))
    slots.roll_back(before + np.array(kept))
    slots.truncate()


def _stops_growing(pattern: Pattern) -> Outcome:
    """Whether waste is the same after one, two and three rounds of the pattern."""
    slots, waste, told = Slots(len(pattern.kept[0])), [], []
    for _ in range(3):
        for kept in pattern.kept:
            _cycle(slots, pattern.gamma, kept)
            told.append(f"rows keep {shown(kept)}: S = {slots.slots}, lengths {shown(slots.lengths)}")
        waste.append(slots.slots - slots.needed)
    if not waste[0] < waste[1] < waste[2]:
        return None
    cycles = len(pattern.kept)
    return against(
        f"every cycle appends {pattern.gamma + 1} slots and cuts what no row keeps",
        *told[: 2 * cycles],
        f"waste S - needed after 1, 2 and 3 rounds of {cycles} cycles: {shown(tuple(waste))}",
        "each cycle adds max_r kept to S and kept_r to row r, so n rounds waste n times what one does",
    )


SLACK, FLOOR = Fraction(1, 4), 2


def _packed_stays_bounded(pattern: Pattern) -> Outcome:
    """With slack 0 the waste has a fixed bound, however often a growing pattern repeats."""
    if _stops_growing(pattern) is None:
        return UNMET
    slots, bound = Slots(len(pattern.kept[0])), FLOOR + pattern.gamma + 1
    for kept in pattern.kept * 8:
        if slots.should_compact(0, FLOOR):
            slots.compact()
        _cycle(slots, pattern.gamma, kept)
        if slots.slots - slots.needed > bound:
            return against(f"S = {slots.slots}, needed {slots.needed}, more than {bound} apart")
    return None


def _waste_by_cycle(pattern: Pattern) -> Plot:
    bare, packed = Slots(len(pattern.kept[0])), Slots(len(pattern.kept[0]))
    series: dict[str, list[float]] = {"without packing": [], "packed (slack 1/4, floor 2)": []}
    cycles = pattern.kept * -(-60 // len(pattern.kept))
    for kept in cycles:
        if packed.should_compact(float(SLACK), FLOOR):
            packed.compact()
        for slots, line in zip((bare, packed), series.values(), strict=True):
            _cycle(slots, pattern.gamma, kept)
            line.append(slots.slots - slots.needed)
    return Plot(
        "Slots that packing could win back",
        "line",
        "cycle",
        "S - needed",
        tuple(range(1, len(cycles) + 1)),
        {name: tuple(line) for name, line in series.items()},
    )


OVER_PATTERNS = (
    "all patterns of up to 3 rows, 3 cycles and 2 drafts, not all three at once; random ones of up to 5 "
    "rows, 6 cycles and 5 drafts"
)
S9C = Claim(
    id="S9c",
    source="SpecRouter (2505.07680), StateManager: no data moved but the common minimum's truncation",
    statement=Statement(
        words=(
            "Without packing, wasted slots stay bounded: whatever pattern of acceptance a batch repeats, its "
            "waste stops growing"
        ),
        formula="sup over n rounds of (S - needed) < infinity",
        rule=_stops_growing,
        over=OVER_PATTERNS,
        domain=patterns(),
        every=all_patterns,
        examples=100,
    ),
    expected="refuted",
    because=(
        "Proof for any batch of two rows or more and any gamma >= 1. After truncation a cycle has added "
        "max_r kept_r to S (the row that keeps most ends at the last slot) and kept_r to row r, so after C "
        "cycles waste = sum_c max_r kept - max_r sum_c kept. Let row 0 keep all gamma + 1 and the others 1 "
        "in odd cycles, and the reverse in even ones: S grows by gamma + 1 a cycle, the longest row by "
        "(gamma + 2)/2 on average, and after C = 2n cycles the waste is n gamma, past any bound. Nothing is "
        "ever cut though every row is rolled back in every other cycle. For one row max and sum commute and "
        "the waste is 0. Nor is this contrived: at 64 rows, gamma 4 and acceptance .7 nearly every cycle has "
        "some row that keeps all 5 while a row keeps 2.77 on average, so about 2.2 slots a row and cycle are "
        "wasted."
    ),
    pinned=Pattern(1, ((1, 2), (2, 1))),
    repaired=Statement(
        words=(
            "With Slots' compaction rule (slack 0, floor 2) every pattern that grows without packing wastes "
            "at most floor + gamma + 1 slots"
        ),
        formula="S - needed <= floor + gamma + 1 after every cycle",
        rule=_packed_stays_bounded,
        over=OVER_PATTERNS + "; those that grow, 8 rounds each",
        domain=patterns(),
        every=all_patterns,
        examples=60,
    ),
    first_look=(
        "The first look put both halves of S9b under one id; here they are S9b and S9c. Its number, about "
        "2,200 a row after 1,000 cycles at batch 64, is what gamma 4 and acceptance .7 give (2,229 in one "
        "simulated run), but counts S less a row's own length; packing can win back S less the longest row's "
        "(2,076)."
    ),
    plot=_waste_by_cycle,
)


def _ratio(most: Callable[[int], int]) -> Rule:
    def rule(pattern: Pattern) -> Outcome:
        slots = Slots(len(pattern.kept[0]))
        for c, kept in enumerate(pattern.kept, 1):
            _cycle(slots, pattern.gamma, kept)
            short = int(slots.lengths.min())
            if slots.slots > most(pattern.gamma) * short:
                return against(
                    f"gamma = {pattern.gamma}, kept {shown(pattern.kept[:c])}",
                    f"S = {slots.slots}, shortest row {short}",
                )
        return None

    return rule


S9E_STATEMENT = Statement(
    words="Without packing S never exceeds gamma + 1 times the shortest row that was there from the start",
    formula="S <= (gamma + 1) min_r length_r",
    rule=_ratio(lambda gamma: gamma + 1),
    over=OVER_PATTERNS,
    domain=patterns(),
    every=all_patterns,
    examples=100,
)
S9E = Claim(
    id="S9e",
    source="claims ledger, S9b: the ratio of slots to tokens",
    statement=S9E_STATEMENT,
    expected="holds",
    because=(
        "After C cycles S <= C (gamma + 1), and a row has kept at least one token in each, so its length is "
        "at least C. Reached where one row keeps all and another one token in every cycle."
    ),
    broken=(S9E_STATEMENT.but("S never exceeds gamma times the shortest row", _ratio(lambda gamma: gamma)),),
)

# S9d: packing.


@dataclass(frozen=True)
class Packed:
    """A story during which the owner packs whenever the rule asks, before an append."""

    slack: Fraction
    floor: int
    story: Story


def all_packed(level: int) -> Iterator[Packed]:
    for story in all_stories(level):
        if story.steps[-1][0] == "append":  # the bound is looked at after appends
            yield Packed(Fraction(0), 0, story)
            yield Packed(Fraction(1, 2), 1, story)


def _from_level_1(level: int) -> Iterator[Packed]:
    """Level 0 has no append of two tokens, which it takes to catch these variants."""
    yield from all_packed(max(level, 1))


def packed_stories() -> st.SearchStrategy[Packed]:
    slack = st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 4), Fraction(1), Fraction(3)])
    return st.builds(Packed, slack, st.sampled_from([0, 1, 5]), stories(longest=30))


def _bounded(make: Make, last_width: int = 1) -> Rule:
    """S <= needed (1 + slack) + floor + width after each append; slack x slots copied < slots appended."""

    def rule(case: Packed) -> Outcome:
        texts: Texts = [[] for _ in range(case.story.rows)]
        cache, appended, copied, packings = _Cache(make(case.story.rows)), 0, 0, 0
        for step in case.story.steps:
            if step[0] == "append" and cache.slots.should_compact(case.slack, case.floor):  # type: ignore[arg-type]
                cache.do(("compact", ()), texts)
                copied, packings = copied + cache.slots.slots, packings + 1
            texts = _after(texts, step, 0)
            cache.do(step, texts)
            if step[0] != "append":
                continue
            width, needed = max(step[1]), max(len(t) for t in texts if t is not None)
            appended += width
            bound = needed * (1 + case.slack) + case.floor + last_width * width
            if cache.slots.slots > bound:
                return against(
                    f"{case.story.rows} rows, slack {case.slack}, floor {case.floor}: {_told(case.story)}",
                    f"after appending {shown(step[1])} S = {cache.slots.slots}, the longest row has {needed}",
                    f"the bound is {number(bound)}",
                )
            if packings and not case.slack * copied + packings * case.floor < appended:
                return against(f"{copied} slots copied in {packings} packings, {appended} appended")
        return None

    return rule


class _FinishedStay(Slots):
    """A finished row keeps its slots, and so stays in the common minimum and in what packing needs."""

    def finish(self, rows: Ints) -> None:
        self.finished = self.finished | np.isin(np.arange(self.rows), rows)


class _AsksMean(Slots):
    """Allows twice the mean row in place of the longest."""

    def should_compact(self, slack: float, floor: int) -> bool:
        return self.slots * max(self.rows, 1) > 2 * int(self.lengths.sum()) * (1 + slack) + floor


S9D_STATEMENT = Statement(
    words=(
        "Packed whenever Slots' rule asks, before an append, a cache never has more slots than (1 + slack) "
        "times its longest row, the floor and one append, whatever is rolled back, finished, removed or "
        "joined; and for every slot appended less than 1/slack are copied"
    ),
    formula="S <= needed (1 + slack) + floor + width;  slack sum copied + floor packings < sum appended",
    rule=_bounded(Slots),
    over=OVER_STORIES + "; slack from 0 to 3, floor from 0 to 5",
    domain=packed_stories(),
    every=all_packed,
    examples=150,
)
S9D = Claim(
    id="S9d",
    source="the compaction rule of simspec.speculation.slots; what SpecRouter's StateManager leaves open",
    statement=S9D_STATEMENT,
    expected="holds",
    because=(
        "Before an append either the rule was quiet, which is S <= needed (1 + slack) + floor, or S = "
        "needed; the append adds its width to S and does not lower needed. Copies: let n_i be needed at "
        "packing i (n_0 = 0) and W_i the slots appended since the one before. Packing i finds n_i (1 + "
        "slack) + floor < S <= n_(i-1) + W_i, so slack n_i + floor < W_i + n_(i-1) - n_i; summed over i the "
        "n telescope. The first bound is reached: the longest row need not get a token in an append."
    ),
    broken=(
        S9D_STATEMENT.but(
            "The same where finished rows stay in the minimum", _bounded(_FinishedStay), every=_from_level_1
        ),
        S9D_STATEMENT.but("The same without the last append's width", _bounded(Slots, last_width=0)),
        S9D_STATEMENT.but(
            "The same where the rule allows twice the mean row, not the longest",
            _bounded(_AsksMean),
            every=_from_level_1,
        ),
    ),
)

CLAIMS = (S9, S9B, S9C, S9D, S9E)
