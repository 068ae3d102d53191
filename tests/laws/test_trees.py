"""Drafted trees: brute force on small ones, and what a rule may have seen when it chose."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simspec.replay.trajectories import run
from simspec.replay.trees import offered, replay_trees, settle
from simspec.speculation.calibrating import KNOTS
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LibraSpec, Static, View
from simspec.speculation.tree_sizes import Foresight, calibrated, cost_aware, fixed, libraspec
from simspec.speculation.trees import best_first, by_place
from simspec.strategies.traces import synthetic_traces
from tests.profiles import examples
from tests.toy import MIDDLE, SMALL, TARGET

DEPTH, NODES = 3, 5
# Two most probable tokens of a place; sums of products of these are exact.
PLACE = st.sampled_from([(0.5, 0.25), (0.75, 0.125), (0.5, 0.5), (0.25, 0.25), (1.0, 0.0), (0.125, 0.0625)])
BLOCKS = st.lists(PLACE, min_size=1, max_size=DEPTH).map(np.array)
CONFIDENCE = st.floats(0.01, 1.0)


def every_node(chance, spine):
    """Paths of ranks."""
    depth, width = chance.shape
    paths = [p for d in range(1, depth + 1) for p in product(range(width), repeat=d)]
    return [p for p in paths if not spine or not any(p[:-1])]


def trees(chance, spine, nodes):
    """Every set of so many nodes that has each one's parent."""
    for some in combinations(every_node(chance, spine), nodes):
        if all(len(p) == 1 or p[:-1] in some for p in some):
            yield some


def expected(chance, tree):
    """Expected accepted tokens, by going through all that a text may hold at each place."""
    depth, width = chance.shape
    total = 0.0
    for text in product(range(width + 1), repeat=depth):  # the last is another token
        odds = [*chance.T, 1.0 - chance.sum(axis=1)]
        weight = np.prod([odds[r][j] for j, r in enumerate(text)])
        total += weight * max([0, *(len(p) for p in tree if p == text[: len(p)])])
    return total


def paths_of(order, row=0):
    """Each node as its path of ranks."""
    found = []
    for i in range(int(order.most()[row])):
        above = order.parent[row, i]
        assert above < i, "a child before its parent"
        found.append((*(found[above] if above >= 0 else ()), int(order.rank[row, i])))
        assert len(found[-1]) == order.place[row, i]
    return found


@given(BLOCKS, st.booleans())
@examples(2)
def test_best_first_is_the_best_tree_of_every_size(chance, spine):
    order = best_first(chance[None], NODES, spine=spine)
    paths = paths_of(order)
    assert len(set(paths)) == len(paths)
    for n in range(1, len(paths) + 1):
        best = max(expected(chance, t) for t in trees(chance, spine, n))
        assert order.gains()[0, n] == expected(chance, paths[:n]) == best
    # Fewer nodes than asked for only where no token of any probability is left.
    assert len(paths) == NODES or len(paths) == sum(
        np.prod([chance[j, r] for j, r in enumerate(p)]) > 0 for p in every_node(chance, spine)
    )


@given(BLOCKS)
def test_a_wider_family_is_worth_as_much_at_every_size(chance):
    chain = best_first(chance[None, :, :1], NODES, spine=True).gains()
    spine = best_first(chance[None], NODES, spine=True).gains()
    products = best_first(chance[None], NODES, spine=False).gains()
    assert (chain <= spine).all()
    assert (spine <= products).all()


