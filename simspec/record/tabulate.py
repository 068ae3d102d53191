"""One prompt's recording as rows of the trace's tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch

from simspec.record.block_rows import BlockRows
from simspec.record.blocks import Scene, all_blocks
from simspec.record.budget import Budget
from simspec.record.models import LoadedModels
from simspec.record.observe import Along, Ints, decode_greedy, decode_sampled, read_along, summarise
from simspec.record.rows import Rows
from simspec.speculation.sampling import Sampling
from simspec.streams import stream
from simspec.tables import ALONG, PAIRS, TEXTS


def record_prompt(
    models: LoadedModels,
    prompt_id: int,
    prompt: torch.Tensor,
    output_tokens: int,
    block_length: int,
    sampling: Sampling | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    alternatives: int = 0,
) -> tuple[dict[str, pa.Table], str]:
    """Everything that the trace keeps of one prompt.

    Args:
        prompt: token ids, shape (1, prompt tokens).
        output_tokens: the most tokens of text.
        block_length: tokens a block holds, from every start position.
        sampling: how the text and the drafts are drawn; None for greedy.
        seed: of that luck, which is each prompt's own.
        budget: how many tokens of blocks are read at once.
        alternatives: of each drafted place, tokens whose probabilities are kept.

    Returns:
        tables by name, and why the text ended ("eos" or "length").
    """
    target = models.networks[models.target]
    if sampling is None:
        text = decode_greedy(target, prompt, output_tokens)
    else:
        luck = stream(seed, "record", "text", prompt_id)
        text = decode_sampled(target, prompt, output_tokens, models.eos_ids, sampling, luck)
    finish = "eos" if int(text[-1]) in models.eos_ids else "length"
    along = {
        name: read_along(
            network, prompt, text, sampling, keep_states=models.read_layers if name == models.target else ()
        )
        for name, network in models.networks.items()
    }
    block_along = {
        name: read_along(kind.network, prompt, text, sampling, target=along[models.target])
        for name, kind in models.blocks.items()
    }
    scene = Scene(
        models=models,
        prompt_id=prompt_id,
        prompt=prompt[0].cpu().numpy().astype(np.int32),
        text=text,
        finish=finish,
        along=along,
        block_along=block_along,
        block_length=block_length,
        sampling=sampling,
        seed=seed,
        budget=budget or Budget(),
    )

    texts = Rows(TEXTS)
    for position, token in enumerate(text.tolist()):
        texts.add(prompt_id=prompt_id, position=position, token=token)

    # A block-parallel drafter's first token is its network's own word; the others hang on the masks.
    every = {**along, **block_along}
    rows = BlockRows(prompt_id, text, alternatives)
    tables = {
        "texts": texts.finish(),
        "along": _along_rows(models, prompt_id, text, every),
        "pairs": _pair_rows(models, prompt_id, text, prompt, every),
    }
    all_blocks(scene, rows)
    return {**tables, **rows.finish()}, finish


def _along_rows(models: LoadedModels, prompt_id: int, text: Ints, along: dict[str, Along]) -> pa.Table:
    rows = Rows(ALONG)
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
    rows = Rows(PAIRS)
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
