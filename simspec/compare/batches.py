"""Which requests run together, on all prompts and on bootstrap draws of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.streams import stream
from simspec.traces.index import Ints, Trace


@dataclass(frozen=True)
class Draws:
    """Prompts drawn with repetition, shape (draws, P); row 0 is all prompts once, shuffled.

    Categories are recorded one after another, so the shuffle keeps batches mixed.
    """

    prompts: Ints

    def counts(self) -> NDArray[np.float64]:
        """How often each draw has each prompt, shape (draws, P)."""
        draws, size = self.prompts.shape
        flat = self.prompts + size * np.arange(draws)[:, None]
        return np.bincount(flat.ravel(), minlength=draws * size).reshape(draws, size).astype(float)


def draw_prompts(trace: Trace, draws: int, seed: int) -> Draws:
    """All prompts and ``draws`` bootstrap samples of them."""
    size = len(trace.prompts)
    generator = stream(seed, "bootstrap", "prompts")
    rows = [generator.permutation(size)]
    rows += [generator.integers(0, size, size) for _ in range(draws)]
    return Draws(np.stack(rows).astype(np.int64))


def request_starts(trace: Trace) -> Ints:
    """Flat starts of the requests that batches are made of, shape (2 P,).

    Request p is prompt p from its text's beginning, request P + p the same text from its
    middle: what fills a batch up where the prompts run out.
    """
    first = trace.offsets[:-1]
    return np.concatenate([first, first + (trace.offsets[1:] - first) // 2])


def batch_requests(draws: Draws, batch: int) -> tuple[Ints, Ints]:
    """Requests of every batch of every draw.

    Each draw's prompts fill batches in order. The last batch is filled up with the draw's
    texts from their middle, and from their beginning again where even these run out.

    Returns:
        requests, shape (batches, B), and the draw that each batch belongs to, (batches,).
    """
    many, size = draws.prompts.shape
    each = -(-size // batch)
    place = np.arange(each * batch)
    fill = np.where((place // size) % 2 == 1, size, 0)
    requests = draws.prompts[:, place % size] + fill[None]
    return requests.reshape(many * each, batch), np.repeat(np.arange(many), each)
