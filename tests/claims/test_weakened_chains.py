"""What a rule is worth: weakened in one place, it lets a broken variant or a pinned case through.

Each line of a rule that decides something is replaced in turn; every claim that the rule decides must then
let something through. Otherwise that line decides nothing that anybody would miss.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

from simspec.claims.base import Against, Claim, Effort, decide
from simspec.claims.chains import any_text, cascades, nesting, polybasic, third_level, walked
from simspec.claims.scheduling import adaptive, dynamic_program, hindsight, kinds, on_traces, texts


@dataclass(frozen=True)
class Weakening:
    """A line of a module put in another's place, and the claims that must miss it.

    Attributes:
        ids: of those claims.
        elsewhere: the modules that have them, where the changed one does not.
    """

    name: str
    changed: ModuleType
    old: str
    new: str
    ids: tuple[str, ...]
    elsewhere: tuple[ModuleType, ...] = ()

    def __str__(self) -> str:
        return f"{'-'.join(self.ids)}: {self.name}"


def executed(module: ModuleType, source: str) -> ModuleType:
    copy = ModuleType(module.__name__)
    exec(compile(source, str(module.__file__), "exec"), copy.__dict__)
    return copy


def weakened(case: Weakening, monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    source = inspect.getsource(case.changed)
    assert source.count(case.old) == 1, f"{case.changed.__name__} has no such line any more: {case.old}"
    rooms = [executed(case.changed, source.replace(case.old, case.new))]
    monkeypatch.setitem(sys.modules, case.changed.__name__, rooms[0])
    rooms += [executed(module, inspect.getsource(module)) for module in case.elsewhere]
    return [claim for room in rooms for claim in getattr(room, "CLAIMS", ()) if claim.id in case.ids]


def _pays(name: str, new: str) -> Weakening:
    old = "if walked == said and wins == (free < most):"
    return Weakening(name, walked, old, new, ("S43", "S44", "S45"), (third_level, nesting))


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
    Weakening("strictness dropped", cascades, S11, "if not without.faster_than(with_it):", ("S11",)),
    Weakening("only strictness", cascades, S11, "if gains == should:", ("S11",)),
    Weakening(
        "gains nowhere too many", cascades, "and gains == should:", "and (gains or not should):", ("S11",)
    ),
    Weakening(
        "cost ignored where it gains",
        cascades,
        "gains = with_it.faster_than(without)",
        "gains = with_it.tokens > without.tokens",
        ("S11",),
    ),
    Weakening("always", cascades, S11B, "if True:", ("S11b",)),
    Weakening(
        "only necessary", cascades, S11B, "if not with_it.faster_than(without) or grows > costs:", ("S11b",)
    ),
    Weakening(
        "only sufficient", cascades, S11B, "if with_it.faster_than(without) or grows <= costs:", ("S11b",)
    ),
    Weakening("cost ignored", cascades, S41, "if said == true.tokens:", ("S41",)),
    Weakening("tokens ignored", cascades, S41, "if time == true.seconds:", ("S41",)),
    Weakening("one pass more allowed", any_text, "if more <= same:", "if more <= same + 1:", ("S40",)),
    _pays("no decision", "if walked == said:"),
    _pays("decision alone", "if wins == (free < most):"),
    _pays("tokens ignored", "if walked.seconds == said.seconds and wins == (free < most):"),
    _pays("seconds ignored", "if walked.tokens == said.tokens and wins == (free < most):"),
    _pays("only necessary", "if walked == said and (free < most or not wins):"),
    _pays("only sufficient", "if walked == said and (wins or free >= most):"),
    Weakening("inequality dropped", nesting, S46, "if (pair_wins or not nesting_wins) and", ("S46",)),
    Weakening("bound halved", nesting, "if inner >= bound and", "if inner >= bound / 2 and", ("S46",)),
    Weakening("nesting's win ignored", nesting, S46, "if inner >= bound and", ("S46",)),
    Weakening("always", polybasic, S12, "if True:\n        return None", ("S12", "S12c")),
    Weakening("always", polybasic, S12B, "if True:", ("S12b",)),
    Weakening(
        "only necessary",
        polybasic,
        S12B,
        "if not after.faster_than(before) or margin * found.spent < saved:",
        ("S12b",),
    ),
    Weakening(
        "only sufficient",
        polybasic,
        S12B,
        "if after.faster_than(before) or margin * found.spent >= saved:",
        ("S12b",),
    ),
    Weakening("always", polybasic, "if said == true:", "if True:", ("S42",)),
    Weakening("never too long", polybasic, "if said == true:", "if said <= true:", ("S42",)),
    Weakening("never too short", polybasic, "if said == true:", "if said >= true:", ("S42",)),
    Weakening(
        "bound doubled",
        adaptive,
        "share * renewal.excess(case.weights, case.tokens)",
        "2 * share * renewal.excess(case.weights, case.tokens)",
        ("S47",),
    ),
    Weakening(
        "bound doubled",
        adaptive,
        "share * renewal.spread(case.weights, survivals)",
        "2 * share * renewal.spread(case.weights, survivals)",
        ("S48",),
    ),
    Weakening("second bound not looked at", adaptive, "if bound > limit:", "if False:", ("S49",)),
    Weakening(
        "first bound not looked at",
        adaptive,
        "return _within(_of_lengths(case), bound, squared=True)",
        "return None",
        ("S49",),
    ),
    Weakening("always", texts, "if best(case)[0] <= bound:", "if True:", ("S47b",)),
    Weakening(
        "bound doubled", texts, "if best(case)[0] <= bound:", "if best(case)[0] <= 2 * bound:", ("S47b",)
    ),
    Weakening("any tie suffices", kinds, L17, "if best in rates and iterated(case) == best:", ("L17",)),
    Weakening("iteration not looked at", kinds, L17, "if rates == {best}:", ("L17",)),
    Weakening("iteration alone", kinds, L17, "if iterated(case) == best:", ("L17",)),
    Weakening("mixtures of one length", kinds, "for n in range(1, 5)", "for n in range(1, 2)", ("L17b",)),
    Weakening("never too slow", dynamic_program, "if said == least:", "if said <= least:", ("S10b",)),
    Weakening("never too fast", dynamic_program, "if said == least:", "if said >= least:", ("S10b",)),
    Weakening("always", hindsight, "if looked <= least:", "if True:", ("S10",)),
    Weakening("no bound", on_traces, S10C, "if exact and bound < true:", ("S10c",)),
    Weakening("attained nowhere", on_traces, S10C, "if bound > true:", ("S10c",)),
]


def missed(claim: Claim) -> bool:
    """Whether the pinned case no longer speaks against the claim, or a broken variant is not caught."""
    if claim.pinned is not None and not isinstance(claim.statement.rule(claim.pinned), Against):
        return True
    effort = Effort(1, 0.3)
    return any(decide(variant, effort, claim.id).verdict != "refuted" for variant in claim.broken)


@pytest.mark.parametrize(
    "module",
    sorted({case.changed for case in WEAKENED}, key=lambda m: m.__name__),
    ids=lambda module: module.__name__,
)
def test_nothing_is_missed_otherwise(module: ModuleType) -> None:
    ids = {name for case in WEAKENED for name in case.ids}
    claims = [claim for claim in getattr(module, "CLAIMS", ()) if claim.id in ids]
    assert [claim.id for claim in claims if missed(claim)] == []


@pytest.mark.parametrize("case", WEAKENED, ids=str)
def test_a_weakened_rule_is_missed(case: Weakening, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = weakened(case, monkeypatch)
    assert {claim.id for claim in claims} == set(case.ids)
    for claim in claims:
        assert missed(claim), claim.id
