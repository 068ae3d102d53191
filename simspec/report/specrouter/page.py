"""The page of SpecRouter's studies."""

from __future__ import annotations

from simspec.report.folder import SPECROUTER
from simspec.report.laboratory import Laboratory, Section
from simspec.report.specrouter import (
    ablations,
    estimates,
    measured,
    pool,
    ranking,
    routing,
    sensitivity,
    table2,
)

SECTIONS = {
    "ranking": Section("Does the cost model pick the fastest chain?", ranking.findings, ranking.parts),
    "measured": Section(
        "Is the chain of lowest predicted time the chain of lowest measured time?",
        measured.findings,
        measured.parts,
    ),
    "estimates": Section(
        "How good are estimates of acceptance, and how fast do they follow?",
        estimates.findings,
        estimates.parts,
    ),
    "sensitivity": Section(
        "What do noise, correlation and the slope of cost do to its picks?",
        sensitivity.findings,
        sensitivity.parts,
    ),
    "routing": Section("What does picking a chain every cycle gain?", routing.findings, routing.parts),
    "pool": Section("Can the pool grow without retuning?", pool.findings, pool.parts),
    "table2": Section("Where would the published speedups be reached?", table2.findings, table2.parts),
    "ablations": Section(
        "What do intermediate verification and the validity mask cost or save?",
        ablations.findings,
        ablations.parts,
    ),
}

LABORATORY = Laboratory(
    output=SPECROUTER,
    title="SpecRouter",
    heading="SpecRouter's cost model",
    intro=(
        "SpecRouter (arXiv 2505.07680) picks a chain of models for every step by a cost model, its Eq. 7. "
        "Here that equation, in every reading of it, is held against exact replay of what real models did, "
        "and against the clock where it was run. Record:"
    ),
    sections=SECTIONS,
)
