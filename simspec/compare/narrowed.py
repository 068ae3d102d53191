"""A record of some of its prompts, its texts and blocks cut, beside which another one is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from simspec.traces.drafters import DrafterIndex
from simspec.traces.index import Ints, Trace


def narrowed(trace: Trace, prompts: Ints, tokens: int, depth: int) -> Trace:
    """``trace`` with the prompts of these numbers (rising), texts of ``tokens``, blocks of ``depth`` tokens.

    What trees are made of is left out.
    """
    trace = trace.shortened(tokens)
    keep = np.flatnonzero(np.isin(trace.prompt, prompts) & (trace.remaining > 0))
    number = np.full(len(trace.prompts), -1, dtype=np.int64)
    number[prompts] = np.arange(len(prompts))
    told = trace.prompts.iloc[prompts].reset_index(drop=True).assign(prompt_id=np.arange(len(prompts)))
    told["output_tokens"] = np.minimum(told["output_tokens"], trace.manifest.output_tokens)
    pairs = trace.pairs[trace.pairs["prompt_id"].isin(prompts) & (trace.pairs["position"] < tokens)]
    length = min(depth, trace.manifest.block_length)
    return replace(
        trace,
        manifest=msgspec.structs.replace(trace.manifest, block_length=length),
        prompts=told,
        pairs=pairs.assign(prompt_id=number[pairs["prompt_id"]]),
        offsets=np.concatenate([[0], np.cumsum(told["output_tokens"])]).astype(np.int64),
        prompt=number[trace.prompt[keep]],
        owns={name: values[keep] for name, values in trace.owns.items()},
        drafters={name: _cut(index, keep, length) for name, index in trace.drafters.items()},
        **{n: getattr(trace, n)[keep] for n in ("tokens", "remaining", "position", "context")},
    )


def _cut(index: DrafterIndex, keep: Ints, depth: int) -> DrafterIndex:
    def shorter(values: Any) -> Any:
        return None if values is None else values[keep, :depth]

    length = index.length[keep]
    return replace(
        index,
        length=np.minimum(length, depth),
        ended=index.ended[keep] & (length <= depth),
        confidence=shorter(index.confidence),
        entropy=shorter(index.entropy),
        matched=np.minimum(index.matched[keep], depth),
        choices=None,
        agreed={name: np.minimum(values[keep], depth) for name, values in index.agreed.items()},
    )
