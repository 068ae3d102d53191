"""Engines that we did not write: transformers' own speculative decoding, measured and predicted.

Only what comes after an engine's first cycle is compared, since that one reads the prompt.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls

from simspec.cost.models import CostModel
from simspec.cost.shape import uniform
from simspec.record.decoded import Decoded, Settings
from simspec.record.executor import decode
from simspec.record.models import LoadedModels
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import Schedule
from simspec.speculation.verify import Tokens, accepted_prefix

# What generate() takes by default for prompt lookup.
LOOKUP_TOKENS = 10
LOOKUP_NGRAM = 2


@dataclass(frozen=True)
class Engine:
    """One way of generating.

    Attributes:
        name: for the report.
        drafter: the network that drafts, None for prompt lookup.
        length: drafted tokens a cycle.
        early_exit: layers that the target itself drafts with; 0 where ``drafter`` is a model.
    """

    name: str
    drafter: str | None
    length: int
    early_exit: int = 0


@dataclass(frozen=True)
class Step:
    """A cycle as simulated: widths of the drafter's forwards and the target's, and the context."""

    draft_widths: tuple[int, ...]
    width: int
    context: int
    emitted: int


@dataclass
class _Timed:
    """What an engine did: (is the target, new tokens, begun, ended) of each forward, and the text."""

    forwards: list[tuple[bool, int, float, float]]
    text: Tokens
    begun: float
    ended: float


def compare_engines(
    models: LoadedModels,
    engines: Sequence[Engine],
    fitted: Sequence[Tokens],
    tested: Sequence[Tokens],
    texts: Sequence[Tokens],
    cost: CostModel,
    output_tokens: int,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Each engine on each prompt, our decoding of the same between them.

    Args:
        fitted: prompts on which an engine's own time per cycle and per drafted token is fitted.
        tested: prompts on which it is predicted.
        texts: the target's own texts of ``fitted`` and then ``tested``.
        cost: prices forwards; must know the engines' drafters.
    """
    target = models.networks[models.target]
    out = []
    for engine in engines:
        progress(f"transformers: {engine.name}")
        network = models.networks[engine.drafter] if engine.drafter else None
        left, features, forward_seconds, ratios, widths_equal, matches = [], [], [], [], [], []
        for prompt, text in zip([*fitted, *tested], texts, strict=True):
            timed = _generate(target, network, engine, prompt, output_tokens)
            schedule = Schedule(Chain((models.target,)))
            if engine.drafter:
                schedule = Schedule(Chain((engine.drafter, models.target)), Static(engine.length))
            ours = decode(models, [schedule], [prompt], Settings(output_tokens, max(engine.length, 1)))
            if engine.drafter:
                whole = ours.seconds["prompts"] + ours.seconds["total"]
                ratios.append(whole / (timed.ended - timed.begun))
            steps = list(
                _steps(ours, prompt)
                if engine.drafter
                else _lookup_steps(prompt, text, models.eos_ids, output_tokens)
            )
            matches.append(bool(np.array_equal(timed.text, text)))
            real = [n for is_target, n, *_ in timed.forwards if is_target][1:]
            widths_equal.append(real == [s.width for s in steps[1:]])
            first_end = next(ended for is_target, _, _, ended in timed.forwards if is_target)
            left.append(timed.ended - first_end)
            features.append((len(steps) - 1, sum(len(s.draft_widths) for s in steps[1:])))
            forward_seconds.append(_priced(steps[1:], engine, models.target, cost))
        n = len(fitted)
        design = np.array(features, dtype=np.float64)
        beside = np.array(left) - np.array(forward_seconds)
        per, _ = nnls(design[:n], np.maximum(beside[:n], 0.0))
        predicted = np.array(forward_seconds)[n:] + design[n:] @ per
        error = predicted / np.array(left)[n:] - 1.0
        out.append(
            {
                "engine": engine.name,
                "length": engine.length,
                "prompts": len(tested),
                "fitted_on": n,
                "measured_seconds": float(np.sum(left[n:])),
                "predicted_seconds": float(predicted.sum()),
                "error": float(predicted.sum() / np.sum(left[n:]) - 1.0),
                "median_abs_error_by_prompt": float(np.median(np.abs(error))),
                "engine_seconds_per_cycle": float(per[0]),
                "engine_seconds_per_drafted_token": float(per[1]),
                "share_outside_forwards": float(np.sum(beside[n:]) / np.sum(left[n:])),
                "same_text_as_target": all(matches),
                "target_widths_equal": all(widths_equal),
                "our_time_over_theirs": float(np.median(ratios)) if ratios else None,
            }
        )
    return out


