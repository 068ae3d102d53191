"""The studies by name, in the page's order, and which documents of experiments each takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Study:
    """``run(trace, costs, asked, say, **documents)`` gives plain data.

    Attributes:
        takes: documents of measured experiments that it is given by keyword, None where there is none.
    """

    run: Callable[..., dict[str, Any]]
    takes: tuple[str, ...] = ()


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
# Experiments whose documents studies take.
EXPERIMENTS = tuple(dict.fromkeys(name for study in STUDIES.values() for name in study.takes))
