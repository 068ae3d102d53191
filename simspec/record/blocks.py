"""Drafted blocks, and what every other model says along them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.record.models import LoadedModels
from simspec.record.observe import Along, Branch, Ints, read_branches, roll_out, summarise
from simspec.record.rows import Rows
from simspec.speculation.verify import accepted_prefix


def autoregressive_blocks(
    models: LoadedModels,
    prompt_id: int,
    text: Ints,
    finish: str,
    along: dict[str, Along],
    drafter: str,
    block_length: int,
    blocks: Rows,
    verdicts: Rows,
) -> None:
    """Blocks of a drafter that sees tokens only, where its first token leaves the text.

    From any other start its block is the text's token followed by its block from the
    next start, so storing those would store the same suffix again (DESIGN.md). A text
    cut by its length gets one more block, from its end.
    """
    greedy = along[drafter].log_probs[: len(text)].argmax(-1).cpu().numpy()
    starts = np.flatnonzero(greedy != text)
    if finish == "length":
        starts = np.append(starts, len(text))
    if not len(starts):
        return
    rolled = roll_out(along[drafter], starts, block_length)
    for r, start in enumerate(starts.tolist()):
        kept = summarise(rolled.log_probs[r], rolled.margin[r])
        blocks.add(
            prompt_id=prompt_id,
            start=start,
            drafter=drafter,
            tokens=rolled.tokens[r],
            confidence=kept.top1_prob,
            top1_prob=kept.top1_prob,
            top2_margin=kept.top2_margin,
            entropy=kept.entropy,
        )
    branches = [Branch(int(s), rolled.tokens[r]) for r, s in enumerate(starts)]
    for verifier, seen in along.items():
        if verifier == drafter:
            continue
        if verifier == models.target:
            # It cuts at the block's first token, and its word there is along the text.
            for r, start in enumerate(starts.tolist()):
                _add_verdict(
                    verdicts,
                    prompt_id,
                    start,
                    drafter,
                    verifier,
                    branches[r].tokens[:1],
                    seen.log_probs[start : start + 1],
                    seen.margin[start : start + 1],
                    rolled.log_probs[r, :1],
                )
            continue
        for r, log_probs, margin in read_branches(seen, branches):
            start = branches[r].start
            _add_verdict(
                verdicts,
                prompt_id,
                start,
                drafter,
                verifier,
                branches[r].tokens,
                torch.cat([seen.log_probs[start : start + 1], log_probs]),
                torch.cat([seen.margin[start : start + 1], margin]),
                rolled.log_probs[r],
            )


def lookup_blocks(
    models: LoadedModels,
    prompt_id: int,
    text: Ints,
    prompt: torch.Tensor,
    along: dict[str, Along],
    lookup: str,
    block_length: int,
    blocks: Rows,
    verdicts: Rows,
) -> None:
    """Look-up blocks from every start; each sees another ending, so no suffix is shared."""
    before = prompt[0].cpu().numpy().astype(np.int32)
    drafted = [
        models.lookups[lookup].draft(np.concatenate([before, text[:t]]), block_length)
        for t in range(len(text))
    ]
    agreed = [accepted_prefix(block, text[t:]) for t, block in enumerate(drafted)]
    for start, block in enumerate(drafted):
        sure = np.ones(len(block), dtype=np.float32)
        nothing = np.zeros(len(block), dtype=np.float32)
        blocks.add(
            prompt_id=prompt_id,
            start=start,
            drafter=lookup,
            tokens=block,
            confidence=sure,
            top1_prob=sure,
            top2_margin=nothing,
            entropy=nothing,
        )
    filled = [t for t, block in enumerate(drafted) if len(block)]
    tails = [Branch(t + agreed[t], drafted[t][agreed[t] :]) for t in filled]
    for verifier, seen in along.items():
        if verifier == models.target:
            for start in filled:
                known = min(agreed[start] + 1, len(text) - start)
                _add_verdict(
                    verdicts,
                    prompt_id,
                    start,
                    lookup,
                    verifier,
                    drafted[start][:known],
                    seen.log_probs[start : start + known],
                    seen.margin[start : start + known],
                    None,
                )
            continue
        done = set()
        branches = [b for b in tails if len(b.tokens)]
        owners = [t for t, b in zip(filled, tails, strict=True) if len(b.tokens)]
        for index, log_probs, margin in read_branches(seen, branches):
            start = owners[index]
            _add_lookup_verdict(
                verdicts,
                prompt_id,
                start,
                lookup,
                verifier,
                drafted[start],
                agreed[start],
                seen,
                log_probs,
                margin,
            )
            done.add(start)
        for start in filled:
            if start not in done:
                none = seen.log_probs[:0], seen.margin[:0]
                _add_lookup_verdict(
                    verdicts,
                    prompt_id,
                    start,
                    lookup,
                    verifier,
                    drafted[start],
                    agreed[start],
                    seen,
                    *none,
                )


def _add_lookup_verdict(
    verdicts: Rows,
    prompt_id: int,
    start: int,
    lookup: str,
    verifier: str,
    block: Ints,
    agreed: int,
    seen: Along,
    log_probs: torch.Tensor,
    margin: torch.Tensor,
) -> None:
    on_text = slice(start, start + agreed + 1)
    _add_verdict(
        verdicts,
        prompt_id,
        start,
        lookup,
        verifier,
        block,
        torch.cat([seen.log_probs[on_text], log_probs]),
        torch.cat([seen.margin[on_text], margin]),
        None,
    )


def _add_verdict(
    verdicts: Rows,
    prompt_id: int,
    start: int,
    drafter: str,
    verifier: str,
    block: Ints,
    log_probs: torch.Tensor,
    margin: torch.Tensor,
    draft_log_probs: torch.Tensor | None,
) -> None:
    """One row of verdicts.

    ``log_probs`` has a row for each token of ``block``, and one more where the verifier's
    word past its end is kept. Without ``draft_log_probs`` the drafter is a point mass.
    """
    n = len(block)
    index = torch.as_tensor(block, device=log_probs.device).long()
    drafted_prob = log_probs[:n].gather(1, index[:, None])[:, 0].exp()
    if draft_log_probs is None:
        overlap = drafted_prob
    else:
        overlap = torch.minimum(log_probs[:n], draft_log_probs[:n]).exp().sum(-1)
    verdicts.add(
        prompt_id=prompt_id,
        start=start,
        drafter=drafter,
        verifier=verifier,
        greedy_token=log_probs.argmax(-1).cpu().numpy().astype(np.int32),
        top1_prob=_unit(log_probs.max(-1).values.exp()),
        top2_margin=margin.cpu().numpy(),
        drafted_prob=_unit(drafted_prob),
        overlap=_unit(overlap),
    )


def _unit(values: torch.Tensor) -> NDArray[np.float32]:
    """Clamped to [0, 1]: float32 sums of probabilities can end a rounding step outside."""
    clamped: NDArray[np.float32] = values.clamp(0, 1).cpu().numpy()
    return clamped
