"""What a cycle of every candidate does from every position of a trace: the table behind routed replay.

A candidate is a chain and a draft length, so both are chosen together. Its cycle is that of
:mod:`simspec.replay.trajectories` with a static length. The table holds verdicts: only replay and
oracles may look into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.replay.trajectories import draft_limit, drafts_read, forwards, outcome
from simspec.speculation.routing import Candidate, Pool
from simspec.traces.index import Ints, Trace

Small = NDArray[np.int16]


@dataclass(frozen=True)
class CandidateTable:
    """Cycles of K candidates from N flat positions, shape (K, N) each.

    Attributes:
        pool: the candidates, with their models' numbers.
        drafted: tokens drafted, all of them submitted.
        ran: forwards of the drafter, 0 for a look-up.
        given: tokens handed to the intermediate.
        reads: whether an intermediate runs.
        offered: tokens handed to the target.
        verified: of what the first verifier was given, tokens that it accepted.
        kept: drafts among the emitted tokens.
        read: drafts among them that the drafter has read itself.
        accepted: tokens of its block that the target accepted.
        emitted: tokens added to the text.
        refused: whether the drafter had room for a draft and found none.
    """

    trace: Trace
    pool: Pool
    drafted: Small
    ran: Small
    given: Small
    reads: NDArray[np.bool_]
    offered: Small
    verified: Small
    kept: Small
    read: Small
    accepted: Small
    emitted: Small
    refused: NDArray[np.bool_]


def tabulate(trace: Trace, candidates: Sequence[Candidate]) -> CandidateTable:
    """Work the table out.

    Raises:
        BadInput: when there is no candidate, a chain has more than one intermediate, or a drafting
            one a length outside 1 to the record's block length.
    """
    if not candidates:
        raise BadInput("no candidate to choose from", allowed="at least one chain")
    depth = trace.manifest.block_length
    for chain, length in candidates:
        if len(chain.levels) > 3:
            raise BadInput(f"cannot route {chain}", allowed="at most one intermediate")
        if (chain.drafter is None) != (length == 0) or not 0 <= length <= depth:
            raise BadInput(
                f"{chain} with drafts of {length}", allowed=f"1 to {depth}, 0 for the target alone"
            )
        for model in chain.levels:
            trace.require(model)
    names = tuple(trace.manifest.models)
    pool = Pool(
        candidates=tuple(candidates),
        names=names,
        target=trace.target,
        lookups=frozenset(m for m in names if trace.is_lookup(m)),
        at_once={m: trace.tokens_a_forward(m) for m in names},
    )
    at = np.arange(len(trace.tokens))
    nothing, never = np.zeros_like(at), np.zeros(len(at), dtype=bool)
    columns: dict[str, list[NDArray[np.generic]]] = {}
    for chain, length in candidates:
        drafted, refused = nothing, never
        if chain.drafter is not None:
            limit = np.maximum(draft_limit(trace, chain.drafter, at), 0)
            drafted = np.minimum(length, limit)
            room = trace.manifest.output_tokens - trace.position
            refused = (trace.drafters[chain.drafter].length == 0) & (room > 1)
        done = outcome(trace, chain, at, drafted)
        lookup = chain.drafter is None or trace.is_lookup(chain.drafter)
        at_once = 1 if chain.drafter is None else pool.at_once[chain.drafter]
        middle = chain.intermediates[0] if chain.intermediates else None
        given = done.offered[0] if middle else nothing
        agreed = done.accepted
        if middle is not None and chain.drafter is not None:
            agreed = np.minimum(trace.drafters[chain.drafter].agreed[middle], given)
        cells: dict[str, NDArray[np.generic]] = {
            "drafted": drafted,
            "ran": nothing if lookup else forwards(drafted, at_once),
            "given": given,
            "reads": never if middle is None else (given > 0) | (chain.semantics == "funnel-replace"),
            "offered": done.offered[-1],
            "verified": np.minimum(agreed, trace.remaining),
            "kept": done.kept,
            "read": np.minimum(done.kept, drafts_read(trace, chain.drafter, drafted)),
            "accepted": done.accepted,
            "emitted": done.emitted,
            "refused": refused,
        }
        for name, values in cells.items():
            kind = np.bool_ if values.dtype == np.bool_ else np.int16
            columns.setdefault(name, []).append(values.astype(kind))
    return CandidateTable(trace=trace, pool=pool, **{n: np.stack(c) for n, c in columns.items()})


def unread(table: CandidateTable, which: Ints, at: Ints, lag: Ints) -> Ints:
    """Tokens that each model has not read after a cycle; rows of ``lag`` are requests, (R, models).

    The drafter and the intermediate are back at the accepted drafts, where they ran; all others
    have missed what was emitted. Columns of the target and of look-ups mean nothing.
    """
    pool = table.pool
    rows = np.arange(len(at))
    emitted = table.emitted[which, at].astype(np.int64)
    after = lag + emitted[:, None]
    for role, ran, held in (
        (pool.drafter, table.ran[which, at] > 0, table.read),
        (pool.middle, table.reads[which, at], table.kept),
    ):
        model = role[which]
        r = rows[ran & (model >= 0)]
        after[r, model[r]] = emitted[r] - held[which[r], at[r]]
    return after
