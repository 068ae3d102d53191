"""The simulator held against the clock: chains decoded for real, and the same simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.calibration.pattern import PatternGrid, PatternTimer
from simspec.compare.validation import fit_overhead, summarise
from simspec.cost.models import MeasuredCost
from simspec.errors import BadInput
from simspec.experiments.comparing import Measured, compare, features_of
from simspec.experiments.prompts import known_and_fresh
from simspec.provenance import machine, versions
from simspec.record.decoded import Decoded, Settings
from simspec.record.engines import LOOKUP_TOKENS, Engine, compare_engines
from simspec.record.executor import KeptPrompts, decode
from simspec.record.models import load_models, skip_layers
from simspec.record.recipe import read_recipe
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import Schedule
from simspec.streams import stream
from simspec.traces.index import Trace

Progress = Callable[[str], None]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ValidateSettings:
    """The measurement.

    Attributes:
        prompts: (batch size, prompts of the record decoded at it).
        fresh: prompts that the record does not hold, decoded at ``fresh_batch``.
        rounds: how often everything is decoded and timed; medians are kept.
        output_tokens: of each text.
        engines: whether transformers' own engines are measured as well.
        longest_prompt: prompts of more tokens are left out, since reading them, which is not
            compared, would take most of the run.
    """

    prompts: tuple[tuple[int, int], ...] = ((1, 2), (2, 2), (4, 4), (8, 8))
    fresh: int = 16
    fresh_batch: int = 8
    rounds: int = 2
    output_tokens: int = 32
    longest_prompt: int = 160
    engines: bool = True
    seed: int = 0


def default_schedules(trace: Trace) -> list[Schedule]:
    """Plain decoding, every pair at two lengths, and three chains with an intermediate."""
    lookups = [d for d in trace.drafters if trace.is_lookup(d)]
    # Block-parallel drafters are left out: their forwards are not among those that are timed here.
    networks = [d for d in trace.drafters if d in trace.verifiers]
    schedules = [Schedule(Chain((trace.target,)))]
    for drafter in [*lookups, *networks]:
        lengths = (3, 8) if drafter in lookups else (2, 5)
        schedules += [Schedule(Chain((drafter, trace.target)), Static(n)) for n in lengths]
    if len(networks) > 1:
        funnel = (networks[0], networks[-1], trace.target)
        schedules.append(Schedule(Chain(funnel, "funnel-truncate"), Static(4)))
        schedules.append(Schedule(Chain(funnel, "funnel-replace"), Static(4)))
    if lookups and networks:
        cheap = (lookups[0], networks[-1], trace.target)
        schedules.append(Schedule(Chain(cheap, "funnel-replace"), Static(5)))
    return schedules


def validate(
    trace: Trace, recipe_path: Path, settings: ValidateSettings, progress: Progress
) -> dict[str, Any]:
    """Measure, simulate, compare; returns the document.

    Raises:
        BadInput: when the recipe is not the one that the trace was recorded with, or its prompt
            files have changed.
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
    most_prompts = max(count for _, count in settings.prompts)
    rows, known, fresh = known_and_fresh(
        trace,
        models,
        recipe,
        recipe_path.parent,
        wanted=most_prompts + 2,
        fresh=settings.fresh,
        longest=settings.longest_prompt,
    )
    spare = known[most_prompts:][-2:]
    short = trace.shortened(settings.output_tokens)
    schedules = default_schedules(trace)
    networks = {n: models.networks[n] for n in trace.drafters if n in models.networks}
    # Early exit drafts with the target's first layers; timed like a drafter of its own.
    target: Any = models.networks[trace.target]
    layers = int(target.config.num_hidden_layers)
    exit_layers = 2 * layers // 3
    early = f"first-{exit_layers}"
    models.networks[early] = skip_layers(models.networks[trace.target], exit_layers, layers - exit_layers)
    if settings.engines:
        networks[early] = models.networks[early]
    networks[trace.target] = target
    grid = PatternGrid(batches=tuple(sorted({1, *(b for b, _ in settings.prompts), settings.fresh_batch})))
    progress("reading the contexts to time")
    timer = PatternTimer(
        networks,
        models.lookups,
        grid,
        device=recipe.device,
        dtype=recipe.dtype,
        vocabulary=models.vocabulary,
        seed=settings.seed,
    )
    asked = Settings(settings.output_tokens, trace.manifest.block_length)
    found = {
        (s, batch): Measured([], [], [], []) for s in range(len(schedules)) for batch, _ in settings.prompts
    }
    fresh_found = {s: Measured([], [], [], []) for s in range(len(schedules))}
    overheads: list[Decoded] = []
    kept: KeptPrompts = {}
    for turn in range(settings.rounds):
        progress(f"round {turn + 1} of {settings.rounds}: forwards")
        timer.round()
        order = stream(settings.seed, "validate", turn).permutation(len(schedules)).tolist()
        for batch, count in settings.prompts:
            progress(f"round {turn + 1} of {settings.rounds}: {count} texts at batch {batch}")
            for s in order:
                done = decode(models, [schedules[s]], known[:count], replace(asked, batch=batch), kept=kept)
                found[s, batch].add(done)
        if turn == 0:
            progress("prompts of the record's kind that it does not hold")
            for s in order:
                fresh_found[s].add(
                    decode(
                        models, [schedules[s]], fresh, replace(asked, batch=settings.fresh_batch), kept=kept
                    )
                )
        for s in order[:3]:
            overheads += [
                decode(models, [schedules[s]], spare, replace(asked, batch=batch), kept=kept)
                for batch in (1, settings.fresh_batch)
            ]
    timer.round()
    cost = MeasuredCost(timer.latency(), recipe.dtype, "fresh", "timed in this run, in the chain's pattern")
    overhead = fit_overhead(
        np.array([features_of(done) for done in overheads]),
        np.array([d.seconds["total"] - d.seconds["forward"] for d in overheads]),
    )
    compared, compared_fresh = [], []
    for (s, batch), measured in found.items():
        count = dict(settings.prompts)[batch]
        runs = run(short, schedules[s].chain, schedules[s].rule, short.offsets[rows[:count]])
        groups = np.arange(count).reshape(-1, batch)
        compared.append(
            compare(short, schedules[s], batch, measured, runs, groups, cost, overhead, equal=True)
        )
    everyone = stream(settings.seed, "validate", "groups").permutation(len(rows))
    groups = everyone[: len(rows) // settings.fresh_batch * settings.fresh_batch]
    groups = groups.reshape(-1, settings.fresh_batch)
    for s, measured in fresh_found.items():
        runs = run(short, schedules[s].chain, schedules[s].rule, short.offsets[rows])
        compared_fresh.append(
            compare(
                short, schedules[s], settings.fresh_batch, measured, runs, groups, cost, overhead, equal=False
            )
        )
    engines = []
    if settings.engines:
        pairs = [d for d in trace.drafters if d in networks]
        asked_engines = [Engine(f"assisted by {d}", d, 5) for d in (pairs[0], pairs[-1])]
        asked_engines.append(Engine("prompt lookup", None, LOOKUP_TOKENS))
        asked_engines.append(Engine(f"early exit at {exit_layers}", early, 4, exit_layers))
        fitted, tested = spare, known[:6]
        alone = Schedule(Chain((trace.target,)))
        texts = decode(models, [alone], [*fitted, *tested], asked).texts
        engines = compare_engines(
            models, asked_engines, fitted, tested, texts, cost, settings.output_tokens, progress
        )
    return {
        "engines": engines,
        "same_prompts": summarise(compared),
        "disjoint_prompts": summarise(compared_fresh),
        "overhead_seconds": asdict(overhead),
        "rounds": settings.rounds,
        "output_tokens": settings.output_tokens,
        "prompts_by_batch": {str(b): n for b, n in settings.prompts},
        "fresh_prompts": len(fresh),
        "device": recipe.device,
        "dtype": recipe.dtype,
        "machine": machine(),
        "versions": versions(("torch", "transformers", "numpy")),
        "trace": trace.manifest.name,
        "behaviour_sha256": trace.manifest.behaviour_sha256,
        "recipe_sha256": recipe_hash,
        "seed": settings.seed,
    }
