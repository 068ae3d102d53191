"""The cycles of each request under a schedule: exact, free of time.

Conventions, stated once and checked against a token-by-token twin
(:func:`simspec.speculation.cycle.run_cycle`) and against real models:

- Prompts are in every cache but for their last token; that first forward is not charged.
- At most ``room - 1`` tokens are drafted, where ``room`` is what the text may still grow
  by, since the target adds one; a drafter stops at an end of text that it drafts.
- After a full acceptance the drafter has not yet read its last draft nor the target's
  token, so its next forward is two wide; a level that was idle reads what it missed in
  its next forward. Caches are rolled back to the accepted drafts.
- A block-parallel drafter of b tokens a forward drafts n in ceil(n / b) forwards. Each reads the
  text it has not read yet, or after the first the b tokens of the last one, and b - 1 masked
  places that are rolled back at once; so what it has not read of its drafts is its last forward's.
  One that reads the target's states reads all of them again, since its drafts come without.
- An empty block (a look-up that finds nothing, a rule that asks for none) leaves a plain
  step of the target; intermediates stay idle under funnel-truncate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.replay.sampled import refuse_unsafe
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Decision, LengthRule, Prescribed, View
from simspec.traces.index import Ints, Trace

Small = NDArray[np.int16]
Counts = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trajectories:
    """Cycles of Q requests, padded to C columns; a finished request's columns are 0.

    Attributes:
        chain: who drafted and who verified.
        start: flat position that each request began at, shape (Q,).
        flat: flat position at each cycle's start, -1 when finished, (Q, C).
        context: tokens before the cycle, (Q, C).
        drafted: tokens drafted, (Q, C).
        lag: tokens that the drafter reads in its first forward, 0 for a look-up, (Q, C).
        submitted: tokens handed up, (Q, C).
        middle: for each intermediate, tokens that it reads, 0 when idle, (Q, C).
        width: tokens that the target reads, (Q, C).
        accepted: tokens of the target's block that it accepted, (Q, C).
        emitted: tokens added to the text, (Q, C).
        tokens_a_forward: tokens that one forward of the drafter gives.
    """

    chain: Chain
    start: Ints
    flat: NDArray[np.int32]
    context: Small
    drafted: Small
    lag: Small
    submitted: Small
    middle: tuple[Small, ...]
    width: Small
    accepted: Small
    emitted: Small
    tokens_a_forward: int = 1

    @property
    def active(self) -> NDArray[np.bool_]:
        return self.flat >= 0


@dataclass(frozen=True)
class Outcome:
    """One cycle of many requests: counts of shape (Q,).

    ``offered`` is what each verifier was given, the target's last; ``kept`` the drafts of
    the first block among the emitted tokens.
    """

    offered: tuple[Ints, ...]
    kept: Ints
    accepted: Ints
    emitted: Ints


def draft_limit(trace: Trace, drafter: str, at: Ints) -> Ints:
    """Tokens that ``drafter`` can draft at most from flat positions ``at``."""
    room = trace.manifest.output_tokens - trace.position[at]
    return np.minimum(trace.drafters[drafter].length[at], room - 1)


def outcome(trace: Trace, chain: Chain, at: Ints, submitted: Ints) -> Outcome:
    """What the verifiers do with ``submitted`` drafts from flat positions ``at``.

    Raises:
        BadInput: for funnel-replace with several intermediates, which this index does not
            hold the columns for.
    """
    if chain.drafter is None:
        nothing = np.zeros(len(at), dtype=np.int64)
        return Outcome((nothing,), nothing, nothing, nothing + 1)
    replace = chain.semantics == "funnel-replace"
    if replace and len(chain.intermediates) > 1:
        raise BadInput(f"cannot replay {chain} under funnel-replace", allowed="at most one intermediate")
    index = trace.drafters[chain.drafter]
    room = trace.manifest.output_tokens - trace.position[at]
    block, own = submitted, np.zeros(len(at), dtype=bool)
    own_right = own
    offered = []
    for middle in chain.intermediates:
        offered.append(block)
        block = np.minimum(index.agreed[middle][at], block)
        if replace:
            ended = index.ended[at] & (block == index.length[at])
            own = ~ended & (block < room - 1)
            own_at = np.minimum(at + block, len(trace.tokens) - 1)
            own_right = own & trace.owns[middle][own_at]
    offered.append(block + own)
    kept = np.minimum(index.matched[at], block)
    accepted = kept + ((kept == block) & own_right)
    emitted = np.minimum(accepted + 1, trace.remaining[at])
    return Outcome(tuple(offered), kept, np.minimum(accepted, trace.remaining[at]), emitted)


def forwards(drafted: Counts, at_once: int) -> Counts:
    """Forwards that ``drafted`` tokens take, ``at_once`` a forward."""
    return -(-drafted // at_once)


def drafts_read(trace: Trace, drafter: str | None, drafted: Ints) -> Ints:
    """Drafts that need not be read again once accepted: all that the drafter has read, which is all but what
    its last forward gave; none where it reads the target's states, which its drafts came without."""
    if drafter is None or trace.manifest.models[drafter].reads_target:
        return np.zeros_like(drafted)
    at_once = trace.tokens_a_forward(drafter)
    read: Ints = np.maximum(forwards(drafted, at_once) - 1, 0) * at_once
    return read


