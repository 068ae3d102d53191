"""The page of LibraSpec's studies."""

from __future__ import annotations

from simspec.report.folder import LIBRASPEC
from simspec.report.laboratory import Laboratory, Section
from simspec.report.libraspec import (
    batches,
    calibration,
    case,
    rules,
    sampling,
    sweeps,
    theorem,
    trees,
)

SECTIONS = {
    "rules": Section(
        "Which rule is fastest, and how far from what was possible?", rules.findings, rules.parts
    ),
    "calibration": Section(
        "Is confidence the chance of acceptance, and what if it is not?",
        calibration.findings,
        calibration.parts,
    ),
    "theorem": Section("Does the algorithm do what the theorems are about?", theorem.findings, theorem.parts),
    "sweeps": Section("What do alpha, the block and the longest draft do?", sweeps.findings, sweeps.parts),
    "batches": Section(
        "Should a batch share its budget, and should drafting stop or only verifying?",
        batches.findings,
        batches.parts,
    ),
    "trees": Section("Chains or trees?", trees.findings, trees.parts),
    "case": Section("The case study, done again", case.findings, case.parts),
    "sampling": Section("What is left at temperature 1?", sampling.findings, sampling.parts),
}

LABORATORY = Laboratory(
    output=LIBRASPEC,
    title="LibraSpec",
    heading="How long should a draft be?",
    intro=(
        "LibraSpec (arXiv 2608.08721) picks how many drafted tokens to verify by a rule of marginal gain, "
        "and says that it converges to the best. Here it and its rivals are replayed on what real models "
        "did, beside oracles that know what no rule can. What is fitted or tuned on other prompts is not "
        "fitted again for each draw, and where many comparisons are counted, some lie outside their "
        "intervals by chance. The rule long-run is our own and was developed on traces/smollm2-cpu. Record:"
    ),
    sections=SECTIONS,
)
