"""What a rule is worth: weakened in one place, it lets a broken variant or a pinned case through.

Each line of a rule that decides something is replaced in turn; every claim that the rule decides must then
let something through. Otherwise that line decides nothing that anybody would miss.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from simspec.claims.base import Effort
from simspec.claims.chains import any_text, cascades, nesting, polybasic, sloped_cascades, third_level, walked
from simspec.claims.scheduling import adaptive, dynamic_program, hindsight, on_traces, own_ratio, texts
from tests.weakened import Weakening, missed

EFFORT = Effort(1, 0.3)


def _pays(name: str, new: str) -> Weakening:
    old = "if walked == said and wins == (free < most):"
    return Weakening(name, walked, old, new, "S43 S44 S45", (third_level, nesting))


S11, S11B, S41 = (
    "if not without.faster_than(with_it) and gains == should:",
    "if with_it.faster_than(without) == (grows > costs):",
    "if said == true.tokens and time == true.seconds:",
)
S12, S12B = (
    "if after.faster_than(before):\n        return None",
    "if after.faster_than(before) == (margin * found.spent < saved):",
)
S46 = "if inner >= bound and (pair_wins or not nesting_wins) and"
L17 = "if rates == {best} and iterated(case) == best:"
S10C = "if bound > true or (exact and bound < true):"
WEAKENED = [
    Weakening("strictness dropped", cascades, S11, "if not without.faster_than(with_it):", "S11"),
    Weakening("only strictness", cascades, S11, "if gains == should:", "S11"),
    Weakening(
        "gains nowhere too many", cascades, "and gains == should:", "and (gains or not should):", "S11"
    ),
    Weakening(
        "cost ignored where it gains",
        cascades,
        "gains = with_it.faster_than(without)",
        "gains = with_it.tokens > without.tokens",
        "S11",
    ),
    Weakening("always", sloped_cascades, S11B, "if True:", "S11b"),
    Weakening(
        "only necessary",
        sloped_cascades,
        S11B,
        "if not with_it.faster_than(without) or grows > costs:",
        "S11b",
    ),
    Weakening(
        "only sufficient", sloped_cascades, S11B, "if with_it.faster_than(without) or grows <= costs:", "S11b"
    ),
    Weakening("cost ignored", sloped_cascades, S41, "if said == true.tokens:", "S41"),
    Weakening("tokens ignored", sloped_cascades, S41, "if time == true.seconds:", "S41"),
    Weakening("one pass more allowed", any_text, "if more <= same:", "if more <= same + 1:", "S40"),
    _pays("no decision", "if walked == said:"),
    _pays("decision alone", "if wins == (free < most):"),
    _pays("tokens ignored", "if walked.seconds == said.seconds and wins == (free < most):"),
    _pays("seconds ignored", "if walked.tokens == said.tokens and wins == (free < most):"),
    _pays("only necessary", "if walked == said and (free < most or not wins):"),
    _pays("only sufficient", "if walked == said and (wins or free >= most):"),
    Weakening("inequality dropped", nesting, S46, "if (pair_wins or not nesting_wins) and", "S46"),
    Weakening("bound halved", nesting, "if inner >= bound and", "if inner >= bound / 2 and", "S46"),
    Weakening("nesting's win ignored", nesting, S46, "if inner >= bound and", "S46"),
    Weakening("always", polybasic, S12, "if True:\n        return None", "S12 S12c"),
    Weakening("always", polybasic, S12B, "if True:", "S12b"),
    Weakening(
        "only necessary",
        polybasic,
        S12B,
        "if not after.faster_than(before) or margin * found.spent < saved:",
        "S12b",
    ),
    Weakening(
        "only sufficient",
        polybasic,
        S12B,
        "if after.faster_than(before) or margin * found.spent >= saved:",
        "S12b",
    ),
    Weakening("always", polybasic, "if said == true:", "if True:", "S42"),
    Weakening("never too long", polybasic, "if said == true:", "if said <= true:", "S42"),
    Weakening("never too short", polybasic, "if said == true:", "if said >= true:", "S42"),
    Weakening(
        "bound doubled",
        adaptive,
        "share * renewal.excess(case.weights, case.tokens)",
        "2 * share * renewal.excess(case.weights, case.tokens)",
        "S47",
    ),
    Weakening(
        "bound doubled",
        adaptive,
        "share * renewal.spread(case.weights, survivals)",
        "2 * share * renewal.spread(case.weights, survivals)",
        "S48",
    ),
    Weakening("second bound not looked at", adaptive, "if bound > limit:", "if False:", "S49"),
    Weakening(
        "first bound not looked at",
        adaptive,
        "return _within(_of_lengths(case), bound, squared=True)",
        "return None",
        "S49",
    ),
    Weakening("always", texts, "if best(case)[0] <= bound:", "if True:", "S47b"),
    Weakening("bound doubled", texts, "if best(case)[0] <= bound:", "if best(case)[0] <= 2 * bound:", "S47b"),
    Weakening("any tie suffices", own_ratio, L17, "if best in rates and iterated(case) == best:", "L17"),
    Weakening("iteration not looked at", own_ratio, L17, "if rates == {best}:", "L17"),
    Weakening("iteration alone", own_ratio, L17, "if iterated(case) == best:", "L17"),
    Weakening("mixtures of one length", own_ratio, "for n in range(1, 5)", "for n in range(1, 2)", "L17b"),
    Weakening("never too slow", dynamic_program, "if said == least:", "if said <= least:", "S10b"),
    Weakening("never too fast", dynamic_program, "if said == least:", "if said >= least:", "S10b"),
    Weakening("always", hindsight, "if looked <= least:", "if True:", "S10"),
    Weakening("no bound", on_traces, S10C, "if exact and bound < true:", "S10c"),
    Weakening("attained nowhere", on_traces, S10C, "if bound > true:", "S10c"),
]


@pytest.mark.parametrize(
    "module",
    sorted({case.changed for case in WEAKENED}, key=lambda m: m.__name__),
    ids=lambda module: module.__name__,
)
def test_nothing_is_missed_otherwise(module: ModuleType) -> None:
    ids = {name for case in WEAKENED for name in case.ids.split()}
    claims = [claim for claim in getattr(module, "CLAIMS", ()) if claim.id in ids]
    assert [claim.id for claim in claims if missed(claim, EFFORT)] == []


@pytest.mark.parametrize("case", WEAKENED, ids=str)
def test_a_weakened_rule_is_missed(case: Weakening, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [claim.id for claim in case.claims(monkeypatch) if not missed(claim, EFFORT)] == []
