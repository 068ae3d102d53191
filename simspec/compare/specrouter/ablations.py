"""What an intermediate verifier and a validity mask are worth: without each, replayed and as measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.parts import parts
from simspec.compare.replayed import replay_all
from simspec.compare.specrouter.measured import FEWEST_UNITS, per_token
from simspec.compare.specrouter.ranking import named
from simspec.compare.validated import Configuration, read_validation
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.metrics import estimate, percent_over
from simspec.speculation.chains import all_chains
from simspec.traces.index import Trace

Floats = NDArray[np.float64]


def study(
    trace: Trace,
    costs: list[CostModel],
    asked: Asked,
    say: Progress,
    *,
    validation: dict[str, Any] | None = None,
    critic: dict[str, Any] | None = None,
    masks: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Chains of three against pairs, and marking cache entries against moving them.

    Args:
        validation, critic, masks: documents of ``simspec validate``, ``critic`` and ``masks``.

    Returns:
        ``replayed.<cost>`` = {``label``, ``batches.<B>`` as :func:`_without_middle`}; ``decoded`` = {``why``
        nothing is told or None, ``batches.<B>`` as :func:`_decoded`}; ``critic`` as :func:`_critic`;
        ``masks`` as :func:`_masks`.

    Raises:
        BadInput: when the validation is another record's, or a document lacks what it should hold.
    """
    decoded = _all_decoded(trace, asked, validation)
    read = {"critic": _whole("critic", _critic, critic), "masks": _whole("masks", _masks, masks)}
    divided = parts(trace, asked.draws, asked.seed, split=True)
    pool = list(trace.manifest.models)
    chains = all_chains(pool, trace.target, set(pool) - set(trace.verifiers))
    candidates = [(c, n) for c in chains if c.drafter for n in asked.lengths]
    scored = [part.score for part in divided]
    told = replay_all(trace, costs, candidates, scored, asked.batches, asked.jobs, say)
    found: dict[str, Any] = {}
    for c, cost in enumerate(costs):
        able = [k for k, (chain, _) in enumerate(candidates) if set(chain.levels) <= cost.models]
        if not any(candidates[k][0].intermediates for k in able):
            continue
        batches = {}
        for b in asked.batches:
            # Shape (halves, draws + 1, candidates).
            seconds = np.stack([[told[k].seconds[c, d, b] for k in able] for d in range(len(scored))])
            batches[str(b)] = _without_middle([candidates[k] for k in able], np.moveaxis(seconds, 1, 2))
        found[cost.name] = {"label": cost.label, "batches": batches}
    return {"replayed": found, "decoded": decoded, **read}


def _whole(
    name: str, read: Callable[[dict[str, Any] | None], dict[str, Any]], document: dict[str, Any] | None
) -> dict[str, Any]:
    """What is read of a document; a key that is missing or of another kind is the document's fault."""
    try:
        return read(document)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        raise BadInput(
            f"does not hold what is needed: {error!r}", where=name, hint=f"measure with simspec {name}"
        ) from error


def _without_middle(candidates: Sequence[tuple[Any, int]], seconds: Floats) -> dict[str, Any]:
    """The best triple against the best pair of its drafter, and against the best pair of all.

    Each is the fastest of the half of the prompts that is not scored, so that no choice is flattered by its
    own prompts; times are summed over both halves.

    Args:
        seconds: seconds a token, shape (halves, draws + 1, candidates).

    Returns:
        ``triple[]``, ``own_pair[]`` and ``best_pair[]`` (what each half was decoded with) and, in % of the
        pair's time that the triple takes longer, ``over_own_pair``, ``over_best_pair`` with ``_interval``.
    """
    triples = [k for k, (chain, _) in enumerate(candidates) if chain.intermediates]
    pairs = [k for k, (chain, _) in enumerate(candidates) if not chain.intermediates]
    chosen: dict[str, list[int]] = {"triple": [], "own_pair": [], "best_pair": []}
    for half in range(len(seconds)):
        tuned = seconds[len(seconds) - 1 - half, 0]
        triple = min(triples, key=lambda k: float(tuned[k]))
        own = [k for k in pairs if candidates[k][0].drafter == candidates[triple][0].drafter]
        for name, among in (("triple", [triple]), ("own_pair", own), ("best_pair", pairs)):
            chosen[name].append(min(among, key=lambda k: float(tuned[k])))
    time = {name: sum(seconds[h, :, k] for h, k in enumerate(ks)) for name, ks in chosen.items()}
    out: dict[str, Any] = {name: [named(candidates[k]) for k in ks] for name, ks in chosen.items()}
    for name in ("own_pair", "best_pair"):
        out |= _more(f"over_{name}", np.asarray(time["triple"]), np.asarray(time[name]))
    return out


def _more(name: str, times: Floats, others: Floats) -> dict[str, Any]:
    """How many % longer, with its interval over the draws after the first."""
    more = np.asarray(percent_over(times, others))
    found = estimate(more[0], more[1:])
    return {name: found.value, f"{name}_interval": [found.low, found.high]}


