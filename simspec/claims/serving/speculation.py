"""Speculation under load: what no drafts cost, what sure ones give, what tokens per pass are (M4, M10).

A pass is a forward of the target over one row that decodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.serving.accounting import OVER
from simspec.claims.serving.laws import Row, lived
from simspec.serving.policies import Fixed
from simspec.strategies.serving import (
    all_scenarios,
    draftings,
    scarce_memory,
    scenarios,
)
from simspec.strategies.small_engines import Drafting, Scenario, Setup, Survival, serve

# M4d


def _with(scenario: Scenario, drafting: Drafting | None, lookup: bool = True) -> Scenario:
    """The same requests, all at once so that time changes no decision, to an engine that drafts like this."""
    engine = replace(
        scenario.setup,
        drafting=drafting,
        lookup=lookup,
        drafter_prices=None,
        patience_ns=None,
        memory=replace(scenario.setup.memory, drafter_blocks=None),
    )
    at_once = (0,) * len(scenario.sizes)
    return replace(scenario, engine=engine, instants=at_once, clients=0, think_ns=0, until=None)


def _costs_what_is_said(lookup: bool = True, charged: bool = True) -> Rule:
    """Drafts of length 0 change nothing but the stated time of each step that decodes."""

    def rule(scenario: Scenario) -> Outcome:
        bare, nothing = _with(scenario, None), _with(scenario, Drafting(Fixed(0), Survival(())), lookup)
        plain, off = lived(bare), lived(nothing)
        idle = nothing.setup.idle_ns if charged else 0
        later = 0
        if len(plain.steps) != len(off.steps):
            return against(str(nothing), f"{len(off.steps)} steps, plainly {len(plain.steps)}")
        for step, (a, b) in enumerate(zip(plain.steps, off.steps, strict=True)):
            more = idle if a["decoding_requests"] else 0
            moved = {"started_at_ns": a["started_at_ns"] + later, "overhead_ns": a["overhead_ns"] + more}
            if a | moved != b:
                differ = {name: (b[name], value) for name, value in (a | moved).items() if b[name] != value}
                return against(
                    str(nothing),
                    f"step {step} (found, plainly and {idle} ns for a step that decodes): {shown(differ)}",
                )
            later += more
        return None

    return rule


def _together(level: int) -> Iterator[Scenario]:
    """Those whose requests come together, to an engine whose empty steps cost 2 ns more."""
    for scenario in all_scenarios(level):
        if scenario.setup.drafting is None and not any(scenario.instants):
            yield scenario.on(replace(scenario.setup, idle_ns=2))


M4D_STATEMENT = Statement(
    words=(
        "Under load, drafts of length 0 are plain decoding but for the stated fixed time of a step: with a "
        "look-up, which reads no prompts, every step does the same, and is later by that time alone"
    ),
    formula="step k (length 0) = step k (plain), later by idle x (steps before k that decode)",
    rule=_costs_what_is_said(),
    over=OVER + "; all requests at once",
    domain=scenarios(),
    every=_together,
    examples=40,
)
M4D = Claim(
    id="M4d",
    source="claims ledger, M4: the serving engine",
    statement=M4D_STATEMENT,
    expected="holds",
    because=(
        "With no drafts a step's rows read one token each in both engines, and no lookahead is reserved. "
        "The requests come together, since otherwise a later step could meet others."
    ),
    broken=(
        M4D_STATEMENT.but("The same with the stated time left out", _costs_what_is_said(charged=False)),
        M4D_STATEMENT.but(
            "The same of a drafter with a cache, which reads every prompt though it never drafts",
            _costs_what_is_said(lookup=False),
        ),
    ),
)

# M4e


@dataclass(frozen=True)
class Certain:
    """A request of ``output`` tokens, its drafts of ``length`` always accepted, or never."""

    length: int
    output: int
    accepted: bool


def _passes(first_by_prompt: bool = True) -> Rule:
    """The passes and accepted drafts of a request whose drafts' fate is certain."""

    def rule(case: Certain) -> Outcome:
        rate = float(case.accepted)
        drafting = Drafting(Fixed(case.length), Survival((rate,) * case.length))
        engine = Setup(2, drafting, "device")
        found = lived(Scenario(engine, 0, ((3, case.output), (9, case.output)), (0, 5)))
        to_decode = case.output - 1 if first_by_prompt else case.output
        passes = -(-to_decode // (case.length + 1)) if case.accepted else to_decode
        right = (passes, to_decode - passes)
        for row in found.by_number:
            counted = (row["passes"], row["accepted_tokens"])
            if counted != right:
                fate = "all" if case.accepted else "none"
                return against(
                    f"request {row['request_id']} of {case.output} tokens, drafts of {case.length}, {fate} "
                    "accepted",
                    f"passes and accepted drafts {shown(counted)}, not {shown(right)}",
                )
        return None

    return rule


def _certain(level: int) -> Iterator[Certain]:
    for output, length, accepted in product(range(1, (6, 16, 60)[level]), range(6), (True, False)):
        yield Certain(length, output, accepted)


M4E_STATEMENT = Statement(
    words=(
        "Under load, drafts of length d that are always accepted take ceil((n - 1)/(d + 1)) passes for a "
        "text of n tokens, d + 1 each but in the last, and drafts that never are take n - 1, one each; "
        "reading the prompt gives the first token"
    ),
    formula="passes = ceil((n - 1)/(d + 1)) or n - 1;  accepted = n - 1 - passes",
    rule=_passes(),
    over=(
        "all texts of up to 15 tokens (5 and 59 at the smallest and the largest budget) and d up to 5, two "
        "requests at once"
    ),
    every=_certain,
)
M4E = Claim(
    id="M4e",
    source="claims ledger, M4: the serving engine",
    statement=M4E_STATEMENT,
    expected="holds",
    because=(
        "A row drafts d tokens, or as many as its text has room for beside the target's own. If all are "
        "accepted it emits one more than it drafts, if none is it emits one."
    ),
    broken=(
        M4E_STATEMENT.but(
            "The same as if the prompt's reading gave no token: ceil(n/(d + 1)) passes",
            _passes(first_by_prompt=False),
        ),
    ),
)

# M10c


def _pooled(among_submitted: bool = False, readings: bool = False) -> Rule:
    """The figure of emitted tokens per pass, from steps, against rates by place, from emissions."""

    def rule(scenario: Scenario) -> Outcome:
        from simspec.serving.figures import figures

        records = serve(scenario, emissions=True)
        found = figures(records.steps, records.requests).emitted_per_pass_pooled
        if found is None or records.emissions is None:
            return UNMET
        rows: list[Row] = records.emissions.to_pylist()
        passes = sum(records.steps["decoding_requests"].to_pylist())
        count = len(rows) if readings else passes
        rates = []
        for j in range(1, 1 + max(row["drafted_tokens"] for row in rows)):
            asked = sum(row["drafted_tokens"] >= j for row in rows) if among_submitted else count
            rates.append(Fraction(sum(row["accepted_tokens"] >= j for row in rows), asked))
        mean = 1 + sum(rates, Fraction(0))
        # A quotient of whole numbers, rounded once: the same float if it is the same fraction.
        if found == float(mean) and all(a >= b for a, b in pairwise(rates)):
            return None
        return against(
            str(scenario),
            f"emitted tokens per pass, pooled: {found:.6g} over {passes} passes",
            f"accepted at places 1, 2, ..: {shown(tuple(rates))}; 1 + their sum is {number(mean)}",
        )

    return rule


M10C_STATEMENT = Statement(
    words=(
        "Under load, whatever the policy, the pooled figure of emitted tokens per target pass is 1 + the sum "
        "over places of the share of passes in which that place was accepted, and these shares never rise"
    ),
    formula="emitted_per_pass_pooled = 1 + sum_j r_j,  r_j = (passes with accepted >= j) / passes",
    rule=_pooled(),
    over=OVER + "; those with a pass",
    domain=scenarios(drafting=draftings()),
    every=all_scenarios,
    examples=40,
)
M10C = Claim(
    id="M10c",
    source="claims ledger, M10: the serving engine's figure; vLLM's per-position acceptance rates",
    statement=M10C_STATEMENT,
    expected="holds",
    because=(
        "A pass emits its accepted drafts and one token, and a count is the sum of its tails. A text's end "
        "cuts drafts, not accepted ones, so no pass need be left out; readings of prompts are no passes. The "
        "figure is made from the table of steps, the rates from that of emissions."
    ),
    broken=(
        M10C_STATEMENT.but(
            "The same with each place's rate taken among the passes that drafted as many",
            _pooled(among_submitted=True),
            every=scarce_memory,
        ),
        M10C_STATEMENT.but(
            "The same with the readings of prompts counted as passes",
            _pooled(readings=True),
            every=scarce_memory,
        ),
    ),
)

CLAIMS = (M4D, M4E, M10C)
