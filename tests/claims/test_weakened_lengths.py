"""What the rules on block lengths are worth: weakened in one place, each lets something through.

A line that decides is put in another's place; every claim that it decides must then leave a broken variant
uncaught, or its pinned case unrefuted. Otherwise nobody would miss the line.
"""

from __future__ import annotations

import pytest

from simspec.claims.base import Effort, decide
from simspec.claims.lengths import (
    adjustments,
    batch_drafter,
    batch_growth,
    best_length,
    conditions,
    endless,
    gains,
    iterating,
    marginal,
    measured_peak,
    moves,
    one_factor,
    peak,
    repaired_bounds,
    stopping,
    through_origin,
    ties,
    unbounded,
)
from simspec.theory import lengths as theory
from tests.weakened import Weakening, missed

QUICK = Effort(0, 0.1)


EXTENDS, CUTS = "if extends != (long > short):", "if cuts != (short > long):"
L1 = "L1 L1-printed"
EXTENSIONS = "if raises != (longer <= far):"
SHORTER = "if (some_raises and near >= d) or (near < d and not of.speedup(to) > of.speedup(d)):"
LAST = "if raises != (loose[one] < d) or raises != one_less:"
BY_MOVES = "L4 L4b L21 L27"
TARGETS = "for new in sorted(set(targets(eps))):"
FIRST = "if best[0] == 0 and (ties is None or shared == ties(block)):"
TURNS = "if falls and rises and best == best_lengths([-value for value in values]):"
TREADS = "if is_unimodal(ends) and (not best or not ends or max(ends) == max(rates)):"
CORNERS = "if is_unimodal(told) and (not best or max(told) == max(rates)):"
ENDS = "if ends == expected(case) and best == ends:"
RISES = "now[0] <= before[0] and now[1] <= before[1]"
FALLS = "now[0] >= before[0] and now[1] >= before[1]"
BY_TIES = (best_length, batch_drafter, batch_growth)
SURPLUS = "return _last(lambda d: surplus(d) >= 0 if ties else surplus(d) > 0, p, i + 1, cost, limit)"
BY_EPS = (conditions, repaired_bounds)


def _eps(name: str, new: str) -> Weakening:
    return Weakening(
        name, theory, SURPLUS, SURPLUS.replace("return ", "found = ") + f"\n    {new}", "L5", BY_EPS
    )


