"""All claims, decided: the ledger."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed

from simspec.claims.all_claims import CLAIMS
from simspec.claims.base import Claim, Decision, Effort, decide
from simspec.claims.plain import plain
from simspec.errors import BadInput, unknown_name
from simspec.provenance import versions

# What the budgets' names mean: seconds on two cores at the default budget of a minute.
DEFAULT_SECONDS = 60.0


@dataclass(frozen=True)
class Entry:
    """A claim and what was found: of its statement, of the repaired one, and of each broken one."""

    claim: Claim
    found: Decision
    repaired: Decision | None
    broken: tuple[Decision, ...]

    @property
    def seconds(self) -> float:
        """Of the statement, the repaired one and the broken ones together."""
        every = [self.found, *self.broken] + ([self.repaired] if self.repaired is not None else [])
        return sum(one.seconds for one in every)

    @property
    def complaints(self) -> tuple[str, ...]:
        """Why this entry is not as the claim says; empty when it is."""
        said = []
        if self.found.verdict != self.claim.expected:
            said.append(f"expected {self.claim.expected}, found {self.found.verdict}")
        if self.repaired is not None and self.repaired.verdict != "holds":
            said.append(f"the repaired statement: {self.repaired.verdict}")
        missed = [
            statement.words
            for statement, found in zip(self.claim.broken, self.broken, strict=True)
            if found.verdict != "refuted"
        ]
        said += [f"not caught: {words}" for words in missed]
        return tuple(said)

    def as_json(self) -> dict[str, Any]:
        claim, found = self.claim, self.found
        figure = None
        if claim.plot is not None and found.counterexample is not None:
            figure = plain(claim.plot(found.counterexample))
        return {
            "id": claim.id,
            "verdict": found.verdict,
            "examples": found.examples,
            "exhaustive": found.exhaustive,
            "exact": claim.exact,
            "counterexample": plain(found.counterexample),
            "seconds": round(found.seconds, 4),
            "cases": found.cases,
            "unmet": found.unmet,
            "expected": claim.expected,
            "as_expected": not self.complaints,
            "complaints": list(self.complaints),
            "words": claim.statement.words,
            "formula": claim.statement.formula,
            "source": claim.source,
            "over": claim.statement.over,
            "because": claim.because,
            "first_look": claim.first_look,
            "working": list(found.working),
            "found_by": found.found_by,
            "figure": figure,
            "repaired": None
            if claim.repaired is None or self.repaired is None
            else {
                "words": claim.repaired.words,
                "formula": claim.repaired.formula,
                "over": claim.repaired.over,
                "verdict": self.repaired.verdict,
                "examples": self.repaired.examples,
                "cases": self.repaired.cases,
                "unmet": self.repaired.unmet,
                "exhaustive": self.repaired.exhaustive,
                "counterexample": plain(self.repaired.counterexample),
                "seconds": round(self.repaired.seconds, 4),
            },
            "broken": [
                {
                    "words": statement.words,
                    "caught": mutant.verdict == "refuted",
                    "counterexample": plain(mutant.counterexample),
                    "working": list(mutant.working),
                    "seconds": round(mutant.seconds, 4),
                }
                for statement, mutant in zip(claim.broken, self.broken, strict=True)
            ],
        }


Decided = tuple[Decision, Decision | None, tuple[Decision, ...]]


def entry(claim: Claim, effort: Effort, use_pinned: bool = True) -> Entry:
    """Decide a claim, its repaired statement and its broken variants."""
    return Entry(claim, *_decided(claim, effort, use_pinned))


def _decided(claim: Claim, effort: Effort, use_pinned: bool) -> Decided:
    found = decide(claim.statement, effort, claim.id, claim.pinned if use_pinned else None)
    repaired = None
    if claim.repaired is not None:
        repaired = decide(claim.repaired, effort, f"{claim.id} repaired")
    broken = tuple(decide(mutant, effort, f"{claim.id} broken {i}") for i, mutant in enumerate(claim.broken))
    return found, repaired, broken


def _decided_by_id(name: str, effort: Effort, use_pinned: bool) -> tuple[str, Decided]:
    """For other processes: claims hold functions and do not travel, their ids and decisions do."""
    (claim,) = chosen([name])
    return name, _decided(claim, effort, use_pinned)


def chosen(ids: Sequence[str], claims: Sequence[Claim] = CLAIMS) -> tuple[Claim, ...]:
    """The claims of these ids, in the ledger's order; all of them for none. Raises :class:`BadInput`."""
    known = {claim.id: claim for claim in claims}
    for name in ids:
        if name not in known:
            raise unknown_name("claim", name, known)
    return tuple(claim for claim in claims if not ids or claim.id in ids)


def effort_of(budget: str, seed: int) -> Effort:
    """An effort from a budget such as ``5s``, ``1m`` or ``1h``; :class:`BadInput` otherwise.

    A budget is turned into numbers of examples and sizes of enumerations, never into a clock: the same
    budget and seed try the same cases on every machine. On two cores of 2026 it is about the time taken.
    """
    matched = re.fullmatch(r"(\d{1,6})(s|m|h)", budget)
    if matched is None or int(matched[1]) == 0:
        raise BadInput(f"--budget {budget!r}", allowed="seconds, minutes or hours, such as 5s, 1m or 1h")
    if seed < 0:
        raise BadInput(f"--seed {seed}", allowed="0 or more")
    seconds = int(matched[1]) * {"s": 1, "m": 60, "h": 3600}[matched[2]]
    level = 0 if seconds < 30 else 1 if seconds < 600 else 2
    return Effort(level, seconds / DEFAULT_SECONDS, seed)


def check(
    claims: Sequence[Claim], effort: Effort, jobs: int, say: Callable[[str], None], use_pinned: bool = True
) -> list[Entry]:
    """Decide claims in ``jobs`` processes; the result does not depend on how many. ``say`` hears each."""
    found: dict[str, Entry] = {}
    by_id = {claim.id: claim for claim in claims}
    decided: Iterable[tuple[str, Decided]]
    if jobs == 1:
        decided = ((claim.id, _decided(claim, effort, use_pinned)) for claim in claims)
    else:
        decided = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_decided_by_id)(claim.id, effort, use_pinned) for claim in claims
        )
    for name, parts in decided:
        found[name] = Entry(by_id[name], *parts)
        say(f"{name}: {parts[0].verdict} ({len(found)} of {len(claims)})")
    return [found[claim.id] for claim in claims]


def document(entries: Sequence[Entry], budget: str, seed: int) -> dict[str, Any]:
    """The ledger as JSON: what was asked, what it ran on, and every entry."""
    mutants = [one for e in entries for one in e.broken]
    return {
        "format": "simspec ledger 1",
        "budget": budget,
        "seed": seed,
        "versions": versions(("hypothesis", "numpy")),
        "as_expected": not any(e.complaints for e in entries),
        "mutants": {"total": len(mutants), "caught": sum(m.verdict == "refuted" for m in mutants)},
        "claims": [e.as_json() for e in entries],
    }