@given(BLOCKS)
def test_a_fixed_shape_takes_places_in_turn(chance):
    assume((chance > 0).all())
    order = by_place(chance[None], NODES, 2)
    wanted = [(0,) * (i // 2) + (i % 2,) for i in range(min(NODES, 2 * len(chance)))]
    assert paths_of(order) == wanted
    for n in range(1, len(wanted) + 1):
        assert order.gains()[0, n] == expected(chance, wanted[:n])
        assert order.places[0, n] == (n + 1) // 2


@given(BLOCKS, st.booleans(), st.lists(st.integers(0, 3), min_size=DEPTH, max_size=DEPTH))
def test_accepted_is_the_longest_path_that_the_text_goes_down(chance, spine, text):
    order = best_first(chance[None], NODES, spine=spine)
    paths = paths_of(order)
    found = order.accepted(np.array([text]))[0]
    for n in range(NODES + 1):
        assert found[n] == max([0, *(len(p) for p in paths[:n] if list(p) == text[: len(p)])])


@given(st.lists(PLACE, min_size=4, max_size=4).map(np.array), BLOCKS, st.integers(1, NODES))
def test_places_that_are_not_drafted_do_not_move_a_tree(chance, other, nodes):
    order = best_first(chance[None], nodes, spine=True)
    drafted = int(min(order.places[0, nodes], 4))
    changed = chance.copy()
    changed[drafted:] = np.resize(other, (4, 2))[drafted:]
    assert paths_of(best_first(changed[None], nodes, spine=True)) == paths_of(order)
    assert drafted >= order.place[0].max()


@given(st.lists(CONFIDENCE, min_size=1, max_size=12), st.sampled_from([1, 4]), st.floats(0.5, 5.0))
def test_libraspec_on_a_chain_is_algorithm_one(confidence, block, alpha):
    q = np.array([confidence])
    limit = np.array([len(confidence)])
    rule = LibraSpec(alpha=alpha, block=block, longest=8)
    found = rule.decide(View(q, limit, np.ones((1, 1))), np.zeros(1))
    # A ratio of products is the factor only to the last bit, which the floor may see.
    order = best_first(q[..., None], 12, spine=True)
    before = np.concatenate([[1.0], order.value[0, :-1]])
    again = np.divide(order.value[0], before, out=np.zeros(12), where=before > 0)[None]
    assume((rule.decide(View(again, limit, np.ones((1, 1))), np.zeros(1)).submitted == found.submitted).all())
    picked = libraspec(order, rule)
    drafted = np.minimum(found.drafted, limit)
    assert picked.nodes == np.minimum(found.submitted, drafted)
    assert picked.places == drafted


def test_libraspec_on_a_tree_sums_the_values_of_nodes():
    """Two places of two tokens: values .6, .36, .3, .18; from i = 1 the sum is over nodes, not places."""
    chance = np.array([[[0.6, 0.3], [0.6, 0.3]]])
    order = best_first(chance, 4, spine=True)
    assert order.value[0].tolist() == pytest.approx([0.6, 0.36, 0.3, 0.18])
    # d = 4: floor(2 * (.6 + .36 + .3 + .18) + 1) = 3 at i = 1, more at none; a chain has .96 and gets 2.
    assert libraspec(order, LibraSpec(alpha=2.0, block=4, longest=5)).nodes == 3
    chain = best_first(chance[..., :1], 4, spine=True)
    assert libraspec(chain, LibraSpec(alpha=2.0, block=2, longest=5)).nodes == 2


PLAIN = KNOTS.copy()


@given(
    BLOCKS,
    st.floats(0.01, 3.0),
    st.lists(st.integers(0, 4), min_size=NODES, max_size=NODES),
    st.booleans(),
)
@examples(4)
def test_of_what_is_drafted_no_other_tree_is_worth_more(chance, rate, stairs, spine):
    """Costs that rise in any stairs; all places come from one forward that costs nothing."""
    depth = len(chance)
    verify = (1.0 + np.cumsum([0, *stairs]))[None] / 16.0
    known = Foresight(rate, 1.0, np.ones(len(KNOTS)), PLAIN)
    picked = cost_aware(
        chance[None],
        lambda c: best_first(c, NODES, spine=spine),
        depth,
        np.array([depth]),
        np.zeros((1, depth + 1)),
        verify,
        known,
    )
    n = int(picked.nodes[0])
    net = picked.order.gains()[0, n] - rate * verify[0, n]
    most = min(NODES, len(every_node(chance, spine)))
    best = [
        expected(chance, t) - rate * verify[0, k] for k in range(1, most + 1) for t in trees(chance, spine, k)
    ]
    if picked.places[0]:
        assert net == pytest.approx(max([-rate * verify[0, 0], *best]))
    else:  # told that every token is accepted, it did not think that drafting may pay
        sure = [min(k, depth) - rate * (verify[0, k] - verify[0, 0]) for k in range(1, min(depth, NODES) + 1)]
        assert max(sure) <= 0.0


@given(
    st.lists(PLACE, min_size=4, max_size=4).map(np.array),
    BLOCKS,
    st.floats(0.01, 3.0),
    st.floats(0.0, 1.0),
    st.integers(1, 2),
)
def test_the_cost_aware_rule_has_not_seen_what_it_did_not_draft(chance, other, rate, follow, at_once):
    known = Foresight(rate, 0.9, np.full(len(KNOTS), follow), PLAIN)
    draft, verify = np.arange(5.0)[None] / 8.0, 1.0 + np.arange(NODES + 1.0)[None] / 16.0

    def pick(told):
        def shape(c):
            return best_first(c, NODES, spine=True)

        return cost_aware(told[None], shape, at_once, np.array([4]), draft, verify, known)

    first = pick(chance)
    drafted = int(first.places[0])
    changed = chance.copy()
    changed[drafted:] = np.resize(other, (4, 2))[drafted:]
    again = pick(changed)
    assert (again.places, again.nodes) == (first.places, first.nodes)
    assert paths_of(again.order) == paths_of(first.order)
    assert first.order.place.max(initial=0) <= drafted


def test_what_calibration_takes_from_the_block_the_others_get():
    told = np.clip(KNOTS - 0.2, 0.0, 1.0)
    found = calibrated(np.array([[[0.6, 0.3, 0.05]]]), told)[0, 0]
    assert found.tolist() == pytest.approx(
        [0.4, 0.4, 0.075]
    )  # .3 * .6 / .4 is .45, but none passes the block
    assert calibrated(np.array([[[0.6, 0.3]]]), KNOTS)[0, 0].tolist() == pytest.approx([0.6, 0.3])


@given(synthetic_traces(prompts=3), st.integers(0, 6), st.sampled_from([SMALL, MIDDLE]))
def test_a_tree_of_single_tokens_is_a_chain(made, nodes, drafter):
    trace = made.trace()
    offer = offered(trace, drafter)
    order = best_first(offer.chance[..., :1], 8, spine=True)
    trees_ = settle(offer, fixed(order, nodes))
    start = np.concatenate([trace.offsets[:-1], trace.offsets[:-1] + 1])
    start = start[start < len(trace.tokens)]
    mine = replay_trees(trace, offer, trees_, start)
    theirs = run(trace, Chain((drafter, TARGET)), Static(nodes), start)
    for name in ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
