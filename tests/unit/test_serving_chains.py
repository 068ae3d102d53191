"""Chains with intermediates: what levels pay, whose luck they have, who is chosen, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.cost.shape import StepShape
from simspec.errors import BadInput
from simspec.serving.arrivals import OpenLoop
from simspec.serving.candidates import Candidate, Links, linked
from simspec.serving.chain_verdicts import LevelRates, RecordedChain
from simspec.serving.choosing import Routed
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Fixed, Goodput
from simspec.serving.pricing import Costs
from simspec.serving.request import Outcome, Request
from simspec.serving.row_policies import Joint
from simspec.serving.simulate import Records, simulate
from simspec.serving.verdicts import Blocks, Rates, Recorded
from tests.varied_chains import cost_of

# A forward of n tokens: 4 + n ns for the target, half of that for "middle", a quarter for "small".
COST = cost_of("ticks")
ONE = [(0, Request(0, 10, 8))]


def record(available: list[int], *, right: bool = True, replace: bool = False) -> RecordedChain:
    """One text: what can be drafted from each place, right or not. The middle agrees with all of it."""
    left = np.array(available)
    count = len(left)
    blocks = Blocks(np.zeros((count, 9), np.float32), left)
    drafts = Recorded(np.array([0, count]), left * right, left, blocks)
    never, owns = np.full(count, -1), np.full(count, right)
    return RecordedChain(drafts, (np.full(count, 9),), never, owns, replace)


def run(speculation: Speculation, *, drafter: str = "ngram", load=ONE, slots: int = 1, **more) -> Records:
    costs = Costs(COST, "target", drafter, lookup=drafter == "ngram")
    return simulate(Serving(costs, slots, speculation, **more), OpenLoop(load), 0)


def column(records: Records, name: str) -> list[int]:
    found: list[int] = records.steps[name].to_pylist()
    return found


# -- what idle levels pay --------------------------------------------------------------------------------


def test_a_level_that_was_idle_reads_what_it_has_missed():
    """A look-up finds one draft at every fourth place of its text, and it is wrong.

    The middle reads the prompt of 10: (4 + 10) / 2 = 7 ns. Then it is idle for so many steps as nothing is
    found, and reads a token for each of them, the last one's and the draft.
    """
    source = record([0, 0, 0, 1] * 4, right=False)
    spent = column(run(Speculation(Fixed(1), source, intermediates=("middle",))), "middle_ns")
    idle = 0
    assert spent[0] == 7
    for ns in spent[1:]:
        assert ns == (int((4 + idle + 2) / 2 + 0.5) if ns else 0)
        idle = 0 if ns else idle + 1
    assert spent.count(0) >= 5
    assert max(spent[2:]) == 5  # (4 + 3 + 2) / 2 = 4.5


class AtStep(Routed):
    """Another chain from the fourth step that decodes on; one token always."""

    steps = 0

    def choose(self, chains, using):
        AtStep.steps += 1
        return int(AtStep.steps > 3), 1


@pytest.mark.parametrize("semantics", ["truncate", "replace"])
def test_a_level_that_is_taken_up_reads_what_it_has_missed(semantics):
    """A prompt of 10 and its first token; nothing is right, a token a step.

    The pair drafts for three steps. Then the triple's middle has 14 tokens to read, and the draft:
    (4 + 15) / 2 = 9.5 ns, and from then on one and the draft: 3 ns. Last, the target's token alone is
    missing: who hands nothing up stays idle, who adds a token reads one.
    """
    AtStep.steps = 0
    source = record([1] * 30, right=False, replace=semantics == "replace")
    others = (Candidate("ngram", source, COST, True, ("middle",)),)
    policy = AtStep((1,), every=1)
    records = run(Speculation(policy, Rates((0.0,)), others=others), drafter="small")
    last = 0 if semantics == "truncate" else 3  # (4 + 1) / 2 = 2.5
    assert column(records, "middle_ns") == [0, 0, 0, 0, 10, 3, 3, last]
    assert column(records, "drafter") == [0, 0, 0, 0, 1, 1, 1, 1]
    # The small one has all 11 to read, see the tests of switching; a look-up costs nothing.
    assert column(records, "draft_ns") == [0, 5, 1, 1, 0, 0, 0, 0]


def test_where_rows_are_padded_a_newcomer_catches_up_alone():
    """Two rows decode when a prompt of 60 comes, in a batch that pays for its widest row.

    With the other rows, the middle's forward would be 3 rows of 62 tokens; it reads 60 in one of its own, at
    context 0, and then 3 rows of 2 tokens, at a context of 61. Prices are those of the table of ticks.
    """
    cost = cost_of("padded")
    pair, source = Rates.independent(0.0, 1), record([1] * 90, right=False)
    others = (Candidate("small", pair, cost),)
    costs = Costs(cost, "target", "ngram", lookup=True)
    speculation = Speculation(AtFirst((1,)), source, others=others, intermediates=("middle",))
    load = [(0, Request(0, 3, 40)), (0, Request(1, 3, 40)), (500, Request(2, 60, 5))]
    steps = simulate(Serving(costs, 3, speculation), OpenLoop(load), 0).steps.to_pandas()
    with_newcomer = steps[steps["decoding_requests"] == 3].iloc[0]

    def ns(*shape: int) -> int:
        return int(cost.forward_seconds("middle", StepShape(*(np.array([n]) for n in shape)))[0] * 1e9 + 0.5)

    apart = ns(1, 60, 60, 0, 0) + ns(3, 2, 6, 61, 61)
    assert with_newcomer["middle_ns"] == apart < ns(3, 62, 66, 61, 61)


class AtFirst(Routed):
    """Always the first chain."""

    def choose(self, chains, using):
        return 0, 1


def test_a_model_in_two_chains_has_one_cache():
    """The pair's drafter is the triple's intermediate: it has read all but its last token."""
    AtStep.steps = 0
    others = (Candidate("ngram", record([1] * 30, right=False), COST, True, ("small",)),)
    records = run(Speculation(AtStep((1,), every=1), Rates((0.0,)), others=others), drafter="small")
    # (4 + 2) / 4 = 1.5
    assert column(records, "middle_ns") == [0, 0, 0, 0, 2, 2, 2, 0]


def test_models_are_numbered_by_name_and_by_what_prices_them():
    levels = LevelRates((0.5, 0.5), 2)
    triple = Candidate("ngram", levels, COST, True, ("small",))
    pair = Candidate("small", Rates((0.5,)), COST)
    elsewhere = Candidate("small", Rates((0.5,)), cost_of("device"))
    assert linked([triple, pair, elsewhere], COST) == (Links(0, (1,)), Links(1), Links(2))
    assert linked([pair, pair], COST) == (Links(0), Links(1))


def test_who_adds_a_token_adds_none_where_there_is_no_place_for_it():
    """After a draft that ended the text, at the end of the recorded text, and at the end of the answer.

    The drafter's block of 2 ends the text at the first place; the middle agrees with 2 tokens everywhere.
    """
    left = np.array([2, 2, 2, 2, 1, 0])
    drafts = Recorded(np.array([0, 6]), left, left)
    source = RecordedChain(drafts, (np.full(6, 2),), np.array([2, -1, -1, -1, -1, -1]), left > 9, True)
    texts = source.open(6, 0)
    texts.place[:] = texts.padded
    room = np.array([9, 9, 2, 9, 9, 9])
    found = texts.handed(left, room)
    assert found.given[0].tolist() == found.passed[0].tolist() == [2, 2, 2, 2, 1, 0]
    # At the third the answer is full, at the fourth and after it the text.
    assert found.given[1].tolist() == [2, 3, 2, 2, 1, 0]
    fewer = texts.handed(np.ones(6, int) * (left > 0), room)
    assert fewer.given[1].tolist() == [2, 2, 2, 2, 1, 0]
    # Nothing of what it adds is the text's own here.
    assert texts.settled(*found).tolist() == [2, 2, 2, 2, 1, 0]


# -- luck ------------------------------------------------------------------------------------------------

LOAD = [(i * 40, Request(i, 5, 30)) for i in range(30)]


def test_a_level_that_agrees_with_all_changes_nothing_but_time():
    """Made-up rates: the chain has its drafter's own luck where everybody above agrees."""
    pair = run(Speculation(Fixed(3), Rates.independent(0.6, 3)), load=LOAD, slots=4)
    chain = Speculation(Fixed(3), LevelRates((0.6, 1.0), 3), intermediates=("middle",))
    under = run(chain, load=LOAD, slots=4)
    passes = pair.requests["passes"].to_pylist()
    assert sorted(under.requests["passes"].to_pylist()) == sorted(passes)
    likes_all = Speculation(Fixed(3), LevelRates((1.0, 0.6), 3), intermediates=("middle",))
    assert sum(column(run(likes_all, load=LOAD, slots=4), "submitted_tokens")) == sum(
        column(run(likes_all, load=LOAD, slots=4), "drafted_tokens")
    )


