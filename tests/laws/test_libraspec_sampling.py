"""Replay of sampled texts in distribution: the law of speculative sampling, and who may decide what when."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from simspec.claims.lossless.luck import every
from simspec.compare.costs import open_cost
from simspec.cost.models import MeasuredCost
from simspec.errors import BadInput
from simspec.replay.planned import plan
from simspec.replay.sampled import acceptance_chance, in_distribution, usable
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LibraSpec, Static
from simspec.speculation.planners_as_drafted import LongRunAsDrafted
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import EachAlone
from simspec.speculation.rule_files import as_planner, published
from simspec.speculation.verify import Block, RejectionJudge
from simspec.traces.index import load_trace
from tests.drawn import NEAR, TARGET, Drawn, models

DEPTH = 5
PAIR = Chain((NEAR, TARGET))


def halves(rows: list[list[int]]) -> np.ndarray:
    return np.array([[Fraction(x, sum(row)) for x in row] for row in rows], dtype=object)


CASES = MappingProxyType(
    {
        "near": (halves([[1, 2], [3, 1]]), halves([[2, 1], [2, 2]])),
        "one is never drafted": (halves([[1, 1], [1, 3]]), halves([[1, 0], [1, 1]])),
        "three tokens": (
            halves([[1, 2, 1], [3, 1, 1], [1, 1, 4]]),
            halves([[2, 1, 1], [1, 1, 1], [0, 2, 1]]),
        ),
    }
)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_text_and_luck_have_the_joint_law_of_drafts_and_judge(name, length):
    """Exactly, over all luck: emitted tokens and how many of them are drafts."""
    p, q = CASES[name]
    chances = acceptance_chance(p, q)

    def judged(luck):
        tokens, last = [], 0
        for _ in range(length):
            tokens.append(luck.pick(q[last]))
            last = tokens[-1]
        read = [0, *tokens]
        block = Block(np.array(tokens, dtype=np.int32), np.array([q[x] for x in read[:-1]], dtype=object))
        done = RejectionJudge(luck).settle(block, np.array([p[x] for x in read], dtype=object))
        return tuple(done.owned.tokens.tolist()), done.accepted

    said = Counter()
    for text in product(range(len(p)), repeat=length + 1):
        chance, last = Fraction(1), 0
        for place, y in enumerate(text):
            drawn = chance * p[last, y]
            accepted = Fraction(chances[last, y]) if place < length else Fraction(0)
            # The rest of the text is summed over: any will do.
            if not any(text[place + 1 :]):
                said[text[: place + 1], place] += drawn * (1 - accepted)
            chance, last = drawn * accepted, y
    assert every(judged) == {key: weight for key, weight in said.items() if weight}


@pytest.fixture(scope="module")
def independent():
    p, q = models(1, independent=True)
    drawn = Drawn(p, q, prompts=120, output_tokens=24, block_length=DEPTH)
    return drawn, in_distribution(drawn.tables(), 3)


def by_prompt(trace, counts, where):
    """Mean count of all starts ``where``, and its standard error over prompts, which are independent."""
    owner, total = trace.prompt[where], len(trace.prompts)
    sums, n = (np.bincount(owner, w, total) for w in (counts[where], np.ones(where.sum())))
    mean = sums.sum() / n.sum()
    return mean, np.sqrt(((sums - mean * n) ** 2).sum()) / n.sum()


@pytest.mark.parametrize("length", range(1, DEPTH + 1))
def test_mean_accepted_is_the_sum_of_products_of_overlaps(independent, length):
    drawn, trace = independent
    overlap = np.minimum(drawn.p[0], drawn.q[0]).sum()
    accepted = np.minimum(trace.drafters[NEAR].matched, length)
    mean, error = by_prompt(trace, accepted, trace.remaining >= length)
    wanted = sum(overlap**k for k in range(1, length + 1))
    assert abs(mean - wanted) < 4 * error
    assert error < 0.04 * wanted  # or it would pass whatever came out
    # Cycles begin where the last one ended: neither a rule's choice of starts nor the luck biases them.
    runs = run(trace, PAIR, Static(length), trace.offsets[:-1])
    flat = runs.flat[runs.active]
    whole = trace.remaining[flat] > length
    share = np.zeros(len(trace.tokens))
    share[flat[whole]] = runs.accepted[runs.active][whole]
    begins = np.zeros(len(trace.tokens), dtype=bool)
    begins[flat[whole]] = True
    mean, error = by_prompt(trace, share, begins)
    assert abs(mean - wanted) < 4 * error


def test_where_drafts_depend_on_the_text_so_does_acceptance():
    """From each start, the expected accepted drafts given the token before it, by recursion over tokens."""
    p, q = models(2, spread=0.3)
    drawn = Drawn(p, q, prompts=120, output_tokens=24, block_length=DEPTH)
    trace = in_distribution(drawn.tables(), 5)
    both = np.minimum(p, q)
    wanted = np.zeros(len(p))
    for _ in range(DEPTH):
        wanted = (both * (1.0 + wanted)).sum(axis=1)
    before = np.where(trace.position == 0, 1, np.roll(trace.tokens, 1))
    off = trace.drafters[NEAR].matched - wanted[before]
    mean, error = by_prompt(trace, off, trace.remaining >= DEPTH)
    assert abs(mean) < 4 * error
    assert error < 0.1
    assert np.ptp(wanted[:-1]) > 8 * error


def test_all_rules_meet_the_same_luck(independent):
    """What is accepted at a place of a text does not hang on the rule that offers it."""
    _, trace = independent
    verdicts: dict[int, set[bool]] = {}
    for length in (1, 2, 5):
        runs = run(trace, PAIR, Static(length), trace.offsets[:-1])
        for flat, submitted, accepted in zip(
            runs.flat[runs.active], runs.submitted[runs.active], runs.accepted[runs.active], strict=True
        ):
            for j in range(min(submitted, accepted + 1)):
                verdicts.setdefault(int(flat) + j, set()).add(bool(j < accepted))
    assert len(verdicts) > 2000
    assert all(len(found) == 1 for found in verdicts.values())
    assert {False, True} == set().union(*verdicts.values())


# Rules.


@dataclass(frozen=True)
class Watched:
    """Decides as ``of`` does, and notes whether what is drafted later could have changed it."""

    of: object
    noted: Counter
    sampling_safe: bool = True

    def begin(self, streams, batch, depth):
        return self.of.begin(streams, batch, depth)

    def decide(self, waiting, state):
        generator = np.random.default_rng(self.noted["decided"])
        told = self.of.decide(waiting, copy.deepcopy(state))
        submitted = np.minimum(np.minimum(told.drafted, told.submitted), waiting.limit)
        depth = waiting.confidence.shape[2]
        for place in range(depth - 1):
            later = (np.arange(depth) > place) & (waiting.confidence > 0)
            other = replace(
                waiting,
                confidence=np.where(
                    later, generator.choice([0.01, 0.5, 0.99], later.shape), waiting.confidence
                ),
                entropy=np.where(later, generator.choice([0.0, 3.0], later.shape), waiting.entropy),
            )
            instead = self.of.decide(other, copy.deepcopy(state))
            instead = np.minimum(np.minimum(instead.drafted, instead.submitted), waiting.limit)
            same = ((submitted > place) == (instead > place)) | ~waiting.running
            self.noted["decided"] += same.size
            self.noted["late"] += int((~same).sum())
        return self.of.decide(waiting, state)

    def observe(self, state, happened):
        return self.of.observe(state, happened)


@pytest.fixture(scope="module")
def ending():
    p, q = models(4, tokens=5, end=0.03, spread=0.1)
    drawn = Drawn(p, q, prompts=12, output_tokens=30, block_length=12)
    trace = in_distribution(drawn.tables(), 1)
    return trace, MeasuredCost(trace.latency, "float32", "made up", "SYNTHETIC")


@pytest.mark.parametrize("name", published(12))
def test_safe_rules_settle_each_token_by_those_before_it(ending, name):
    trace, cost = ending
    planner = as_planner(published(12)[name])
    noted = Counter()
    queues = trace.offsets[:-1].reshape(2, 2, 3)
    plan(trace, PAIR, cost, Watched(planner, noted), queues)
    assert noted["decided"] > 1000
    if planner.sampling_safe:
        assert noted["late"] == 0
    elif name in ("dspark", "d-cut", "libraspec-fast-dllm"):
        assert noted["late"] > 0  # the watch sees what it is there for


def test_others_are_refused_with_the_reason(ending):
    trace, cost = ending
    starts = trace.offsets[:-1]
    with pytest.raises(BadInput, match=r"rule LibraSpec\(.*after later ones were seen"):
        run(trace, PAIR, LibraSpec(), starts)
    for planner in (LongRun(), EachAlone(LibraSpec())):
        with pytest.raises(BadInput, match="cannot be used with rejection sampling"):
            plan(trace, PAIR, cost, planner, starts.reshape(1, 12, 1))
    with pytest.raises(BadInput, match="a drafter and the target"):
        run(trace, Chain(("ngram", NEAR, TARGET)), Static(2), starts)
    left = usable(trace, published(12))
    assert {"long-run-as-drafted", "svip", "vllm-goodput"} < set(left)
    assert not {"long-run", "libraspec", "dspark"} & set(left)


@dataclass(frozen=True)
class Both(LongRun):
    """Ours, beside ours that submits all it drafts: how many drafts the former takes back."""

    taken_back: list[int] = field(default_factory=list)

    def decide(self, waiting, state):
        all_of_them = LongRunAsDrafted().decide(waiting, copy.deepcopy(state))
        told = super().decide(waiting, state)
        np.testing.assert_array_equal(all_of_them.drafted, told.drafted)
        np.testing.assert_array_equal(all_of_them.submitted, told.drafted)
        self.taken_back.append(int((told.drafted - told.submitted).sum()))
        return told


def test_ours_for_sampling_takes_nothing_back():
    assert published(20)["long-run-as-drafted"] == LongRunAsDrafted()
    greedy = load_trace(Path("traces/smollm2-cpu"))
    both = Both()
    starts = greedy.offsets[:-1].reshape(1, 7, 8)
    plan(
        greedy,
        Chain(("skip-6", "target")),
        open_cost(greedy, "calibrate/h100-llama-3.1-8b.toml"),
        both,
        starts,
    )
    assert sum(both.taken_back) > 0
