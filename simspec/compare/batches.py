"""Which requests run together, on all prompts and on bootstrap draws of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.streams import stream
from simspec.traces.index import Ints, Trace


@dataclass(frozen=True)
class Draws:
    """Prompts drawn with repetition, shape (draws, n); row 0 is every one of them once, shuffled.

    Categories are recorded one after another, so the shuffle keeps batches mixed. ``total`` is the
    trace's number of prompts, of which some may be left out.
    """

    prompts: Ints
    total: int

    def counts(self) -> NDArray[np.float64]:
        """How often each draw has each of the trace's prompts, shape (draws, total)."""
        draws = len(self.prompts)
        flat = self.prompts + self.total * np.arange(draws)[:, None]
        found = np.bincount(flat.ravel(), minlength=draws * self.total)
        return found.reshape(draws, self.total).astype(float)


def draw_prompts(trace: Trace, draws: int, seed: int, among: Ints | None = None) -> Draws:
    """All prompts, or those ``among`` them, and ``draws`` bootstrap samples."""
    total = len(trace.prompts)
    chosen = np.arange(total) if among is None else among
    size = len(chosen)
    generator = stream(seed, "bootstrap", "prompts")
    rows = [generator.permutation(size)]
    rows += [generator.integers(0, size, size) for _ in range(draws)]
    return Draws(chosen[np.stack(rows)].astype(np.int64), total)


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
    fill = np.where((place // size) % 2 == 1, draws.total, 0)
    requests = draws.prompts[:, place % size] + fill[None]
    return requests.reshape(many * each, batch), np.repeat(np.arange(many), each)
