"""One draft-verify cycle of one request, token by token.

The plain statement of the rules that replay follows in bulk (:mod:`simspec.replay`)
and that a decoder of real models follows one cycle at a time. It is free of torch:
a verifier is anything that says, for a block, which token it would put at each place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.chains import Semantics
from simspec.speculation.verify import accepted_prefix

Tokens = NDArray[np.int32]

# Given a block of n tokens after the text, the verifier's most probable token at each
# place of the block and one past its end, shape (n + 1,).
Verifier = Callable[[Tokens], Tokens]


@dataclass(frozen=True)
class Cycle:
    """What one cycle did.

    Attributes:
        offered: tokens that each verifier was given, the target's last.
        kept: drafts of the first block that are among the emitted tokens.
        accepted: tokens of the target's block that it accepted.
        emitted: the tokens added to the text.
    """

    offered: tuple[int, ...]
    kept: int
    accepted: int
    emitted: Tokens


def run_cycle(
    drafted: Tokens,
    verifiers: Sequence[Verifier],
    semantics: Semantics,
    room: int,
    eos_tokens: Sequence[int],
) -> Cycle:
    """Pass a drafted block up a chain under greedy verification.

    Args:
        drafted: the block, cut to what is submitted; at most ``room - 1`` tokens, and
            nothing after an end-of-text token.
        verifiers: the intermediates in order and then the target.
        semantics: what an intermediate passes upward.
        room: tokens that the text may still grow by, at least 1.
        eos_tokens: tokens that end the text.

    Conventions, which replay shares: an intermediate is left out when it is given nothing
    and passes nothing of its own upward (``funnel-truncate``); it adds no token after an
    end of text nor beyond ``room - 1``; the target always runs, and adds its own token
    unless the accepted drafts have ended the text.
    """
    if room < 1:
        raise ValueError(f"room must be at least 1, not {room}")
    if len(drafted) > room - 1:
        raise ValueError(f"{len(drafted)} drafted tokens, room for {room - 1}")
    block = drafted
    offered = []
    kept = len(drafted)
    for verifier in verifiers[:-1]:
        offered.append(len(block))
        if not len(block) and semantics == "funnel-truncate":
            continue
        greedy = verifier(block)
        accepted = accepted_prefix(block, greedy)
        kept = min(kept, accepted)
        block = block[:accepted]
        ended = bool(len(block)) and int(block[-1]) in eos_tokens
        if semantics == "funnel-replace" and not ended and len(block) < room - 1:
            block = np.append(block, greedy[accepted]).astype(np.int32)
    offered.append(len(block))
    greedy = verifiers[-1](block)
    accepted = accepted_prefix(block, greedy)
    emitted = block[:accepted]
    if not (len(emitted) and int(emitted[-1]) in eos_tokens):
        emitted = np.append(emitted, greedy[accepted]).astype(np.int32)
    return Cycle(tuple(offered), min(kept, accepted), accepted, emitted)
