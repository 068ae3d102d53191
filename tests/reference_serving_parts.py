"""Blocks and luck of the slow twin of the serving engine: blocks by number, a stream for every question."""

from __future__ import annotations

import numpy as np

from simspec.serving.verdicts import Rates, Recorded
from simspec.streams import stream
from tests.reference_serving_prices import Row


def run_from(source: object, seed: int, row: Row) -> tuple[int, int]:
    """(leading drafts that are right, drafts that can be had) where a row's text stands."""
    if isinstance(source, Rates):
        drawn = luck(seed, row.request_id).random(row.output)[row.produced]
        return sum(s > drawn for s in source.survival), len(source.survival)
    assert isinstance(source, Recorded)
    flat = place(source, seed, row)
    return int(source.matched[flat]), int(source.available[flat])


def luck(seed: int, request_id: int) -> np.random.Generator:
    """What a request draws from, where its verdicts are drawn."""
    bits = stream(seed, "acceptance", "drawn").bit_generator
    assert isinstance(bits, np.random.PCG64)
    return np.random.Generator(bits.jumped(request_id))


def place(source: Recorded, seed: int, row: Row) -> int:
    """The flat position of the record at which a row's text stands."""
    group, member = row.request_id // 256, row.request_id % 256
    total = len(source.matched)
    flat = int(stream(seed, "acceptance", "places", group).integers(total, size=256)[member])
    text = max(t for t, begin in enumerate(source.offsets[:-1]) if begin <= flat)
    begin, end = int(source.offsets[text]), int(source.offsets[text + 1])
    for _ in range(row.produced):
        flat = begin if flat + 1 == end else flat + 1
    return flat


class Blocks:
    """Blocks by number, each with one owner or none."""

    def __init__(self, total: int | None, size: int):
        self.total, self.size = total, size
        self.free = list(range(total)) if total is not None else []
        self.owned: set[int] = set()
        self.fresh = 0

    def need(self, tokens: int) -> int:
        return len(range(0, tokens, self.size))

    def left(self) -> float:
        return float("inf") if self.total is None else len(self.free)

    def give(self, held: list[int], tokens: int) -> None:
        while len(held) < self.need(tokens):
            if self.total is None:
                block, self.fresh = self.fresh, self.fresh + 1
            else:
                block = self.free.pop()
            assert block not in self.owned
            self.owned.add(block)
            held.append(block)

    def take(self, held: list[int], keep: int) -> None:
        while len(held) > keep:
            block = held.pop()
            self.owned.remove(block)
            if self.total is not None:
                self.free.append(block)
