"""The falsifier: is the chain of lowest predicted time the chain of lowest measured time?

Chains were decoded for real by ``simspec validate``, which timed forwards in the same run. Everything else
that a prediction is made from comes from prompts of the record that were not decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import draw_prompts
from simspec.compare.cut import cut_texts
from simspec.compare.foretold import fit_on, foretell
from simspec.compare.parts import ALL, Part
from simspec.compare.rankings import BatchRanking, Candidate, Ranking, score, summary
from simspec.compare.specrouter.ranking import named
from simspec.compare.validated import Configuration, Validation, read_validation
from simspec.cost.models import CostModel
from simspec.metrics import estimate
from simspec.streams import stream
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

SIMULATED = "replay of the decoded prompts"
# Draws of fewer batches say too little of how times vary for a lead to be called clear.
FEWEST_UNITS = 5


def study(
    trace: Trace,
    costs: list[CostModel],
    asked: Asked,
    say: Progress,
    *,
    validation: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Every variant of Eq. 7 with every source held against measured time.

    Args:
        costs: not looked at: forwards are priced as timed on the machine that decoded.
        validation: a document of ``simspec validate``.

    Returns:
        ``why`` nothing is told, or None and then ``about`` = {device, dtype, processor, cores, rounds,
        output_tokens, decoded, fitted (prompts)}; ``batches.<B>`` as :func:`_batch`; ``summary.<name>`` as
        :func:`~simspec.compare.rankings.summary`; ``errors.<B>`` as :func:`_errors`. Names are
        "variant/source", "joint-drained/visited" (see :func:`~simspec.compare.foretold.foretell`), "replay
        of other prompts" and "replay of the decoded prompts".

    Raises:
        BadInput: when the document is another record's.
    """
    if validation is None:
        return {"why": "no document of simspec validate was given"}
    if "forwards" not in validation:
        return {"why": "the document of simspec validate was written before it kept timed forwards"}
    found = read_validation(validation, trace)
    short = cut_texts(trace, found.output_tokens)
    fitted = draw_prompts(short, asked.draws, asked.seed, np.array(found.fitted))
    batches, rankings = {}, []
    for name, units in found.decoded.items():
        say(f"measured: batch {name}")
        mine = [c for c in found.same_prompts.all if c.batch == int(name)]
        ranking = _rank(short, found, mine, Part(ALL, 0, fitted, fitted), asked, np.array(units))
        batches[name] = _batch(ranking, mine, np.array(units))
        rankings.append(ranking)
    return {
        "why": None,
        "about": {
            "device": found.device,
            "dtype": found.dtype,
            "processor": str(found.machine.get("processor")),
            "cores": found.machine.get("cores"),
            "rounds": found.rounds,
            "output_tokens": found.output_tokens,
            "decoded": len({p for units in found.decoded.values() for unit in units for p in unit}),
            "fitted": len(found.fitted),
        },
        "batches": batches,
        "summary": summary(rankings),
        "errors": {name: _errors(found, int(name)) for name in found.decoded},
    }


def per_token(found: Sequence[Configuration], draws: int, seed: int) -> Floats:
    """Measured seconds a token, all units once and on draws of them, shape (draws + 1, K).

    All configurations are of one batch size; a draw takes the same units for each.
    """
    seconds = np.array([c.unit_seconds for c in found])
    tokens = np.array([c.unit_tokens for c in found], dtype=np.float64)
    size = seconds.shape[1]
    picks = stream(seed, "bootstrap", "units", found[0].batch).integers(0, size, (draws, size))
    picks = np.concatenate([np.arange(size)[None], picks])
    return np.asarray(seconds[:, picks].sum(axis=2) / tokens[:, picks].sum(axis=2)).T


def _rank(
    trace: Trace,
    found: Validation,
    mine: Sequence[Configuration],
    part: Part,
    asked: Asked,
    units: NDArray[np.int64],
) -> Ranking:
    """Predictions and measurements of one batch size."""
    candidates: list[Candidate] = [c.candidate for c in mine]
    cost, batch = found.cost(trace), mine[0].batch
    fitted = fit_on(trace, cost, candidates, (batch,), part.fit, asked.jobs)
    told = {name: times[0] for name, times in foretell(fitted, {batch: np.unique(units)}).items()}
    measured = per_token(mine, asked.draws, asked.seed)
    told[SIMULATED] = np.tile([c.predicted for c in mine], (len(measured), 1))
    ranking = _Measured(
        batch=batch,
        replayed=measured,
        predicted={name: times[0] for name, times in told.items()},
        scores={name: score(times, measured) for name, times in told.items()},
        units=len(units),
    )
    return Ranking(cost, candidates, [ranking], float("nan"), part)


