"""A rule that is made blind to one thing is noticed: a broken variant of its claim goes uncaught.

Rules of the claims on the simulator are weakened in their source, one line each, and run again.
"""

from __future__ import annotations

from importlib import import_module

import pytest

from simspec.claims.base import Claim, Effort
from tests.weakened import Weakening, missed

QUICK = Effort(0, 1 / 12)
ALWAYS = "if True:"

# Module, claim, what is weakened: a line of the rule and what it becomes.
WEAKENINGS = [
    (
        "cache",
        "S9",
        "what a row holds is not looked at",
        "if sorted(cache.held(r)) != afresh(text):",
        "if False:",
    ),
    ("cache", "S9", "what is seen is not", "if sorted(seen[r][j]) != afresh(before):", "if False:"),
    ("cache", "S9", "first new tokens only", "for j in range(new):", "for j in range(min(new, 1)):"),
    ("cache", "S9", "last new tokens only", "for j in range(new):", "for j in range(max(new - 1, 0), new):"),
    (
        "cache",
        "S9",
        "first row only",
        "enumerate(t or [] for t in texts)",
        "enumerate(t or [] for t in texts[:1])",
    ),
    ("cache", "S9b", "may cut too little", "if slots - left != min", "if slots - left > min"),
    ("waste", "S9c", "packed waste unbounded", "if slots.slots - slots.needed > bound:", "if False:"),
    ("waste", "S9c", "a slot more", "slots.needed > bound:", "slots.needed > bound + 1:"),
    ("packing", "S9d", "slots unbounded", "if cache.slots.slots > bound:", "if False:"),
    ("packing", "S9d", "copies unbounded", "if packings and not", "if False and not"),
    ("packing", "S9d", "copies free of the floor", " + packings * case.floor < appended", " < appended"),
    (
        "packing",
        "S9d",
        "copies free of the slack",
        "not case.slack * copied + packings * case.floor",
        "not packings * case.floor",
    ),
    ("replay", "M2", "the total is not looked at", "if left:", "if False:"),
    ("replay", "M2", "only the total is", "if emitted != said:", "if False:"),
    (
        "plain_steps",
        "M4",
        "steps are not compared",
        "if steps_of(runs, q, *COLUMNS) != steps_of(bare, q, *COLUMNS):",
        "if False:",
    ),
    (
        "plain_steps",
        "M4",
        "seconds are not",
        "if Fraction(found.seconds[g]) != Fraction(wanted.seconds[g]) + extra:",
        "if False:",
    ),
    ("repeatable", "M5", "tables are not compared", "if differ:", "if False:"),
    ("repeatable", "M5", "counts are not", "if not runs[0] == runs[1] == runs[2]:", "if False:"),
    (
        "repeatable",
        "M5",
        "counts in other company are not",
        "if not runs[0] == runs[1] == runs[2]:",
        "if not runs[0] == runs[1]:",
    ),
    (
        "repeatable",
        "M5",
        "counts made again are not",
        "if not runs[0] == runs[1] == runs[2]:",
        "if not runs[0] == runs[2]:",
    ),
    ("repeatable", "M5", "seconds are not", "for s in took}) > 1:", "for s in took}) > 9:"),
    ("repeatable", "M5", "seconds in other company are not", "for s in took})", "for s in took[:2]})"),
    ("repeatable", "M5", "seconds in other order are not", "for s in took})", "for s in took[::2]})"),
    ("agreement", "M8", "the text is not compared", "if written != text:", "if False:"),
    ("agreement", "M8", "counts are not", "if found != right:", "if False:"),
    ("agreement", "M8", "first cycles only", "if found != right:", "if found[:1] != right[:1]:"),
    ("unseen", "M9", "first cycles only", "c = case.cycle % count", "c = 0"),
    (
        "unseen",
        "M9",
        "what is drafted only",
        'for name in ("drafted", "submitted"):',
        'for name in ("drafted",):',
    ),
    (
        "unseen",
        "M9",
        "what is submitted only",
        'for name in ("drafted", "submitted"):',
        'for name in ("submitted",):',
    ),
    ("unseen_chains", "M9b", "first cycles only", "c = case.cycle % len(before)", "c = 0"),
    ("unseen_chains", "M9b", "choices are not compared", "if was == now:", ALWAYS),
    ("means", "M10", "rates may rise", " and all(a >= b for a, b in pairwise(rates)):", ":"),
    ("means", "M10", "any mean will do", "if mean == 1 + sum(rates) and all", "if all"),
    ("means", "M22", "equal or near texts always agree", "if agrees(", "if apart is not None or agrees("),
    ("means", "M22", "always agrees", "if agrees(mean, pooled):", ALWAYS),
    ("speedup_bounds", "M10b", "twice the bound", "if speedup > most:", "if speedup > 2 * most:"),
    (
        "speedup_bounds",
        "M10b",
        "a tenth above the bound",
        "if speedup > most:",
        "if speedup > Fraction(11, 10) * most:",
    ),
    ("speedup_bounds", "M20", "twice the bound", "if speedup > most:", "if speedup > 2 * most:"),
    (
        "batch_bounds",
        "M21",
        "twice the bound",
        "if speedup > bound(counts):",
        "if speedup > 2 * bound(counts):",
    ),
    (
        "batch_bounds",
        "M21",
        "the greatest mean always agrees",
        "if speedup > bound(counts):",
        "if bound is not _greatest and speedup > bound(counts):",
    ),
]


def own(name: str, claim: str, line: str, becomes: str, monkeypatch: pytest.MonkeyPatch) -> Claim:
    """The claim in its module with one line changed."""
    known = import_module(f"simspec.claims.simulator.{name}")
    (found,) = Weakening("", known, line, becomes, claim).claims(monkeypatch)
    return found


@pytest.mark.parametrize(
    ("name", "claim", "line", "becomes"),
    [pytest.param(n, c, line, becomes, id=f"{c}: {why}") for n, c, why, line, becomes in WEAKENINGS],
)
def test_a_weakened_rule_is_noticed(
    name: str, claim: str, line: str, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missed(own(name, claim, line, becomes, monkeypatch), QUICK)


@pytest.mark.parametrize("claim", sorted({c for _, c, *_ in WEAKENINGS}))
def test_nothing_is_noticed_of_a_rule_as_it_is(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(n for n, c, *_ in WEAKENINGS if c == claim)
    assert not missed(own(name, claim, "CLAIMS = (", "CLAIMS = (", monkeypatch), QUICK)
