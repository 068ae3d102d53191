"""The studies by name, in the page's order, and which documents of experiments each takes."""

from __future__ import annotations

from simspec.compare.asked import Study
from simspec.compare.specrouter import (
    ablations,
    estimates,
    measured,
    pool,
    ranking,
    routing,
    sensitivity,
    table2,
)

STUDIES = {
    "ranking": Study(ranking.study),
    "measured": Study(measured.study, ("validation",)),
    "estimates": Study(estimates.study),
    "sensitivity": Study(sensitivity.study),
    "routing": Study(routing.study),
    "pool": Study(pool.study),
    "table2": Study(table2.study),
    "ablations": Study(ablations.study, ("validation", "critic", "masks")),
}