@dataclass(frozen=True)
class _Measured(BatchRanking):
    """``replayed`` is what was measured, over so many batches of prompts; few of them make nothing clear."""

    units: int = 0

    def clear(self) -> bool:
        return self.units >= FEWEST_UNITS and super().clear()


def _batch(ranking: Ranking, mine: Sequence[Configuration], units: NDArray[np.int64]) -> dict[str, Any]:
    """One batch size.

    Returns:
        ``units`` (batches of prompts that every configuration decoded), ``prompts``, ``configurations[]`` =
        {chain, draft_length, semantics, measured (seconds a token), interval, simulated, spread_of_rounds},
        ``best`` (index), ``lead`` (% that the second fastest takes longer), ``lead_interval``, ``clear``,
        ``won`` (share of units in which ``best`` was the fastest), ``predicted.<name>[]`` (seconds a token),
        ``scores.<name>`` = {pick (index), top1, same_chain (whatever the length), regret (%),
        regret_interval, kendall_tau, kendall_tau_interval, median_abs_error, median_error}.
    """
    (found,) = ranking.batches
    measured = found.replayed
    best = int(measured[0].argmin())
    lead = estimate(found.lead()[0], found.lead()[1:])
    each = np.array([c.unit_seconds for c in mine]) / np.array([c.unit_tokens for c in mine])
    configurations = []
    for k, c in enumerate(mine):
        time = estimate(measured[0, k], measured[1:, k])
        configurations.append(
            {
                **named(c.candidate),
                "measured": time.value,
                "interval": [time.low, time.high],
                "simulated": c.predicted,
                "spread_of_rounds": c.spread,
            }
        )
    scores = {}
    for name, kept in found.scores.items():
        told = kept.as_json()
        pick = int(kept.pick[0])
        scores[name] = {
            **{key: told[key] for key in ("pick", "top1", "regret", "regret_interval", "kendall_tau")},
            "kendall_tau_interval": told["kendall_tau_interval"],
            "same_chain": mine[pick].candidate[0] == mine[best].candidate[0],
            "median_abs_error": told["median_abs_error"],
            "median_error": float(np.median(found.predicted[name] / measured[0] - 1.0)),
        }
    return {
        "units": len(units),
        "prompts": len(np.unique(units)),
        "configurations": configurations,
        "best": best,
        "lead": lead.value if len(mine) > 1 else None,
        "lead_interval": [lead.low, lead.high],
        "clear": found.clear(),
        "won": float((each.argmin(axis=0) == best).mean()),
        "predicted": {n: [float(f"{t:.6g}") for t in times] for n, times in found.predicted.items()},
        "scores": scores,
    }


def _errors(found: Validation, batch: int) -> dict[str, Any]:
    """Where simulated time is off, medians over the configurations of a batch size, as shares.

    Returns:
        ``whole`` (simulated over measured, minus 1), ``worst`` (of its absolute values),
        ``simulated_forwards`` (of forwards alone), ``by_tokens`` and ``by_slots``: of the forwards that
        really ran, priced by the table at the longest row's tokens and at the slots of the cache;
        ``overhead``: simulated minus measured time beside forwards, over measured time.
    """
    mine = [c for c in found.same_prompts.all if c.batch == batch]
    whole = np.array([c.predicted / c.measured - 1.0 for c in mine])
    forwards = np.array([c.measured_forward for c in mine])
    beside = [(c.predicted - c.predicted_forward) - (c.measured - c.measured_forward) for c in mine]
    return {
        "whole": float(np.median(whole)),
        "worst": float(np.abs(whole).max()),
        "simulated_forwards": float(np.median([c.predicted_forward for c in mine] / forwards - 1.0)),
        "by_tokens": float(np.median([c.priced_by_tokens for c in mine] / forwards - 1.0)),
        "by_slots": float(np.median([c.priced_by_slots for c in mine] / forwards - 1.0)),
        "overhead": float(np.median(np.array(beside) / [c.measured for c in mine])),
    }
