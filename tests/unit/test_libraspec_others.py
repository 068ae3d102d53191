"""Traces set beside another one: those of other models are refused. SYNTHETIC, all of it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from simspec.compare.costs import open_cost
from simspec.compare.libraspec.others import check_models, check_sampled
from simspec.errors import BadInput
from simspec.replay.sampled import load_any
from simspec.strategies.made_up_models import Setting
from simspec.strategies.traces import Synthetic
from simspec.traces.index import Trace
from tests.drawn import Drawn, models


@pytest.fixture(scope="module")
def greedy() -> Trace:
    return Synthetic(Setting(seed=3, prompts=3, output_tokens=8, block_length=4)).trace()


@pytest.fixture(scope="module")
def sampled(tmp_path_factory) -> Trace:
    p, q = models(4, tokens=6, end=0.02, spread=0.2)
    folder = Drawn(p, q, prompts=3, output_tokens=8, block_length=4).write(
        tmp_path_factory.mktemp("drawn") / "trace"
    )
    return load_any(folder)


def about(trace: Trace, name: str, **facts: object) -> Trace:
    entry = msgspec.structs.replace(trace.manifest.models[name], about=facts)
    manifest = msgspec.structs.replace(trace.manifest, models={**trace.manifest.models, name: entry})
    return replace(trace, manifest=manifest)


def test_the_same_models_pass(greedy: Trace, sampled: Trace) -> None:
    check_models(greedy, greedy)
    check_sampled(greedy, sampled, [open_cost(greedy, "float32")])
    # What one of the two does not say cannot differ.
    check_models(about(greedy, greedy.target, sha256="a"), greedy)


def test_other_models_are_refused(greedy: Trace) -> None:
    mine, theirs = (about(greedy, greedy.target, sha256=x) for x in "ab")
    with pytest.raises(BadInput, match="is another one: sha256 b"):
        check_models(mine, theirs)
    kind = msgspec.structs.replace(greedy.manifest.models[greedy.target], kind="prompt-lookup")
    manifest = msgspec.structs.replace(
        greedy.manifest, models={**greedy.manifest.models, greedy.target: kind}
    )
    with pytest.raises(BadInput, match="is another one: kind prompt-lookup"):
        check_models(greedy, replace(greedy, manifest=manifest))
    with pytest.raises(BadInput, match="drafters none"):
        check_models(greedy, replace(greedy, drafters={}))
    with pytest.raises(BadInput, match="target 'other'"):
        check_models(
            greedy, replace(greedy, manifest=msgspec.structs.replace(greedy.manifest, target="other"))
        )


def test_greedy_texts_are_refused(greedy: Trace) -> None:
    with pytest.raises(BadInput, match="texts are greedy"):
        check_sampled(greedy, greedy, [])


class _Unpriced:
    name, models = "none", frozenset({"target"})


def test_a_cost_must_price_a_drafter(greedy: Trace, sampled: Trace) -> None:
    with pytest.raises(BadInput, match="cost 'none' prices none of"):
        check_sampled(greedy, sampled, [_Unpriced()])  # type: ignore[list-item]
