"""Which chains and draft lengths are worth decoding for real: all that may be taken for the fastest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simspec.compare.batches import draw_prompts
from simspec.compare.foretold import REPLAYED, fit_on, foretell
from simspec.compare.replayed import Candidate
from simspec.cost.models import CostModel
from simspec.speculation.chains import all_chains
from simspec.traces.index import Ints, Trace


def choose(
    trace: Trace,
    cost: CostModel,
    fitted: Ints,
    decoded: dict[int, Ints],
    lengths: Sequence[int],
    near: int,
) -> dict[int, list[Candidate]]:
    """For each batch size: plain decoding, the ``near`` fastest by replay of the fitted prompts, what each
    variant of Eq. 7 picks from each source, and each pair and the triples at their fastest length.

    Args:
        fitted: prompts to replay and to fit acceptance on; those that will be decoded are not among them.
        decoded: prompts that each batch size will decode; only their lengths are looked at.
    """
    pool = [m for m in trace.manifest.models if m in cost.models]
    chains = all_chains(pool, trace.target, set(pool) - set(trace.verifiers))
    candidates = [(c, n) for c in chains for n in (lengths if c.drafter else (0,))]
    draws = draw_prompts(trace, 0, 0, fitted)
    told = foretell(fit_on(trace, cost, candidates, tuple(decoded), draws), decoded)
    levels = [chain.levels if len(chain.levels) < 3 else len(chain.levels) for chain, _ in candidates]
    chosen = {}
    for b, batch in enumerate(decoded):
        replayed = told[REPLAYED][b, 0]
        order = np.argsort(replayed, kind="stable")
        wanted = set(order[:near].tolist())
        wanted |= {int(times[b, 0].argmin()) for times in told.values()}
        wanted |= {next(int(k) for k in order if levels[k] == kind) for kind in set(levels)}
        chosen[batch] = [candidates[k] for k in sorted(wanted)]
    return chosen
