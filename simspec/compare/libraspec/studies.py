"""The studies by name, in the page's order, and which other traces each takes."""

from __future__ import annotations

from simspec.compare.asked import Study
from simspec.compare.libraspec import (
    batches,
    calibration,
    case,
    rules,
    sampling,
    sweeps,
    theorem,
    trees,
)

STUDIES = {
    "rules": Study(rules.study),
    "calibration": Study(calibration.study),
    "theorem": Study(theorem.study),
    "sweeps": Study(sweeps.study),
    "batches": Study(batches.study),
    "trees": Study(trees.study, ("tree_trace",)),
    "case": Study(case.study),
    "sampling": Study(sampling.study, ("sampled",)),
}
