"""Every claim there is: chains and models (S), draft lengths (L), the simulator itself (M)."""

from __future__ import annotations

import re

from simspec.claims.acceptance import expected_tokens, funnels, mixed_rates, similarity, two_apart
from simspec.claims.base import Claim
from simspec.claims.chains import any_text, cascades, nesting, polybasic, third_level
from simspec.claims.eq7 import correlated, exact_cells, jensen, refuted_cells, widths, without_middle
from simspec.claims.lengths import (
    adjustments,
    algorithm_one,
    batch_growth,
    best_length,
    calibration_regret,
    confidences,
    families,
    from_one,
    gains,
    iterating,
    marginal,
    one_pass,
    packed,
    padded,
    partly_padded,
    past_best,
    peak,
    regret_reached,
    regret_shares,
    repaired_bounds,
    stopping,
    through_origin,
    tolerance,
    tuned,
    unbounded,
)
from simspec.claims.lossless import (
    greedy,
    intermediates,
    length_certain,
    length_learning,
    length_safety,
    length_scans,
    sampling,
    surviving,
)
from simspec.claims.scheduling import adaptive, dynamic_program, hindsight, kinds, on_traces, texts
from simspec.claims.serving import (
    accounting,
    arriving,
    blocks,
    luck,
    memory,
    queue_means,
    queues,
    speculation,
    speedup,
    strides,
    time,
)
from simspec.claims.simulator import (
    agreement,
    cache,
    means,
    packing,
    repeatable,
    replay,
    speedup_bounds,
    waste,
)

_BY_TOPIC = (
    *similarity.CLAIMS,
    *two_apart.CLAIMS,
    *expected_tokens.CLAIMS,
    *mixed_rates.CLAIMS,
    *funnels.CLAIMS,
    *widths.CLAIMS,
    *refuted_cells.CLAIMS,
    *exact_cells.CLAIMS,
    *correlated.CLAIMS,
    *jensen.CLAIMS,
    *without_middle.CLAIMS,
    *greedy.CLAIMS,
    *intermediates.CLAIMS,
    *sampling.CLAIMS,
    *surviving.CLAIMS,
    *cache.CLAIMS,
    *waste.CLAIMS,
    *packing.CLAIMS,
    *hindsight.CLAIMS,
    *dynamic_program.CLAIMS,
    *cascades.CLAIMS,
    *any_text.CLAIMS,
    *polybasic.CLAIMS,
    *third_level.CLAIMS,
    *nesting.CLAIMS,
    *on_traces.CLAIMS,
    *adaptive.CLAIMS,
    *texts.CLAIMS,
    *marginal.CLAIMS,
    *peak.CLAIMS,
    *through_origin.CLAIMS,
    *gains.CLAIMS,
    *adjustments.CLAIMS,
    *repaired_bounds.CLAIMS,
    *iterating.CLAIMS,
    *unbounded.CLAIMS,
    *one_pass.CLAIMS,
    *algorithm_one.CLAIMS,
    *confidences.CLAIMS,
    *tuned.CLAIMS,
    *past_best.CLAIMS,
    *from_one.CLAIMS,
    *families.CLAIMS,
    *stopping.CLAIMS,
    *best_length.CLAIMS,
    *batch_growth.CLAIMS,
    *calibration_regret.CLAIMS,
    *tolerance.CLAIMS,
    *regret_reached.CLAIMS,
    *regret_shares.CLAIMS,
    *packed.CLAIMS,
    *padded.CLAIMS,
    *partly_padded.CLAIMS,
    *length_safety.CLAIMS,
    *length_scans.CLAIMS,
    *length_certain.CLAIMS,
    *length_learning.CLAIMS,
    *kinds.CLAIMS,
    *replay.CLAIMS,
    *repeatable.CLAIMS,
    *agreement.CLAIMS,
    *means.CLAIMS,
    *speedup_bounds.CLAIMS,
    *accounting.CLAIMS,
    *time.CLAIMS,
    *blocks.CLAIMS,
    *memory.CLAIMS,
    *queues.CLAIMS,
    *queue_means.CLAIMS,
    *speculation.CLAIMS,
    *speedup.CLAIMS,
    *arriving.CLAIMS,
    *luck.CLAIMS,
    *strides.CLAIMS,
)


def _order(claim: Claim) -> tuple[int, int, str]:
    """By letter as above, then by number; what is said of one number stays together."""
    parts = re.fullmatch(r"([SLM])(\d+)(.*)", claim.id)
    if parts is None:
        raise ValueError(f"{claim.id!r} is no id of a claim, such as S5b")
    return "SLM".index(parts[1]), int(parts[2]), parts[3]


CLAIMS: tuple[Claim, ...] = tuple(sorted(_BY_TOPIC, key=_order))
