"""What drafting several tokens a forward costs, against a plain loop; and the bounds hold for it too.

The traces are synthetic: a made-up drafter's blocks, taken to be drafted so many tokens at once.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.oracle import chains as chain_oracle
from simspec.oracle import lengths as length_oracle
from simspec.replay import lockstep
from simspec.replay.pricing import draft_seconds, two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Prescribed, Static
from simspec.traces.index import Trace
from simspec.traces.manifest import ModelEntry
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.reference import affine_price
from tests.toy import SMALL, TARGET, Setting, Toy, settings_of

CHAIN = Chain((SMALL, TARGET))


def seconds_of(model: str, width: int, context: int) -> float:
    """One forward of one request."""
    return affine_price(AFFINE)(model, 1, width, width, context, context)


def trace_of(setting: Setting, block: int) -> Trace:
    trace = Toy(setting).trace()
    models = {**trace.manifest.models, SMALL: ModelEntry("block-parallel", {"block": block})}
    return replace(trace, manifest=msgspec.structs.replace(trace.manifest, models=models))


@given(settings_of(output_tokens=(4, 16), block_length=(3, 7)), st.integers(1, 4), st.integers(0, 7))
@examples(0.6)
def test_a_lone_request_pays_for_the_forwards_of_a_plain_loop(
    setting: Setting, block: int, length: int
) -> None:
    trace = trace_of(setting, block)
    runs = run(trace, CHAIN, Static(length), trace.offsets[:-1])
    alone = np.arange(len(trace.prompts))[:, None]
    found = lockstep.price(runs, alone, [AFFINE], lookup=False)[0].seconds
    for p in range(len(trace.prompts)):
        # The drafter's cache, counted token by token: how much of prompt and text it holds.
        total, text, held = 0.0, 0, 0
        for c in np.flatnonzero(runs.active[p]):
            drafted, accepted = int(runs.drafted[p, c]), int(runs.accepted[p, c])
            context = int(runs.context[p, c])
            got = 0
            while got < drafted:
                unread = 1 + text + got - held
                total += seconds_of(SMALL, unread + block - 1, context)
                held, got = held + unread, got + block
            total += seconds_of(TARGET, drafted + 1, context) + AFFINE.step_overhead_seconds
            # Rolled back to the accepted drafts; one token of prompt was there to be read at first.
            held = min(held, 1 + text + accepted)
            text += int(runs.emitted[p, c])
        assert found[p] == pytest.approx(total, rel=1e-9)


@given(settings_of(output_tokens=(4, 14), block_length=(3, 6)), st.integers(2, 4), st.integers(0, 2**32 - 1))
@examples(0.6)
def test_nothing_beats_the_least_time(setting: Setting, block: int, seed: int) -> None:
    trace = trace_of(setting, block)
    alone = np.arange(len(trace.prompts))[:, None]
    bound = length_oracle.least_seconds(trace, CHAIN, AFFINE)
    every = [(CHAIN, n) for n in range(setting.block_length + 1)]
    loose = chain_oracle.least_seconds(trace, every, AFFINE)
    assert (loose <= bound * (1 + 1e-9)).all()
    lengths = np.random.default_rng(seed).integers(0, setting.block_length + 1, len(trace.tokens))
    for rule in (*(Static(n) for _, n in every), Prescribed(lengths)):
        runs = run(trace, CHAIN, rule, trace.offsets[:-1])
        seconds = lockstep.price(runs, alone, [AFFINE], lookup=False)[0].seconds
        assert (seconds >= bound * (1 - 1e-9)).all(), rule


def test_a_forward_for_every_block_begun() -> None:
    trace = trace_of(Setting(seed=3, output_tokens=12, block_length=7), 3)
    context, drafted = np.array([[40]]), np.arange(8)[None]
    found = draft_seconds(trace, AFFINE, SMALL, 1, drafted, np.ones_like(context), context)[0]
    first, later = seconds_of(SMALL, 3, 40), seconds_of(SMALL, 5, 40)
    wanted = [0, *[first] * 3, *[first + later] * 3, first + 2 * later]
    assert found.tolist() == pytest.approx(wanted)
    assert two_level_seconds(trace, CHAIN, AFFINE, 1)[0, 3] == pytest.approx(
        seconds_of(SMALL, 3, int(trace.context[0]))
        + seconds_of(TARGET, 4, int(trace.context[0]))
        + AFFINE.step_overhead_seconds
    )
