"""The simulator held against the clock: chains decoded for real, and the same simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simspec.compare.validated import CostWithOverhead, timed_models
from simspec.compare.validation import Compared, fit_overhead, summarise
from simspec.errors import BadInput
from simspec.experiments.comparing import Unit, compare
from simspec.experiments.files import Pieces
from simspec.experiments.measuring import Session, ValidateSettings, schedule_of
from simspec.provenance import machine, versions
from simspec.record.models import load_models
from simspec.record.recipe import read_recipe
from simspec.traces.index import Trace

Progress = Callable[[str], None]


def validate(
    trace: Trace, recipe_path: Path, pieces: Path, settings: ValidateSettings, progress: Progress
) -> dict[str, Any]:
    """Measure, simulate, compare; returns the document.

    Args:
        pieces: a folder that keeps what is finished, so that a run that was stopped goes on there.

    Raises:
        BadInput: when the recipe is not the one that the trace was recorded with, or its prompt
            files have changed, or the pieces found belong to something else.
    """
    recipe, recipe_hash = read_recipe(recipe_path)
    if recipe_hash != trace.manifest.recipe_sha256:
        raise BadInput(
            "is not the recipe that the trace was recorded with",
            where=recipe_path,
            hint="validation decodes the recorded prompts again and needs the same models",
        )
    models = load_models(recipe, recipe_path.parent)
    models.check_behaviour()
    # Without rounds and engines, which only add pieces: a run that was stopped may go on for longer.
    same = replace(settings, rounds=0, engines=False)
    about = (recipe_hash, trace.manifest.behaviour_sha256, same, machine(), versions(("torch",)))
    held = Pieces(pieces, hashlib.sha256(repr(about).encode()).hexdigest())
    session = Session(trace, recipe, recipe_path.parent, models, settings, held, progress)
    session.measure()
    return {
        **_compared(session),
        "rounds": settings.rounds,
        "output_tokens": settings.output_tokens,
        "device": recipe.device,
        "dtype": recipe.dtype,
        "machine": machine(),
        "versions": versions(("torch", "transformers", "numpy")),
        "trace": trace.manifest.name,
        "behaviour_sha256": trace.manifest.behaviour_sha256,
        "recipe_sha256": recipe_hash,
        "seed": settings.seed,
    }


def _compared(session: Session) -> dict[str, Any]:
    """What the pieces say: the part of the document that is measured and simulated."""
    rounds_kept = session.pieces.like("spare-")[: session.settings.rounds]
    spare = [entry for piece in rounds_kept for entry in piece]
    overhead = fit_overhead(np.array([f for f, _ in spare]), np.array([s for _, s in spare]))
    lookups = {d for d in session.trace.drafters if session.trace.is_lookup(d)}
    cost = CostWithOverhead(session.cost(), overhead, session.trace.target, lookups)
    same: list[Compared] = []
    disjoint: list[Compared] = []
    for batch, candidates in session.chosen.items():
        units = session.units[batch]
        rounds = np.repeat(np.arange(session.settings.rounds), len(units) // session.settings.rounds)
        for k, candidate in enumerate(candidates):
            done = [
                msgspec.convert(piece, Unit)
                for piece in session.pieces.like(f"unit-{batch:03d}-", f"-{k:03d}")[: len(units)]
            ]
            schedule = schedule_of(candidate)
            whole = len(session.fitted) // batch * batch
            for kept, rows, groups in (
                (same, session.rows, units),
                (disjoint, session.fitted, np.arange(whole).reshape(-1, batch)),
            ):
                runs = session.replay(schedule, rows)
                kept.append(
                    compare(session.trace, schedule, done, rounds, runs, groups, cost, same=kept is same)
                )
    return {
        "engines": next(iter(session.pieces.like("engines")), []),
        "same_prompts": summarise(same),
        "disjoint_prompts": summarise(disjoint),
        "overhead_seconds": asdict(overhead),
        "forwards": timed_models(session.latency()),
        "decoded": {str(b): session.rows[units].tolist() for b, units in session.units.items()},
        "fitted": sorted(session.fitted.tolist()),
        "prompts_by_batch": {str(b): len(np.unique(units)) for b, units in session.units.items()},
    }