def test_what_is_handed_up_has_the_length_that_its_rates_say():
    """Two levels of .7 and .8: drafts of 2 are handed up as 0, 1, 2 with .3, .7 x .3, .49."""
    chain = Speculation(Fixed(2), LevelRates((0.7, 0.8), 2), intermediates=("middle",))
    records = run(chain, load=[(0, Request(i, 3, 200)) for i in range(50)], slots=1)
    steps = records.steps.to_pandas()
    steps = steps[steps["drafted_tokens"] == 2]
    handed, taken = steps["submitted_tokens"], steps["accepted_tokens"]
    n = len(steps)
    assert n > 3000
    for length, chance in enumerate((0.3, 0.21, 0.49)):
        assert abs((handed == length).mean() - chance) < 4 * (chance * (1 - chance) / n) ** 0.5
    both = (taken == 2).sum() / (handed == 2).sum()
    assert abs(both - 0.64) < 4 * (0.64 * 0.36 / (handed == 2).sum()) ** 0.5


# -- memory ----------------------------------------------------------------------------------------------


def test_every_cache_that_is_limited_is_charged():
    """A request of 10 + 8 tokens and room for one draft fits 19 blocks of 1 token, in every pool."""
    chain = Speculation(Fixed(1), record([1] * 30), intermediates=("middle",))
    for blocks, outcome in ((19, Outcome.FINISHED), (18, Outcome.REJECTED)):
        memory = Memory(1, None, None, middle_blocks=(("middle", blocks),))
        assert run(chain, memory=memory).outcomes[outcome] == 1
    # Who adds a token needs room for it.
    adds = Speculation(Fixed(1), record([1] * 30, replace=True), intermediates=("middle",))
    for blocks, outcome in ((20, Outcome.FINISHED), (19, Outcome.REJECTED)):
        assert run(adds, memory=Memory(1, blocks)).outcomes[outcome] == 1


