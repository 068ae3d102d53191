"""Drafted blocks, and what every other model says along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simspec.record.block_rows import BlockRows
from simspec.record.branches import Branch, read_branches
from simspec.record.budget import Budget
from simspec.record.chained_blocks import draft_chained
from simspec.record.models import LoadedModels
from simspec.record.observe import Along, Floats, Ints, Read, roll_out
from simspec.speculation.sampling import Sampling
from simspec.speculation.verify import accepted_prefix
from simspec.streams import stream

# A drafter's distributions are held for as many blocks as have so many times the budget's tokens.
HELD_OVER_READ = 8

# Blocks from some starts: tokens, and what each was chosen from (None for a look-up).
Drafts = list[tuple[Ints, Read | None]]


@dataclass(frozen=True)
class Scene:
    """One prompt and its text, with what the networks say along it.

    Attributes:
        prompt: token ids, shape (prompt tokens,).
        finish: why the text ended: ``eos`` or ``length``.
        along: of every model that can verify.
        block_along: of every block-parallel drafter's network.
        block_length: tokens drafted from every start.
        seed: of the luck that sampled drafts are drawn by.
    """

    models: LoadedModels
    prompt_id: int
    prompt: Ints
    text: Ints
    finish: str
    along: dict[str, Along]
    block_along: dict[str, Along]
    block_length: int
    sampling: Sampling | None = None
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    def luck(self, drafter: str, starts: Sequence[int]) -> Floats | None:
        """Each start's own uniform numbers, shape (starts, block length); None for greedy drafts."""
        if self.sampling is None:
            return None
        name = ("record", "draft", drafter, self.prompt_id)
        return np.stack([stream(self.seed, *name, t).random(self.block_length) for t in starts])


def all_blocks(scene: Scene, rows: BlockRows) -> None:
    """Every drafter's blocks and every other model's verdicts on them."""
    models = scene.models
    for drafter in models.networks:
        if drafter == models.target:
            continue
        if scene.sampling is None:
            leaving_blocks(scene, rows, drafter)
        else:
            _from_everywhere(scene, rows, drafter, _drawn)
    for drafter in models.blocks:
        _from_everywhere(scene, rows, drafter, _chained)
    for drafter in models.lookups:
        _from_everywhere(scene, rows, drafter, _looked_up)


def leaving_blocks(scene: Scene, rows: BlockRows, drafter: str) -> None:
    """Greedy blocks of a drafter that sees tokens only, where its first token leaves the text.

    From any other start its block is the text's token followed by its block from the
    next start, so storing those would store the same suffix again. A text
    cut by its length gets one more block, from its end.
    """
    along = scene.along[drafter]
    greedy = along.log_probs[: len(scene.text)].argmax(-1).cpu().numpy()
    for t in np.flatnonzero(greedy == scene.text).tolist():
        rows.add_choices(drafter, t, scene.text[t : t + 1], along.part(t, t + 1))
    starts = np.flatnonzero(greedy != scene.text)
    if scene.finish == "length":
        starts = np.append(starts, len(scene.text))

    def roll(some: Sequence[int]) -> None:
        rolled = roll_out(along, np.asarray(some), scene.block_length)
        for r, start in enumerate(some):
            rows.add_block(drafter, start, rolled.tokens[r], rolled.row(r))
        branches = [Branch(start, rolled.tokens[r]) for r, start in enumerate(some)]
        for verifier, seen in scene.along.items():
            if verifier == drafter:
                continue
            if verifier == scene.models.target:
                # It cuts at the block's first token, and its word there is along the text.
                for r, start in enumerate(some):
                    said = seen.part(start, start + 1)
                    rows.add_verdict(drafter, start, verifier, rolled.tokens[r, :1], said, rolled.row(r))
                continue
            for r, read in read_branches(seen, branches, scene.budget):
                said = seen.part(some[r], some[r] + 1).then(read)
                rows.add_verdict(drafter, some[r], verifier, rolled.tokens[r], said, rolled.row(r))

    _in_portions(starts.tolist(), scene, rows, roll)


