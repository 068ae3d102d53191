"""A record as if its texts had been recorded for fewer tokens."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from simspec.traces.drafters import Choices
from simspec.traces.index import Ints, Trace


def cut_texts(trace: Trace, tokens: int) -> Trace:
    """``trace`` with nothing past the first ``tokens`` of each text.

    :meth:`~simspec.traces.index.Trace.shortened` replays alike and keeps the positions behind; here they are
    gone, so that what is averaged over a text is averaged over what is left of it.
    """
    short = trace.shortened(tokens)
    keep = np.flatnonzero(short.remaining > 0)
    size = np.minimum(trace.prompts["output_tokens"].to_numpy(), short.manifest.output_tokens)
    arrays = ("tokens", "remaining", "position", "prompt", "context", "owns")
    return replace(
        short,
        prompts=trace.prompts.assign(output_tokens=size),
        pairs=trace.pairs[trace.pairs["position"] < short.manifest.output_tokens],
        offsets=np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        drafters={
            name: replace(index, **{f.name: _at(getattr(index, f.name), keep) for f in fields(index)})
            for name, index in trace.drafters.items()
        },
        **{name: _at(getattr(short, name), keep) for name in arrays},
    )


def _at(values: Any, keep: Ints) -> Any:
    """Arrays over flat positions, also several by name, at some of them."""
    if isinstance(values, dict):
        return {name: _at(those, keep) for name, those in values.items()}
    if isinstance(values, Choices):
        return replace(values, confidence=values.confidence[keep], text_rank=values.text_rank[keep])
    return None if values is None else values[keep]