def _priced(steps: Sequence[Step], engine: Engine, target: str, cost: CostModel) -> float:
    total = 0.0
    for step in steps:
        parts = [(target, step.width)]
        if engine.drafter:
            parts += [(engine.drafter, width) for width in step.draft_widths]
        for model, width in parts:
            shape = uniform(np.array([1]), np.array([width]), np.array([step.context]))
            total += float(cost.forward_seconds(model, shape)[0])
    return total


def _steps(ours: Decoded, prompt: Tokens) -> Iterator[Step]:
    """The engine's cycles from ours: it drafts and accepts the same, but always reads two tokens first."""
    for c in ours.cycles[0]:
        drafts = (2, *([1] * (c.drafted - 1))) if c.drafted else ()
        yield Step(drafts, c.width, len(prompt) - 1 + c.position, c.emitted)


def _lookup_steps(
    prompt: Tokens, text: Tokens, eos_tokens: Sequence[int], output_tokens: int
) -> Iterator[Step]:
    """Its prompt lookup: the first place, from the left, of the longest ending of at most two tokens.

    It looks up nothing for the last token that may be written, and otherwise drafts past the end.
    """
    at = 0
    while at < len(text):
        seen = np.concatenate([prompt, text[:at]])
        block = _first_match(seen) if at < output_tokens - 1 else seen[:0]
        ends = np.flatnonzero(np.isin(block, eos_tokens))
        block = block[: int(ends[0])] if len(ends) else block
        emitted = accepted_prefix(block, text[at:]) + 1
        yield Step((), len(block) + 1, len(seen) - 1, emitted)
        at += emitted


def _first_match(seen: Tokens) -> Tokens:
    for size in range(min(LOOKUP_NGRAM, len(seen) - 1), 0, -1):
        windows = np.lib.stride_tricks.sliding_window_view(seen, size)
        for place in np.flatnonzero((windows == seen[-size:]).all(axis=1)):
            start = int(place) + size
            if start < len(seen):
                return seen[start : start + LOOKUP_TOKENS]
    return seen[:0]


def _generate(target: Any, drafter: Any, engine: Engine, prompt: Tokens, output_tokens: int) -> _Timed:
    options: dict[str, Any] = {}
    if engine.early_exit:
        options["assistant_early_exit"] = engine.early_exit
        drafter = None
    elif drafter is not None:
        options["assistant_model"] = drafter
    else:
        options["prompt_lookup_num_tokens"] = LOOKUP_TOKENS
    layers = int(target.config.num_hidden_layers)
    ids = torch.as_tensor(prompt, device=target.device)[None].long()
    done = _Timed([], np.empty(0, dtype=np.int32), 0.0, 0.0)
    with (
        _drafting(drafter if drafter is not None else target, engine.length),
        _logged([m for m in (target, drafter) if m is not None], target, layers, done),
    ):
        done.begun = time.perf_counter()
        with torch.inference_mode():
            out = target.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=output_tokens,
                **options,
            )
        done.ended = time.perf_counter()
    done.text = out[0, len(prompt) :].cpu().numpy().astype(np.int32)
    return done


@contextmanager
def _drafting(drafter: Any, length: int) -> Iterator[None]:
    """Constant draft length, no stop on doubt: set on a copy of the drafter's generation settings."""
    before = drafter.generation_config
    drafter.generation_config = copy.deepcopy(before)
    drafter.generation_config.num_assistant_tokens = length
    drafter.generation_config.num_assistant_tokens_schedule = "constant"
    drafter.generation_config.assistant_confidence_threshold = 0.0
    try:
        yield
    finally:
        drafter.generation_config = before


@contextmanager
def _logged(networks: Sequence[Any], target: Any, layers: int, done: _Timed) -> Iterator[None]:
    """Note each forward's width and time; a target that exits early counts as the drafter."""
    for network in networks:
        original = network.forward

        @functools.wraps(original)
        def noted(*args: Any, original: Any = original, network: Any = network, **kwargs: Any) -> Any:
            ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
            full = network is target and int(target.config.num_hidden_layers) == layers
            begun = time.perf_counter()
            found = original(*args, **kwargs)
            done.forwards.append((full, int(ids.shape[1]), begun, time.perf_counter()))
            return found

        network.forward = noted
    try:
        yield
    finally:
        for network in networks:
            del network.forward
