"""What a claim is, and how one statement is decided.

A statement ranges over cases. Its rule looks at one case and says that the case agrees, that it speaks
against the statement, or that the statement says nothing about it (its premise is not met). Nothing
else decides: a verdict follows from what the rule said about the cases that were tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

Verdict = Literal["holds", "refuted", "vacuous"]


@dataclass(frozen=True)
class Against:
    """A case speaks against the statement; ``working`` shows the sum, line by line."""

    working: tuple[str, ...]


@dataclass(frozen=True)
class Unmet:
    """The statement says nothing about this case."""


UNMET = Unmet()

# None: the case agrees.
Outcome = Against | Unmet | None
Rule = Callable[[Any], Outcome]


def against(*working: str) -> Against:
    """A counterexample, worked through."""
    return Against(working)


@dataclass(frozen=True)
class Plot:
    """A small figure as data; drawn by whoever makes pages.

    Attributes:
        kind: ``line`` (numbers along x) or ``bars`` (a group of bars for each x).
        x: places along the axis: numbers, or names for bars.
        series: name -> one value for each x.
    """

    title: str
    kind: Literal["line", "bars"]
    x_label: str
    y_label: str
    x: tuple[Any, ...]
    series: dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Statement:
    """Something that holds for every case of its domain, or does not.

    Attributes:
        words: the statement in words.
        rule: decides one case.
        over: the domain in words: what is enumerated, and what random cases are drawn from.
        domain: random cases; None where ``every`` is the whole domain.
        every: all cases of a finite domain, smallest first, given an effort 0, 1 or 2 (a larger effort
            may enumerate a larger domain).
        beyond: cases in which what the theory supposes fails. Where the statement holds for those just
            as well, it says nothing about the theory: it is vacuous.
        examples: random cases at the default budget.
        formula: the statement as a formula.
    """

    words: str
    rule: Rule
    over: str
    domain: SearchStrategy[Any] | None = None
    every: Callable[[int], Iterable[Any]] | None = None
    beyond: SearchStrategy[Any] | None = None
    examples: int = 300
    formula: str = ""

    def __post_init__(self) -> None:
        if self.domain is None and self.every is None:
            raise ValueError(f"no cases to decide {self.words!r} by")

    def but(self, words: str, rule: Rule, **changes: Any) -> Statement:
        """The same statement with another rule (and domain): a repaired or a broken variant."""
        return replace(self, words=words, rule=rule, **changes)


@dataclass(frozen=True)
class Claim:
    """A statement with what is expected of it and why.

    Attributes:
        id: as in the ledger, e.g. ``S5b``.
        source: paper, theorem or equation.
        expected: the verdict that the ledger should come to.
        because: the reason; a proof where there is one.
        exact: whether the rule decides in whole numbers and fractions; otherwise ``because`` or ``over``
            says with what tolerance or false-alarm budget.
        pinned: the smallest counterexample known, tried before all others.
        repaired: for a refuted claim, a statement near it that holds; for a vacuous one, one that says
            something (it holds, and is not vacuous).
        broken: variants that the rule must catch, so that a verdict "holds" means something.
        first_look: where an earlier quick check came to another verdict or other numbers, what was wrong.
        plot: a figure for the pinned counterexample.
    """

    id: str
    source: str
    statement: Statement
    expected: Verdict
    because: str
    exact: bool = True
    pinned: Any = None
    repaired: Statement | None = None
    broken: tuple[Statement, ...] = ()
    first_look: str = ""
    plot: Callable[[Any], Plot] | None = None

    def __post_init__(self) -> None:
        if self.expected != "holds" and self.repaired is None:
            raise ValueError(f"{self.id} is expected to be {self.expected} and has no repaired statement")
        if self.expected == "refuted" and self.pinned is None:
            raise ValueError(f"{self.id} is expected to be refuted and pins no counterexample")
        if self.expected == "holds" and not self.broken:
            raise ValueError(f"{self.id} is expected to hold and has no broken variant")


@dataclass(frozen=True)
class Effort:
    """How much to try.

    Attributes:
        level: 0, 1 or 2, for what is enumerated.
        scale: random cases, as a multiple of a statement's own number.
        seed: of the random cases.
    """

    level: int = 1
    scale: float = 1.0
    seed: int = 0

    def examples(self, statement: Statement) -> int:
        return max(10, round(statement.examples * self.scale))


@dataclass
class Decision:
    """What was tried of a statement, and what came of it.

    Attributes:
        cases: enumerated cases that were tried, or 1 for the pinned one.
        exhaustive: whether that was every case of the finite domain.
        examples: random cases tried, those of ``beyond`` included.
        unmet: cases of either kind that did not meet the statement's premise.
        counterexample: the case that speaks against it: the pinned one, else the first enumerated, else
            the random one after shrinking.
        found_by: ``pinned``, ``enumeration`` or ``search``.
    """

    verdict: Verdict = "holds"
    cases: int = 0
    exhaustive: bool = False
    examples: int = 0
    unmet: int = 0
    counterexample: Any = None
    working: tuple[str, ...] = ()
    found_by: str = ""
    seconds: float = 0.0


def decide(statement: Statement, effort: Effort, name: str = "", pinned: Any = None) -> Decision:
    """Try the pinned case, then every case of the finite domain, then random ones.

    Args:
        name: with the seed it fixes the random cases.
        pinned: a counterexample that is known already.
    """
    begun = time.perf_counter()
    found = Decision()
    hits: list[tuple[Any, Against]] = []
    met = 0

    def look(case: Any) -> bool:
        """Whether the case speaks against the statement."""
        nonlocal met
        outcome = statement.rule(case)
        met += not isinstance(outcome, Unmet)
        found.unmet += isinstance(outcome, Unmet)
        if isinstance(outcome, Against):
            hits.append((case, outcome))
        return isinstance(outcome, Against)

    if pinned is not None and look(pinned):
        found.found_by, found.cases = "pinned", 1
    elif statement.every is not None:
        for case in statement.every(effort.level):
            found.cases += 1
            if look(case):
                found.found_by = "enumeration"
                break
        else:
            found.exhaustive = True
    if not hits and statement.domain is not None:
        found.found_by = "search"
        found.examples += search(statement.domain, look, effort.examples(statement), f"{effort.seed}/{name}")
    if hits:
        found.verdict = "refuted"
        found.counterexample, found.working = hits[-1][0], hits[-1][1].working
    else:
        found.found_by = ""
        if not met or _says_nothing(statement, effort, name, found):
            found.verdict = "vacuous"
    found.seconds = time.perf_counter() - begun
    return found


def _says_nothing(statement: Statement, effort: Effort, name: str, found: Decision) -> bool:
    """Whether the statement holds where the theory's suppositions fail, too."""
    if statement.beyond is None:
        return False
    refuted = False

    def look(case: Any) -> bool:
        nonlocal refuted
        hit = isinstance(statement.rule(case), Against)
        refuted = refuted or hit
        return hit

    found.examples += search(
        statement.beyond, look, effort.examples(statement), f"{effort.seed}/{name}/beyond"
    )
    return not refuted


def search(domain: SearchStrategy[Any], look: Callable[[Any], bool], examples: int, name: str) -> int:
    """Draw cases until ``look`` is true of one, and shrink that; returns how many were drawn before it.

    The last case that ``look`` was true of is the smallest one. The same name gives the same cases.
    """
    drawn, caught = 0, False

    def condition(case: Any) -> bool:
        nonlocal drawn, caught
        drawn += not caught
        hit = look(case)
        caught = caught or hit
        return hit

    try:
        smallest = find(
            domain,
            condition,
            settings=settings(
                max_examples=examples,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                # Explaining which parts of a case matter takes longer than finding it, and is not shown.
                phases=(Phase.generate, Phase.shrink),
            ),
            random=Random(name),
        )
    except NoSuchExample:
        return drawn
    # Shrinking may have ended on a case that did not work; leave the smallest as the last one seen.
    look(smallest)
    return drawn