def _all_decoded(trace: Trace, asked: Asked, validation: dict[str, Any] | None) -> dict[str, Any]:
    if validation is None or "forwards" not in validation:
        return {"why": "no document of simspec validate with the time of every batch was given"}
    read = read_validation(validation, trace)
    batches = {}
    for name in read.decoded:
        mine = [c for c in read.same_prompts.all if c.batch == int(name)]
        if any(len(c.chain) > 2 for c in mine) and any(len(c.chain) == 2 for c in mine):
            batches[name] = _decoded(mine, asked)
    return {"why": None, "batches": batches}


def _decoded(mine: Sequence[Configuration], asked: Asked) -> dict[str, Any]:
    """The fastest triple that was decoded against the pairs, as measured.

    Each is the fastest as measured, so both sides are a little flattered. Paired: draws are of batches of
    prompts, which every configuration decoded.

    Returns:
        ``units``, ``triple``, ``own_pair`` (None where no pair of its drafter was decoded), ``best_pair``,
        ``over_own_pair``, ``over_best_pair`` (%) and their ``_interval`` (with few units, of nulls).
    """
    units = len(mine[0].unit_seconds)
    times = per_token(mine, asked.draws if units >= FEWEST_UNITS else 0, asked.seed)
    order = np.argsort(times[0], kind="stable").tolist()
    triple = next(k for k in order if len(mine[k].chain) > 2)
    best = next(k for k in order if len(mine[k].chain) == 2)
    own = [k for k in order if len(mine[k].chain) == 2 and mine[k].chain[0] == mine[triple].chain[0]]
    out: dict[str, Any] = {
        "units": units,
        "triple": named(mine[triple].candidate),
        "own_pair": named(mine[own[0]].candidate) if own else None,
        "best_pair": named(mine[best].candidate),
        **_more("over_best_pair", times[:, triple], times[:, best]),
        "over_own_pair": None,
        "over_own_pair_interval": [None, None],
    }
    return out | (_more("over_own_pair", times[:, triple], times[:, own[0]]) if own else {})


def _critic(document: dict[str, Any] | None) -> dict[str, Any]:
    """A chain against itself without its middle, at one draft length, decoded for real.

    Returns:
        ``why`` nothing is told or None, ``chain``, ``draft_length``, ``about``,
        ``configurations.<name>.<B>`` = {prompts, over_pair (%), interval}.
    """
    if document is None:
        return {"why": "no document of simspec critic was given"}
    found: dict[str, Any] = {}
    for name, entry in document["configurations"].items():
        if name in ("target", "pair"):
            continue
        found[name] = {}
        for batch, times in entry["batches"].items():
            value, low, high = (times["time_over_pair"][key] for key in ("value", "low", "high"))
            found[name][batch] = {
                "prompts": times["requests"],
                "over_pair": 100.0 * (value - 1.0),
                "interval": [None if end is None else 100.0 * (end - 1.0) for end in (low, high)],
            }
    return {
        "why": None,
        "chain": document["chain"],
        "draft_length": document["length"],
        "about": _about(document),
        "configurations": found,
    }


def _masks(document: dict[str, Any] | None) -> dict[str, Any]:
    """Ways of keeping caches in order over marking and rare packing, decoded for real.

    Returns:
        ``why`` nothing is told or None, ``about``, ``cells[]`` = {chain, draft_length, batch, output_tokens,
        prompt_tokens (mean), rounds, equal (rounds with equal texts), ``ways.<way>`` = {seconds_per_token,
        forward, choosing, packing, rest (medians over rounds), packed_per_cycle, slots_over_tokens (means),
        ``over_mask`` (%, the median over rounds, each with itself), ``range`` (least and most)}}.
    """
    if document is None:
        return {"why": "no document of simspec masks was given"}
    cells = []
    for cell in document["cells"]:
        rounds = cell["rounds"]
        ways = {}
        for way in document["ways"]:
            mine = [r["ways"][way] for r in rounds]
            more = [
                100.0 * (m["seconds_per_token"] / r["ways"]["mask"]["seconds_per_token"] - 1.0)
                for m, r in zip(mine, rounds, strict=True)
            ]
            timed = ("seconds_per_token", "forward", "choosing", "packing", "rest")
            ways[way] = {
                **{key: float(np.median([m[key] for m in mine])) for key in timed},
                "packed_per_cycle": float(np.mean([m["packed"] / m["cycles"] for m in mine])),
                "slots_over_tokens": float(np.mean([m["slots_over_tokens"] for m in mine])),
                "over_mask": float(np.median(more)),
                "range": [min(more), max(more)],
            }
        cells.append(
            {
                **{key: cell[key] for key in ("chain", "draft_length", "batch", "output_tokens")},
                "prompt_tokens": float(np.mean([n for r in rounds for n in r["prompt_tokens"]])),
                "rounds": len(rounds),
                "equal": sum(r["equal"] for r in rounds),
                "ways": ways,
            }
        )
    return {"why": None, "about": _about(document), "cells": cells}


def _about(document: dict[str, Any]) -> dict[str, Any]:
    machine = document["machine"]
    return {
        "device": document["device"],
        "dtype": document["dtype"],
        "processor": machine["processor"],
        "cores": machine["cores"],
    }
