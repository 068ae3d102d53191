"""What happens to a batch's KV cache, step by step, and the naive twin that it is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.plain import shown
from simspec.speculation.slots import Ints, Slots

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


def after(texts: Texts, step: Step, fresh: int) -> Texts:
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


class Cache:
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
        return [[listed(self.entries[r][mask[r, j]]) for j in range(added.width)] for r in range(len(widths))]

    def held(self, row: int) -> list[Entry]:
        return listed(self.entries[row][self.slots.valid[row]])


def listed(entries: Ints) -> list[Entry]:
    return [(token, position) for token, position in entries.tolist()]


def afresh(tokens: list[int]) -> list[Entry]:
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
                    longer.append((rows, after(texts, step, 0), (*steps, step)))
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
        texts = after(texts, step, 0)
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


def narrated(story: Story) -> str:
    return "; ".join(f"{does} {shown(what)}" if what else does for does, what in story.steps)


OVER_STORIES = (
    "all stories of 1 and 2 rows of at most 3 steps by at most 2 tokens a row (5 steps by 1 token at the "
    "largest budget); random ones of up to 20 steps, 4 rows at first and 4 tokens a row"
)
