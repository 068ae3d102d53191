"""The simulator held against the clock: chains decoded for real, and the same simulated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from simspec.calibration.pattern import PatternGrid, PatternTimer
from simspec.compare.validation import Compared, Overhead, fit_overhead, summarise
from simspec.cost.models import MeasuredCost
from simspec.cost.shape import StepShape
from simspec.errors import BadInput
from simspec.provenance import machine, versions
from simspec.record.decoded import Decoded, Settings
from simspec.record.engines import LOOKUP_TOKENS, Engine, compare_engines
from simspec.record.executor import KeptPrompts, decode
from simspec.record.models import LoadedModels, load_models, skip_layers
from simspec.record.prompts import PromptText, choose_prompts
from simspec.record.recipe import Recipe, read_recipe
from simspec.record.session import encode_prompt
from simspec.replay.lockstep import price
from simspec.replay.trajectories import Trajectories, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import Schedule
from simspec.speculation.verify import Tokens
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


@dataclass
class _Measured:
    """Repetitions of one configuration."""

    totals: list[float]
    forwards: list[float]
    choosing: list[float]
    packing: list[float]
    decoded: Decoded | None = None

    def add(self, done: Decoded) -> None:
        self.totals.append(done.seconds["total"])
        self.forwards.append(done.seconds["forward"])
        self.choosing.append(done.seconds["choosing"])
        self.packing.append(done.seconds["packing"])
        self.decoded = done


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
    rows, known, fresh = _prompts(trace, models, recipe, recipe_path.parent, settings)
    most_prompts = max(count for _, count in settings.prompts)
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
        (s, batch): _Measured([], [], [], []) for s in range(len(schedules)) for batch, _ in settings.prompts
    }
    fresh_found = {s: _Measured([], [], [], []) for s in range(len(schedules))}
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
        np.array([_features_of(done) for done in overheads]),
        np.array([d.seconds["total"] - d.seconds["forward"] for d in overheads]),
    )
    compared, compared_fresh = [], []
    for (s, batch), measured in found.items():
        count = dict(settings.prompts)[batch]
        runs = run(short, schedules[s].chain, schedules[s].rule, short.offsets[rows[:count]])
        groups = np.arange(count).reshape(-1, batch)
        compared.append(
            _compare(short, schedules[s], batch, measured, runs, groups, cost, overhead, equal=True)
        )
    everyone = stream(settings.seed, "validate", "groups").permutation(len(rows))
    groups = everyone[: len(rows) // settings.fresh_batch * settings.fresh_batch]
    groups = groups.reshape(-1, settings.fresh_batch)
    for s, measured in fresh_found.items():
        runs = run(short, schedules[s].chain, schedules[s].rule, short.offsets[rows])
        compared_fresh.append(
            _compare(
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


def _prompts(
    trace: Trace, models: LoadedModels, recipe: Recipe, folder: Path, settings: ValidateSettings
) -> tuple[NDArray[np.int64], list[Tokens], list[Tokens]]:
    """Rows of recorded prompts, categories in turn; those prompts; and as many fresh ones as asked for."""
    recorded = choose_prompts(recipe, folder)
    ids = [_encoded(models, recipe, text) for text in recorded]
    hashes = [hashlib.sha256(p.astype("<i4").tobytes()).hexdigest() for p in ids]
    if hashes != trace.prompts["prompt_hash"].tolist():
        raise BadInput(
            "its prompts are not the recorded ones", where=folder, hint="a prompt file has changed"
        )
    able = [i for i, p in enumerate(ids) if len(p) <= settings.longest_prompt]
    rows = _in_turn(able, [recorded[i].category for i in able])
    wanted = max(count for _, count in settings.prompts) + 2
    if len(rows) < wanted:
        raise BadInput(
            f"holds {len(rows)} prompts of at most {settings.longest_prompt} tokens",
            where=trace.folder,
            allowed=f"at least {wanted}",
        )
    held = {(t.source, t.source_id) for t in recorded}
    # Drawn under another seed; what the record holds is left out.
    more = msgspec.structs.replace(
        recipe,
        seed=recipe.seed + 1,
        prompts=tuple(msgspec.structs.replace(p, count=4 * p.count) for p in recipe.prompts),
    )
    texts: list[PromptText] = [t for t in choose_prompts(more, folder) if (t.source, t.source_id) not in held]
    order = _in_turn(list(range(len(texts))), [t.category for t in texts])
    fresh: list[Tokens] = []
    for i in order:
        prompt = _encoded(models, recipe, texts[i])
        if len(prompt) <= settings.longest_prompt and len(fresh) < settings.fresh:
            fresh.append(prompt)
    if len(fresh) < settings.fresh:
        raise BadInput(f"only {len(fresh)} fresh prompts are short enough", where=folder)
    return np.array(rows), [ids[i] for i in rows], fresh


def _in_turn(items: Sequence[int], categories: Sequence[str]) -> list[int]:
    """Items in an order that takes one of each category in turn."""
    place: dict[str, int] = {}
    keys = []
    for item, category in zip(items, categories, strict=True):
        place[category] = place.get(category, 0) + 1
        keys.append((place[category], category, item))
    return [item for *_, item in sorted(keys)]


def _encoded(models: LoadedModels, recipe: Recipe, text: PromptText) -> Tokens:
    return encode_prompt(models, recipe, text)[0].cpu().numpy().astype(np.int32)


def _features_of(done: Decoded) -> list[float]:
    """What :class:`Overhead` is a sum over: forwards, padded places, cycles, requests in cycles."""
    forwards = [f for f in done.forwards if f.cycle >= 0]
    return [
        float(len(forwards)),
        float(sum(f.rows * f.width for f in forwards)),
        float(1 + max(f.cycle for f in forwards)),
        float(sum(len(c) for c in done.cycles)),
    ]


class _Counting:
    """A cost that counts: ``one`` a forward of a network, or its padded places."""

    step_overhead_seconds = 0.0
    name = label = "counts"

    def __init__(self, lookups: set[str], *, places: bool) -> None:
        self.lookups, self.places = lookups, places
        self.models: frozenset[str] = frozenset()

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        found = shape.rows * shape.width if self.places else np.ones(np.shape(shape.rows))
        return np.asarray(found * (model not in self.lookups), dtype=np.float64)


def _compare(
    trace: Trace,
    schedule: Schedule,
    batch: int,
    measured: _Measured,
    runs: Trajectories,
    groups: NDArray[np.int64],
    cost: MeasuredCost,
    overhead: Overhead,
    *,
    equal: bool,
) -> Compared:
    """One configuration; ``equal`` where the decoded prompts are those of ``runs``, in their order."""
    done = measured.decoded
    assert done is not None
    chain = schedule.chain
    lookup = chain.drafter is not None and trace.is_lookup(chain.drafter)
    lookups = {d for d in trace.drafters if trace.is_lookup(d)}
    forward, forwards, places = price(
        runs,
        groups,
        [cost, _Counting(lookups, places=False), _Counting(lookups, places=True)],
        lookup=lookup,
    )
    steps = runs.active[groups].any(axis=1).sum()
    rows = runs.active[groups].sum()
    beside = (
        overhead.forward * forwards.seconds.sum()
        + overhead.word * places.seconds.sum()
        + overhead.cycle * steps
        + overhead.row * rows
    )
    expected = float(forward.tokens.sum())
    tokens = float(sum(len(t) for t in done.texts))
    cycles = sum(len(c) for c in done.cycles)
    counts_equal = None
    if equal:
        counts_equal = all(
            len(cycles_of) == int(runs.active[r].sum())
            and all(
                (c.drafted, c.accepted, c.emitted)
                == (int(runs.drafted[r, i]), int(runs.accepted[r, i]), int(runs.emitted[r, i]))
                for i, c in enumerate(cycles_of)
            )
            for r, cycles_of in enumerate(done.cycles)
        )
    used = np.unique(groups)
    total = float(np.median(measured.totals))
    forward_total = float(np.median(measured.forwards))
    return Compared(
        chain=list(chain.levels),
        semantics=chain.semantics if chain.intermediates else "",
        draft_length=getattr(schedule.rule, "length", 0),
        batch=batch,
        prompts=len(done.texts),
        measured=total / tokens,
        spread=max(measured.totals) / min(measured.totals) - 1.0,
        predicted=float(forward.seconds.sum() + beside) / expected,
        measured_forward=forward_total / tokens,
        predicted_forward=float(forward.seconds.sum()) / expected,
        measured_overhead=(total - forward_total) / tokens,
        predicted_overhead=float(beside) / expected,
        choosing=float(np.median(measured.choosing)) / tokens,
        packing=float(np.median(measured.packing)) / tokens,
        measured_accepted=sum(c.accepted for cs in done.cycles for c in cs) / cycles,
        predicted_accepted=float(runs.accepted[used].sum() / runs.active[used].sum()),
        counts_equal=counts_equal,
    )