def first_width(lag: Counts, at_once: int) -> Counts:
    """Width of a cycle's first drafting forward: the text not read yet, and the masked places."""
    return lag + (at_once - 1)


def later_width(at_once: int) -> int:
    """Width of each later one: what the last one drafted, and the masked places."""
    return 2 * at_once - 1


def run(
    trace: Trace,
    chain: Chain,
    rule: LengthRule | Prescribed | None,
    start: Ints,
    seconds: Floats | None = None,
) -> Trajectories:
    """Decode every request to its text's end.

    Args:
        rule: how long drafts are; None only for plain decoding.
        start: flat position that each request begins at, shape (Q,).
        seconds: for rules that weigh cost, what a cycle costs at each flat position and
            length, shape (N, D + 1).

    Returns:
        the requests' cycles.

    Raises:
        BadInput: on sampled texts, for what cannot be replayed on them.
    """
    refuse_unsafe(trace, chain, {} if rule is None or isinstance(rule, Prescribed) else {str(rule): rule})
    requests = len(start)
    at = np.asarray(start, dtype=np.int64).copy()
    left = trace.remaining[at].copy()
    alive = np.arange(requests)
    dynamic = None if rule is None or isinstance(rule, Prescribed) else rule
    state = dynamic.begin(requests) if dynamic else np.zeros(requests)
    lag = np.ones(requests, dtype=np.int64)
    # A look-up has no cache and no forwards.
    reads = chain.drafter is not None and not trace.is_lookup(chain.drafter)
    at_once = 1 if chain.drafter is None else trace.tokens_a_forward(chain.drafter)
    behind = [np.ones(requests, dtype=np.int64) for _ in chain.intermediates]
    names = ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted")
    columns: dict[str, list[Ints]] = {name: [] for name in names}
    middles: list[list[Ints]] = [[] for _ in chain.intermediates]

    def keep(into: list[Ints], values: Ints, fill: int = 0) -> None:
        column = np.full(requests, fill, dtype=np.int64)
        column[alive] = values
        into.append(column)

    while len(alive):
        decision = _decide(trace, chain, rule, at, state, seconds)
        result = outcome(trace, chain, at, decision.submitted)
        keep(columns["flat"], at, -1)
        keep(columns["context"], trace.context[at])
        keep(columns["drafted"], decision.drafted)
        keep(columns["lag"], np.where(decision.drafted > 0, lag, 0) * reads)
        keep(columns["submitted"], decision.submitted)
        keep(columns["width"], result.offered[-1] + 1)
        keep(columns["accepted"], result.accepted)
        keep(columns["emitted"], result.emitted)
        if chain.drafter is not None:
            read = np.minimum(result.kept, drafts_read(trace, chain.drafter, decision.drafted))
            lag = np.where(decision.drafted > 0, 0, lag) + result.emitted - read
        for i, given in enumerate(result.offered[:-1]):
            idle = (given == 0) & (chain.semantics == "funnel-truncate")
            keep(middles[i], np.where(idle, 0, behind[i] + given))
            behind[i] = np.where(idle, behind[i], 0) + result.emitted - result.kept
        if dynamic:
            state = dynamic.observe(state, decision, result.kept)
        left -= result.emitted
        on = left > 0
        # Finished requests leave; the rest move on.
        at, left, alive = at[on] + result.emitted[on], left[on], alive[on]
        lag, state = lag[on], state[on]
        behind = [b[on] for b in behind]
    arrays = {
        name: np.stack(values, axis=1).astype(np.int16) for name, values in columns.items() if name != "flat"
    }
    return Trajectories(
        chain=chain,
        start=np.asarray(start, dtype=np.int64),
        flat=np.stack(columns["flat"], axis=1).astype(np.int32),
        middle=tuple(np.stack(m, axis=1).astype(np.int16) for m in middles),
        tokens_a_forward=at_once,
        **arrays,
    )


def seen(recorded: NDArray[np.float32] | None, at: Ints, beyond: NDArray[np.bool_]) -> Floats | None:
    """What a rule sees of a number a drafted token (N, D) at flat positions, 0 at the places ``beyond``."""
    if recorded is None:
        return None
    found = recorded[at].astype(np.float64)
    found[beyond] = 0.0
    return found


def _decide(
    trace: Trace,
    chain: Chain,
    rule: LengthRule | Prescribed | None,
    at: Ints,
    state: Floats,
    seconds: Floats | None,
) -> Decision:
    if chain.drafter is None:
        nothing = np.zeros(len(at), dtype=np.int64)
        return Decision(nothing, nothing)
    if rule is None:
        raise BadInput(f"{chain} drafts, so it needs a length rule")
    limit = draft_limit(trace, chain.drafter, at)
    if isinstance(rule, Prescribed):
        wanted = rule.lengths[at]
        decision = Decision(wanted, wanted)
    else:
        index = trace.drafters[chain.drafter]
        beyond = np.arange(index.confidence.shape[1]) >= limit[:, None]
        confidence, entropy = seen(index.confidence, at, beyond), seen(index.entropy, at, beyond)
        assert confidence is not None
        priced = np.ones((len(at), confidence.shape[1] + 1)) if seconds is None else seconds[at]
        decision = rule.decide(View(confidence, limit, priced, entropy), state)
    drafted = np.minimum(decision.drafted, limit)
    return Decision(drafted, np.minimum(decision.submitted, drafted))