def test_a_small_cache_of_an_intermediate_costs_rows_their_place():
    chain = Speculation(Fixed(1), record([1] * 30), intermediates=("middle",))
    two = [(0, Request(0, 4, 12)), (0, Request(1, 4, 12))]
    for blocks, preempted in ((40, 0), (26, 1)):
        memory = Memory(1, 100, None, middle_blocks=(("middle", blocks),))
        records = run(chain, load=two, slots=2, memory=memory)
        assert sum(column(records, "preempted_requests")) == preempted
        assert column(records, "drafter_blocks") == [0] * records.steps.num_rows


# -- refusals ---------------------------------------------------------------------------------------------

PAIR, LEVELS = Rates((0.5,)), LevelRates((0.5, 0.5), 3)


def deep(middle: str, **more: Memory) -> Records:
    """Served by a chain with that intermediate."""
    return run(Speculation(Fixed(2), LEVELS, intermediates=(middle,)), **more)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LevelRates((0.5,), 3), "at least 2"),
        (lambda: LevelRates((0.5, 1.5), 3), "rate 1.5"),
        (lambda: LevelRates((0.5, 0.5, 0.5), 3, replace=True), "funnel-replace with 2 intermediates"),
        (lambda: Candidate("ngram", LEVELS, COST), "0 intermediates and verdicts on 1"),
        (lambda: Candidate("ngram", PAIR, COST, True, ("middle",)), "1 intermediates and verdicts on 0"),
        (lambda: Candidate("small", LEVELS, COST, False, ("small",)), "each model once"),
        (lambda: Speculation(Goodput(3), LEVELS, intermediates=("middle",)), "Goodput weighs what a pair"),
        (lambda: Speculation(Joint(2), record([2]), intermediates=("middle",)), "Joint weighs what a pair"),
        (lambda: deep("midle"), "did you mean 'middle'"),
        (lambda: deep("target"), "unknown intermediate 'target'"),
        (lambda: deep("middle", memory=Memory(middle_blocks=(("m", 2),))), "unknown intermediate 'm'"),
        (lambda: Memory(middle_blocks=(("m", 0),)), "middle_blocks of 'm' is 0"),
        (lambda: Memory(middle_blocks=(("m", 2), ("m", 2))), "each intermediate once"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