def _from_everywhere(
    scene: Scene, rows: BlockRows, drafter: str, make: Callable[[Scene, str, Sequence[int]], Drafts]
) -> None:
    """Blocks of a drafter none of whose starts share a suffix."""

    def write(some: Sequence[int]) -> None:
        drafts = make(scene, drafter, some)
        for start, (tokens, words) in zip(some, drafts, strict=True):
            rows.add_block(drafter, start, tokens, words)
        filled = [(t, *draft) for t, draft in zip(some, drafts, strict=True) if len(draft[0])]
        for verifier, seen in scene.along.items():
            if verifier != drafter:
                _verdicts(scene, rows, drafter, verifier, seen, filled)

    _in_portions(range(len(scene.text)), scene, rows, write)


def _verdicts(
    scene: Scene,
    rows: BlockRows,
    drafter: str,
    verifier: str,
    seen: Along,
    drafts: Sequence[tuple[int, Ints, Read | None]],
) -> None:
    """What agrees with the text is read along it, the rest by branches.

    Under greedy decoding the target cuts where a block leaves the text, and its row ends there.
    """
    text = scene.text
    agreed = [accepted_prefix(tokens, text[t:]) for t, tokens, _ in drafts]
    if verifier == scene.models.target and scene.sampling is None:
        for (start, tokens, words), a in zip(drafts, agreed, strict=True):
            known = min(a + 1, len(text) - start)
            rows.add_verdict(drafter, start, verifier, tokens[:known], seen.part(start, start + known), words)
        return
    tails = [
        (i, Branch(draft[0] + a, draft[1][a:]))
        for i, (draft, a) in enumerate(zip(drafts, agreed, strict=True))
        if a < len(draft[1])
    ]
    left = set(range(len(drafts)))
    for at, read in read_branches(seen, [branch for _, branch in tails], scene.budget):
        i = tails[at][0]
        start, tokens, words = drafts[i]
        said = seen.part(start, start + agreed[i] + 1).then(read)
        rows.add_verdict(drafter, start, verifier, tokens, said, words)
        left.discard(i)
    for i in sorted(left):
        start, tokens, words = drafts[i]
        said = seen.part(start, start + agreed[i] + 1)
        rows.add_verdict(drafter, start, verifier, tokens, said, words)


def _drawn(scene: Scene, drafter: str, starts: Sequence[int]) -> Drafts:
    luck = scene.luck(drafter, starts)
    rolled = roll_out(scene.along[drafter], np.asarray(starts), scene.block_length, luck)
    return [(rolled.tokens[r], rolled.row(r)) for r in range(len(starts))]


def _chained(scene: Scene, drafter: str, starts: Sequence[int]) -> Drafts:
    kind, along = scene.models.blocks[drafter], scene.block_along[drafter]
    luck = scene.luck(drafter, starts)
    return [*draft_chained(kind, along, scene.text, starts, scene.block_length, luck, scene.budget)]


def _looked_up(scene: Scene, drafter: str, starts: Sequence[int]) -> Drafts:
    lookup = scene.models.lookups[drafter]
    seen = np.concatenate([scene.prompt, scene.text])
    before = len(scene.prompt)
    return [(lookup.draft(seen[: before + t], scene.block_length), None) for t in starts]


def _in_portions(
    starts: Sequence[int], scene: Scene, rows: BlockRows, work: Callable[[Sequence[int]], None]
) -> None:
    """``work`` on so many starts at a time that what is held of their blocks fits in memory."""
    at = 0
    while at < len(starts):
        most = max(1, HELD_OVER_READ * scene.budget.tokens // scene.block_length)
        some, before = list(starts[at : at + most]), rows.lengths()
        try:
            work(some)
        except (RuntimeError, MemoryError) as error:
            scene.budget.shrink(error, scene.budget.tokens if len(some) > 1 else 0)
            rows.cut(before)
            continue
        at += len(some)
