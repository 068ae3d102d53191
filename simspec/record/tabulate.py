"""One prompt's recording as rows of the trace's tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from simspec.record.models import LoadedModels
from simspec.record.observe import (
    Along,
    Branch,
    Ints,
    decode_greedy,
    read_along,
    read_branches,
    roll_out,
    summarise,
)
from simspec.speculation.verify import accepted_prefix
from simspec.tables import ALONG, BLOCKS, PAIRS, TEXTS, VERDICTS, Table


class _Rows:
    """Rows of one table, kept as columns."""

    def __init__(self, table: Table):
        self.table = table
        self.columns: dict[str, list[Any]] = {c.name: [] for c in table.columns}

    def add(self, **values: Any) -> None:
        for name, value in values.items():
            self.columns[name].append(value)

    def finish(self) -> pa.Table:
        arrays = []
        for column in self.table.columns:
            values = self.columns[column.name]
            if column.type == pa.list_(pa.float16()):
                values = [np.asarray(v, dtype=np.float16) for v in values]
            arrays.append(pa.array(values, type=column.type))
        return pa.Table.from_arrays(arrays, schema=self.table.schema)


def record_prompt(
    models: LoadedModels, prompt_id: int, prompt: torch.Tensor, output_tokens: int, block_length: int
) -> tuple[dict[str, pa.Table], str]:
    """Everything that the trace keeps of one prompt.

    Args:
        prompt: token ids, shape (1, prompt tokens).
        output_tokens: the most tokens of text.
        block_length: tokens a block holds, from every start position.

    Returns:
        tables by name, and why the text ended ("eos" or "length").
    """
    text = decode_greedy(models.networks[models.target], prompt, output_tokens)
    finish = "eos" if int(text[-1]) in models.eos_ids else "length"
    along = {name: read_along(network, prompt, text) for name, network in models.networks.items()}

    texts = _Rows(TEXTS)
    for position, token in enumerate(text.tolist()):
        texts.add(prompt_id=prompt_id, position=position, token=token)

    tables = {
        "texts": texts.finish(),
        "along": _along_rows(models, prompt_id, text, along),
        "pairs": _pair_rows(models, prompt_id, text, prompt, along),
    }
    blocks, verdicts = _Rows(BLOCKS), _Rows(VERDICTS)
    for drafter in models.networks:
        if drafter != models.target:
            _autoregressive_blocks(
                models, prompt_id, text, finish, along, drafter, block_length, blocks, verdicts
            )
    for drafter in models.lookups:
        _lookup_blocks(models, prompt_id, text, prompt, along, drafter, block_length, blocks, verdicts)
    tables["blocks"], tables["verdicts"] = blocks.finish(), verdicts.finish()
    return tables, finish


def _along_rows(models: LoadedModels, prompt_id: int, text: Ints, along: dict[str, Along]) -> pa.Table:
    rows = _Rows(ALONG)
    length = len(text)
    index = torch.as_tensor(text).long()
    for name, seen in along.items():
        log_probs = seen.log_probs[:length]
        kept = summarise(log_probs, seen.margin[:length])
        of_text = log_probs.gather(1, index.to(log_probs.device)[:, None])
        rank = (log_probs > of_text).sum(-1).cpu().numpy()
        prob = of_text[:, 0].exp().clamp(0, 1).cpu().numpy()
        for t in range(length):
            rows.add(
                prompt_id=prompt_id,
                position=t,
                model=name,
                greedy_token=int(kept.greedy_token[t]),
                top1_prob=float(kept.top1_prob[t]),
                top2_margin=float(kept.top2_margin[t]),
                entropy=float(kept.entropy[t]),
                text_prob=float(prob[t]),
                text_rank=int(rank[t]),
            )
    return rows.finish()


def _pair_rows(
    models: LoadedModels, prompt_id: int, text: Ints, prompt: torch.Tensor, along: dict[str, Along]
) -> pa.Table:
    rows = _Rows(PAIRS)
    length = len(text)
    names = list(along)
    probs = {name: seen.log_probs[:length].exp() for name, seen in along.items()}
    greedy = {name: p.argmax(-1) for name, p in probs.items()}
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            distance = (0.5 * (probs[a] - probs[b]).abs().sum(-1)).clamp(0, 1).cpu().numpy()
            agree = (greedy[a] == greedy[b]).cpu().numpy()
            for t in range(length):
                rows.add(
                    prompt_id=prompt_id,
                    position=t,
                    model_a=a,
                    model_b=b,
                    tv=float(distance[t]),
                    argmax_agree=bool(agree[t]),
                )
    # A look-up is a point mass on its first token; where it has none it has no distribution.
    before = prompt[0].cpu().numpy().astype(np.int32)
    for lookup, drafter in models.lookups.items():
        for t in range(length):
            block = drafter.draft(np.concatenate([before, text[:t]]), 1)
            if len(block):
                token = int(block[0])
                for name in names:
                    rows.add(
                        prompt_id=prompt_id,
                        position=t,
                        model_a=name,
                        model_b=lookup,
                        tv=min(1.0, max(0.0, 1.0 - float(probs[name][t, token]))),
                        argmax_agree=bool(int(greedy[name][t]) == token),
                    )
    return rows.finish()


def _autoregressive_blocks(
    models: LoadedModels,
    prompt_id: int,
    text: Ints,
    finish: str,
    along: dict[str, Along],
    drafter: str,
    block_length: int,
    blocks: _Rows,
    verdicts: _Rows,
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


def _lookup_blocks(
    models: LoadedModels,
    prompt_id: int,
    text: Ints,
    prompt: torch.Tensor,
    along: dict[str, Along],
    lookup: str,
    block_length: int,
    blocks: _Rows,
    verdicts: _Rows,
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
        after: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
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
            after[start] = (log_probs, margin)
        for start in filled:
            if start not in after:
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
    verdicts: _Rows,
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
    verdicts: _Rows,
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