WEAKENED = [
    Weakening("extending: nothing", marginal, EXTENDS, "if False:", L1),
    Weakening("extending: not too often", marginal, EXTENDS, "if extends and not long > short:", L1),
    Weakening("extending: not too seldom", marginal, EXTENDS, "if not extends and long > short:", L1),
    Weakening("going back: nothing", marginal, CUTS, "if False:", L1),
    Weakening("going back: not too often", marginal, CUTS, "if cuts and not short > long:", L1),
    Weakening("going back: not too seldom", marginal, CUTS, "if not cuts and short > long:", "L1"),
    Weakening("falls: nothing", one_factor, TURNS, TURNS.replace("falls and ", ""), "L12"),
    Weakening("rises: nothing", one_factor, TURNS, TURNS.replace("rises and ", ""), "L12"),
    Weakening("ties allowed", one_factor, "all(a > b for", "all(a >= b for", "L12"),
    Weakening("any means do", marginal, "return None if fine else", "return None if True else", "L18"),
    Weakening("peak: nothing", peak, "if not is_unimodal(rates):", "if False:", "L2 L2c L2c-stairs"),
    Weakening("one best: nothing", peak, "if alone and len(best) > 1:", "if False:", "L2"),
    Weakening(
        "peak over treads: nothing", peak, TREADS, TREADS.replace("is_unimodal(ends)", "True"), "L2c-stairs"
    ),
    Weakening("none need be best", peak, TREADS, "if is_unimodal(ends):", "L2c-stairs"),
    Weakening("peak: nothing", measured_peak, CORNERS, CORNERS.replace("is_unimodal(told)", "True"), "L20"),
    Weakening("none need be best", measured_peak, CORNERS, "if is_unimodal(told):", "L20"),
    Weakening(
        "need not be best", through_origin, FIRST, FIRST.replace("best[0] == 0", "True"), "L2b L2b-bonus"
    ),
    Weakening("never alone: nothing", through_origin, FIRST, "if best[0] == 0:", "L2b L2b-bonus"),
    Weakening(
        "alone where said",
        through_origin,
        FIRST,
        "if best[0] == 0 and (ties is None or shared or not ties(block)):",
        "L2b L2b-bonus",
    ),
    Weakening(
        "shared where said",
        through_origin,
        FIRST,
        "if best[0] == 0 and (ties is None or not shared or ties(block)):",
        "L2b L2b-bonus",
    ),
    Weakening("condition 1 alone", moves, TARGETS, "for new in targets(eps)[:1]:", BY_MOVES, (adjustments,)),
    Weakening("condition d alone", moves, TARGETS, "for new in targets(eps)[-1:]:", BY_MOVES, (adjustments,)),
    Weakening("no moves", moves, TARGETS, "for new in ():", BY_MOVES, (adjustments,)),
    Weakening(
        "no cut to 0",
        moves,
        "or of.cost(new) == 0:",
        "or of.cost(new) == 0 or new == 0:",
        "L4b",
        (adjustments,),
    ),
    Weakening(
        "as fast will do",
        moves,
        "return of.speedup(new) > of.speedup(d)",
        "return of.speedup(new) >= of.speedup(d)",
        "L4b",
        (adjustments,),
    ),
    Weakening(
        "as fast will do",
        moves,
        "return of.speedup(new) < of.speedup(d)",
        "return of.speedup(new) <= of.speedup(d)",
        "L4 L21",
        (adjustments,),
    ),
    Weakening(
        "may raise",
        moves,
        "return of.speedup(new) <= of.speedup(d)",
        "return True",
        BY_MOVES.replace(" L4b", ""),
        (adjustments,),
    ),
    Weakening(
        "need not lower", moves, " and (lowers(of, d, new) or not alive(of, new))", "", "L4", (adjustments,)
    ),
    Weakening("extending: nothing", repaired_bounds, EXTENSIONS, "if False:", "L5"),
    Weakening(
        "extending: not too often", repaired_bounds, EXTENSIONS, "if longer <= far and not raises:", "L5"
    ),
    Weakening("extending: not too seldom", repaired_bounds, EXTENSIONS, "if raises and longer > far:", "L5"),
    Weakening("cutting: nothing", repaired_bounds, SHORTER, "if False:", "L5"),
    Weakening("cutting: not too seldom", repaired_bounds, SHORTER, "if some_raises and near >= d:", "L5"),
    Weakening(
        "cutting: not too often",
        repaired_bounds,
        SHORTER,
        "if near < d and not of.speedup(to) > of.speedup(d):",
        "L5",
    ),
    Weakening("any cut, not the one told", repaired_bounds, SHORTER, "if some_raises != (near < d):", "L5"),
    Weakening(
        "no cut to 0", repaired_bounds, "shorter = range(block.shortest, d)", "shorter = range(1, d)", "L5"
    ),
    Weakening(
        "one condition: extending",
        repaired_bounds,
        "if strict[one] > d and min(before) < strict[one]:",
        "if False:",
        "L22",
    ),
    Weakening("one condition: cutting", repaired_bounds, LAST, "if False:", "L22"),
    Weakening(
        "one condition: not too often", repaired_bounds, LAST, "if loose[one] < d and not raises:", "L22"
    ),
    Weakening(
        "one condition: not too seldom", repaired_bounds, LAST, "if raises and not loose[one] < d:", "L22"
    ),
    Weakening(
        "said of reach",
        gains,
        "tokens[longer] - tokens[i - 1], told(p, i, longer)\n                if said != true:",
        "tokens[longer] - tokens[i - 1], told(p, i, longer)\n                if False:",
        "L3",
    ),
    Weakening(
        "said of gain",
        gains,
        "tokens[longer] - tokens[i], told(p, i, longer)\n                if said != true:",
        "tokens[longer] - tokens[i], told(p, i, longer)\n                if False:",
        "L3-offset L3-printed",
    ),
    Weakening(
        "gain: not too much",
        gains,
        "tokens[longer] - tokens[i], told(p, i, longer)\n                if said != true:",
        "tokens[longer] - tokens[i], told(p, i, longer)\n                if said > true:",
        "L3-offset",
    ),
    Weakening("going round: nothing", iterating, "if not ends(d, frozenset()):", "if False:", "L6"),
    Weakening("end anywhere", iterating, "if not moves[d] and values[d] < max(values):", "if False:", "L6"),
    Weakening("end anywhere", unbounded, ENDS, "if ends == expected(case):", "L6-vanishing L6-limit"),
    Weakening("without end", unbounded, ENDS, "if best == ends:", "L6-vanishing L6-limit"),
    Weakening(
        "ends where said",
        unbounded,
        ENDS,
        "if (ends or not expected(case)) and best == ends:",
        "L6-limit",
    ),
    Weakening(
        "endless where said", unbounded, ENDS, "if (expected(case) or not ends) and best == ends:", "L6-limit"
    ),
    Weakening(
        "any length is best",
        endless,
        "if rate > self.limit:",
        "if rate > self.limit:\n            return True",
        "L6-vanishing L6-limit",
        (unbounded,),
    ),
    Weakening(
        "a twentieth less will do",
        stopping,
        "if every[stop] == max(every):",
        "if every[stop] >= max(every) * Fraction(19, 20):",
        "L13 L13-stairs L13-free",
    ),
    Weakening(
        "any length will do", stopping, "if every[stop] == max(every):", "if True:", "L13 L13-stairs L13-free"
    ),
    Weakening("longest of ties ignored", ties, RISES, "now[0] <= before[0]", "L23 L24 L26", BY_TIES),
    Weakening("shortest of ties ignored", ties, RISES, "now[1] <= before[1]", "L23 L24 L26", BY_TIES),
    Weakening("shortest against longest", ties, RISES, "now[0] <= before[1]", "L23 L24 L26", BY_TIES),
    Weakening("longest of ties ignored", ties, FALLS, "now[0] >= before[0]", "L24 L25 L26", BY_TIES),
    Weakening("shortest of ties ignored", ties, FALLS, "now[1] >= before[1]", "L24 L25 L26", BY_TIES),
    Weakening("longest against shortest", ties, FALLS, "now[1] >= before[0]", "L24 L25 L26", BY_TIES),
    Weakening(
        "added time: nothing", best_length, "if not never_falls(found, read_added):", "if False:", "L24"
    ),
    Weakening("batches: nothing", best_length, "if not never_rises(found, read_batch):", "if False:", "L24"),
    Weakening("better drafters: nothing", best_length, "if never_falls(found, read):", "if True:", "L25"),
    Weakening("batches: nothing", batch_growth, "if never_rises(found, read):", "if True:", "L23"),
    Weakening("falls: nothing", batch_drafter, "if falls and rises:", "if rises:", "L26"),
    Weakening("rises: nothing", batch_drafter, "if falls and rises:", "if falls:", "L26"),
]
# Of the library, not of a rule: the statement itself must then fail.
WRONG_BOUNDS = [
    _eps("nothing past D + 2", "return min(len(p) + 2, found)"),
    _eps("seven more past D + 2", "return found + 7 * (found > len(p) + 2)"),
]


def test_nothing_is_missed_otherwise() -> None:
    ids = {name for case in WEAKENED for name in case.ids.split()}
    modules = {module for case in WEAKENED for module in (case.changed, *case.then)}
    claims = {c.id: c for module in modules for c in getattr(module, "CLAIMS", ()) if c.id in ids}
    assert set(claims) == ids
    assert [name for name, claim in claims.items() if missed(claim, QUICK)] == []


@pytest.mark.parametrize("case", WEAKENED, ids=str)
def test_a_weakened_rule_is_missed(case: Weakening, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [claim.id for claim in case.claims(monkeypatch) if not missed(claim, QUICK)] == []


@pytest.mark.parametrize("case", WRONG_BOUNDS, ids=str)
def test_a_wrong_bound_is_noticed(case: Weakening, monkeypatch: pytest.MonkeyPatch) -> None:
    (claim,) = case.claims(monkeypatch)
    assert decide(claim.statement, QUICK, claim.id).verdict == "refuted"
