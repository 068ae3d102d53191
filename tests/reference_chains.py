"""Verdicts on chains, as the slow twin of the serving engine reads them: row by row and token by token."""

from __future__ import annotations

from simspec.serving.chain_verdicts import LevelRates, RecordedChain
from simspec.serving.verdicts import Recorded
from tests.reference_serving_parts import luck, place, run_from
from tests.reference_serving_prices import Row


def to_be_had(source: object, seed: int, row: Row) -> int:
    """Drafts that can be had where a row's text stands."""
    if isinstance(source, LevelRates):
        return source.longest
    return run_from(source.drafts if isinstance(source, RecordedChain) else source, seed, row)[1]


def end_of_text(source: Recorded, flat: int) -> int:
    """Where the text ends that a flat position lies in."""
    return min(int(end) for end in source.offsets[1:] if end > flat)


def climb(source: object, seed: int, row: Row, submitted: int) -> tuple[list[int], list[int]]:
    """What each verifier of a chain is given, and how much of it each intermediate agrees with."""
    given, passed = [submitted], []
    room = row.output - row.produced - 1
    for level in range(source.intermediates):
        ended = False
        if isinstance(source, RecordedChain):
            flat = place(source.drafts, seed, row)
            room = min(room, end_of_text(source.drafts, flat) - flat - 1)
            block = min(given[-1], int(source.agreed[level][flat]))
            ended = block == int(source.ended[flat])
        else:
            block = min(given[-1], _run(source, seed, row, level))
        passed.append(block)
        adds = source.replace and not ended and block < room
        given.append(block + 1 if adds else block)
    return given, passed


def settle(source: object, seed: int, row: Row, given: list[int], passed: list[int]) -> int:
    """How many of the tokens that the target is given it accepts."""
    if isinstance(source, LevelRates):
        return min(given[-1], _run(source, seed, row, source.intermediates))
    assert isinstance(source, RecordedChain)
    flat = place(source.drafts, seed, row)
    right = [j < int(source.drafts.matched[flat]) for j in range(passed[-1])]
    if given[-1] > passed[-1]:
        right.append(bool(source.owns[flat + passed[-1]]))
    return next((j for j, good in enumerate(right) if not good), len(right))


def _run(source: LevelRates, seed: int, row: Row, level: int) -> int:
    drawn = luck(seed, row.request_id).random(len(source.rates) * row.output)
    mine = drawn[level * row.output + row.produced]
    return sum(source.rates[level] ** j > mine for j in range(1, source.longest + 2))
