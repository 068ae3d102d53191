"""Blocks of a drafter that fills in several places in one forward, chained to any length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simspec.record.branches import Branch, read_branches
from simspec.record.budget import Budget
from simspec.record.models import BlockParallel
from simspec.record.observe import Along, Floats, Ints, Read, choose
from simspec.speculation.verify import accepted_prefix


def draft_chained(
    kind: BlockParallel,
    along: Along,
    text: Ints,
    starts: Sequence[int],
    length: int,
    luck: Floats | None,
    budget: Budget,
) -> list[tuple[Ints, Read]]:
    """Draft ``length`` tokens after the text's first t tokens, for every t in ``starts``.

    Each forward reads all that was drafted before it and ``kind.block - 1`` masked places, just
    as the decoder's drafting does, so a block depends on where it starts and no two starts share
    one. What of a block is the text's own is read from the text, unless the drafter reads the target's
    states, which drafted tokens have not.

    Args:
        along: the drafter's network along the text.
        luck: uniform numbers to draw by, shape (starts, length); None to draft greedily.

    Returns:
        for each start its tokens, shape (length,), and what each was chosen from.
    """
    tokens = np.empty((len(starts), length), dtype=np.int32)
    words: list[Read] = []
    masks = np.full(kind.block - 1, kind.mask_token, dtype=np.int32)
    tail = len(masks) if kind.within == "full" else 0
    for begin in range(0, length, kind.block):
        size = min(kind.block, length - begin)
        agreed = [
            0 if kind.reads_target else accepted_prefix(tokens[r, :begin], text[t:])
            for r, t in enumerate(starts)
        ]
        branches = [
            Branch(t + a, np.concatenate([tokens[r, a:begin], masks]), tail)
            for r, (t, a) in enumerate(zip(starts, agreed, strict=True))
        ]
        filled = [r for r, branch in enumerate(branches) if len(branch.tokens)]
        after: dict[int, Read] = {
            filled[i]: read for i, read in read_branches(along, [branches[r] for r in filled], budget)
        }
        for r, (t, a) in enumerate(zip(starts, agreed, strict=True)):
            # From the word after the last token before this block on; that may be the text's.
            here = along.part(t + a, t + a + 1)
            if r in after:
                here = here.then(after[r])
            here = here.part(begin - a, begin - a + size)
            tokens[r, begin : begin + size] = choose(
                here.log_probs, None if luck is None else luck[r, begin : begin + size]
            )
            if begin:
                words[r] = words[r].then(here)
            else:
                words.append(here)
    return list(zip(tokens, words, strict=True))
