"""Is replay of sampled texts in distribution what real models do when they sample?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.metrics import estimate
from simspec.record.decoded import Settings
from simspec.record.executor import decode
from simspec.record.models import LoadedModels
from simspec.replay.sampled import in_distribution
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LengthRule
from simspec.speculation.sampling import Sampling
from simspec.speculation.schedulers import Schedule
from simspec.speculation.verify import Tokens
from simspec.streams import stream
from simspec.traces.checked import Tables

Floats = NDArray[np.float64]

FIGURES = ("emitted", "drafted", "submitted")


def compare_sampled(
    models: LoadedModels,
    read: Tables,
    prompts: Sequence[Tokens],
    drafter: str,
    rules: Mapping[str, LengthRule],
    *,
    seeds: int,
    lucks: int,
    draws: int = 1000,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Tokens a cycle, decoded by real models and replayed from their sampled recording.

    Args:
        read: the recording of ``prompts`` (token ids), in their order.
        rules: that weigh no cost.
        seeds: times that every prompt is decoded anew.
        lucks: that the recording is replayed with.
        draws: bootstrap draws of prompts.

    Returns:
        by rule and figure (tokens ``emitted``, ``drafted``, ``submitted`` a cycle, over all cycles)
        {``measured``, ``replayed``, ``off`` (% that replay is above), ``off_interval`` (95%, over draws of
        prompts), ``cycles`` (measured)}.
    """
    manifest, chain = read.manifest, Chain((drafter, read.manifest.target))
    assert manifest.sampling is not None
    sampling = Sampling(manifest.sampling.temperature, manifest.sampling.top_p)
    traces = [in_distribution(read, luck) for luck in range(lucks)]
    generator = stream(manifest.seed, "bootstrap", "prompts")
    drawn = generator.integers(0, len(prompts), (draws, len(prompts)))
    drawn = np.concatenate([np.arange(len(prompts))[None], drawn])
    found: dict[str, Any] = {}
    for name, rule in rules.items():
        measured, replayed = (np.zeros((len(FIGURES) + 1, len(prompts))) for _ in range(2))
        for seed in range(seeds):
            settings = Settings(manifest.output_tokens, manifest.block_length, sampling=sampling, seed=seed)
            done = decode(models, [Schedule(chain, rule)], prompts, settings)
            progress(f"{name}: seed {seed}, {done.seconds['total']:.0f} s")
            for p, cycles in enumerate(done.cycles):
                measured[:, p] += [sum(getattr(c, f) for c in cycles) for f in FIGURES] + [len(cycles)]
        for trace in traces:
            runs = run(trace, chain, rule, trace.offsets[:-1])
            replayed += [getattr(runs, f).sum(axis=1) for f in FIGURES] + [runs.active.sum(axis=1)]
        found[name] = {
            figure: _compared(measured[[i, -1]], replayed[[i, -1]], drawn) for i, figure in enumerate(FIGURES)
        }
    return found


def _compared(measured: Floats, replayed: Floats, drawn: NDArray[np.int64]) -> dict[str, Any]:
    """From sums and cycles by prompt, (2, P) each, and prompts drawn, all of them first."""
    real, told = (
        values[0, drawn].sum(axis=1) / values[1, drawn].sum(axis=1) for values in (measured, replayed)
    )
    ratio = 100.0 * (told / real - 1.0)
    off = estimate(ratio[0], ratio[1:])
    return {
        "measured": float(real[0]),
        "replayed": float(told[0]),
        "off": off.value,
        "off_interval": [off.low, off.high],
        "cycles": int(measured[1].sum()),
    }
