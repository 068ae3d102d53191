"""Is confidence the chance of acceptance, place by place, and what does it cost to act as if it were?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.bands import short, with_interval
from simspec.compare.batches import draw_prompts
from simspec.compare.calibration import Drafts, drafts
from simspec.compare.calibration_scores import Scores, brier_parts, drift, scores
from simspec.compare.libraspec.slower_rounds import slower_rounds
from simspec.compare.libraspec.wrong_confidences import RULES, rules_of, visited, wrong_confidences
from simspec.compare.parts import ALL
from simspec.compare.recalibrated import METHODS, chances
from simspec.cost.models import CostModel
from simspec.speculation.calibrating import STRETCHES
from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Where blocks begin: every position, or those where cycles begin under Algorithm 1 as printed.
EVERY, VISITED = "every", "visited"


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Every drafter but look-ups, whose confidence is 1 by form.

    A token counts where all before it in its block were accepted. A figure is [value, low, high].

    Returns:
        ``prompts`` (of each task), ``places`` (names of the stretches of a block), ``rule`` (whose cycles
        say what is visited), ``drafters.<name>`` = {``cells[]`` = {starts (every, visited), task, places,
        tokens, confidence and accepted (means), bias, ece, brier, auroc (figures), ece_by_chance,
        miscalibration, discrimination, uncertainty}, ``bins.<places>[]`` = {tokens, confidence, accepted
        (figure)} at every start, ``drift.<starts>`` (figure: change of confidence - accepted a place),
        ``held_out[]`` = {method, fitted (starts), scored (starts), places, tokens, bias, ece, brier, auroc,
        spared (Brier score less than before, draws paired), ece_by_chance}};
        ``acting.<cost>`` = {``label``, ``drafters.<name>`` = {``rules`` as
        :func:`~simspec.compare.libraspec.wrong_confidences.wrong_confidences`, ``theory`` as
        :func:`~simspec.compare.libraspec.slower_rounds.slower_rounds`}}.
    """
    able = [d for d in trace.drafters if not trace.is_lookup(d) and len(drafts(trace, d).place)]
    priced = [(c, d) for c in costs for d in able if d in c.models]
    work = [joblib.delayed(_drafter)(trace, d, asked.draws, asked.seed) for d in able]
    work += [joblib.delayed(_acting)(trace, d, c, asked.draws, asked.seed) for c, d in priced]
    done = joblib.Parallel(n_jobs=asked.jobs)(work)
    say("held confidences against acceptance, and lengths by one against lengths by the other")
    acting: dict[str, Any] = {c.name: {"label": c.label, "drafters": {}} for c in costs}
    for (cost, drafter), found in zip(priced, done[len(able) :], strict=True):
        acting[cost.name]["drafters"][drafter] = found
    return {
        "prompts": trace.prompts["category"].value_counts(sort=False).to_dict(),
        "places": list(_stretches(trace)),
        "rule": RULES[0],
        "drafters": dict(zip(able, done, strict=False)),
        "acting": acting,
    }


def _stretches(trace: Trace) -> dict[str, tuple[int, int]]:
    """First place and the one past the last, from 0, of each stretch that the record's blocks have."""
    depth = trace.manifest.block_length
    ends = [*(int(s) for s in STRETCHES if s < depth), depth]
    names = (f"{a + 1}" if b == a + 1 else f"{a + 1}-{b}" for a, b in pairwise(ends))
    return dict(zip(names, pairwise(ends), strict=True))


def _within(trace: Trace, found: Drafts) -> Iterator[tuple[str, Flags]]:
    """Which drafts are in each stretch, all first."""
    yield ALL, np.ones(len(found.place), dtype=bool)
    for name, (first, end) in _stretches(trace).items():
        yield name, (found.place >= first) & (found.place < end)


def _drafter(trace: Trace, drafter: str, draws: int, seed: int) -> dict[str, Any]:
    counts = draw_prompts(trace, draws, seed).counts()
    depth = trace.manifest.block_length
    begun = visited(trace, drafter, rules_of(trace)[RULES[0]], np.ones((len(trace.tokens), depth + 1)))
    starts = {EVERY: np.ones(len(begun), dtype=bool), VISITED: begun}
    task = trace.prompts["category"].to_numpy()
    cells, bins, drifts, held = [], {}, {}, []
    for name, where in starts.items():
        found = drafts(trace, drafter, where)
        drifts[name] = with_interval(drift(found, counts))
        for mine in (ALL, *dict.fromkeys(task)):
            of_task = np.ones(len(found.place), dtype=bool) if mine == ALL else (task == mine)[found.prompt]
            for places, among in _within(trace, found):
                if not (among & of_task).any():
                    continue
                told = _scored(found, found.confidence, among & of_task, counts)
                cells.append(
                    {
                        "starts": name,
                        "task": mine,
                        "places": places,
                        **_cell(found, among & of_task),
                        **_figures(told),
                    }
                )
                if name == EVERY and mine == ALL:
                    bins[places] = [
                        {"tokens": int(n), "confidence": short(float(c)), "accepted": with_interval(a)}
                        for n, c, a in zip(*told.bins[:2], told.bins[2].T, strict=True)
                    ]
        for method, fit in METHODS.items():
            for fitted in (EVERY,) if name == EVERY else (EVERY, VISITED):
                chance = chances(trace, drafter, fit, starts[fitted])[found.flat, found.place]
                held += [
                    {"method": method, "fitted": fitted, "scored": name, "places": places, **row}
                    for places, row in _held_out(trace, found, chance, counts)
                ]
    return {"cells": cells, "bins": bins, "drift": drifts, "held_out": held}


def _scored(found: Drafts, confidence: Floats, among: Flags, counts: Floats) -> Scores:
    return scores(confidence[among], found.accepted[among], found.prompt[among], counts)


def _figures(told: Scores) -> dict[str, Any]:
    return {
        "tokens": told.tokens,
        "bias": with_interval(told.bias),
        "ece": with_interval(told.ece),
        "ece_by_chance": short(told.ece_by_chance),
        "brier": with_interval(told.brier),
        "auroc": with_interval(told.auroc),
    }


def _cell(found: Drafts, among: Flags) -> dict[str, Any]:
    parts = brier_parts(found.confidence[among], found.accepted[among])
    return {
        "confidence": short(float(found.confidence[among].mean())),
        "accepted": short(float(found.accepted[among].mean())),
        **dict(zip(("miscalibration", "discrimination", "uncertainty"), map(short, parts), strict=True)),
    }


def _held_out(
    trace: Trace, found: Drafts, chance: Floats, counts: Floats
) -> Iterator[tuple[str, dict[str, Any]]]:
    for places, among in _within(trace, found):
        if among.any():
            before, after = (_scored(found, c, among, counts) for c in (found.confidence, chance))
            yield places, {**_figures(after), "spared": with_interval(before.brier - after.brier)}


def _acting(trace: Trace, drafter: str, cost: CostModel, draws: int, seed: int) -> dict[str, Any]:
    return {
        "rules": wrong_confidences(trace, drafter, cost, draws, seed),
        "theory": slower_rounds(trace, drafter, cost, draws, seed),
    }
