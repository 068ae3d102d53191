"""The same question of every place along a block: is a rate what it is at the first place?"""

from __future__ import annotations

import numpy as np

from simspec.claims.empirical.finding import Finding, Question, spread, undecided
from simspec.claims.empirical.resample import Floats, even_scores, flips, ratio
from simspec.metrics import estimate


def later_less_first(
    question: Question,
    subject: str,
    scores: Floats,
    tried: Floats,
    counts: Floats,
    resamples: int,
    luck: np.random.Generator,
    *,
    name: str,
    alike: str,
) -> Finding:
    """The rate at places 2 and later minus that at place 1, tested by sign flips of prompts.

    Args:
        scores, tried: sums by prompt and place, and chances behind them, shape (P, places).
        counts: how often each bootstrap draw has each prompt, shape (draws, P).
        name: what the rate is called among the finding's numbers.
        alike: why nothing can be decided where no prompt's score differs from the rest.
    """
    used = int((tried.sum(axis=1) > 0).sum())
    if tried.shape[1] < 2:
        return undecided(question, subject, "fewer than two places of the block have enough chances", used)
    tested = flips(even_scores(scores, tried), resamples, luck)
    if tested is None:
        return undecided(question, subject, alike, used)
    first, first_draws = ratio(scores[:, 0], tried[:, 0], counts)
    later, later_draws = ratio(scores[:, 1:].sum(axis=1), tried[:, 1:].sum(axis=1), counts)
    assert first.value is not None
    assert later.value is not None
    draws = later_draws - first_draws
    return Finding(
        question,
        subject,
        None,
        value=estimate(later.value - first.value, draws),
        n=used,
        trials=int(tried.sum()),
        tested=tested,
        standard_error=spread(draws),
        numbers={
            "places": [
                {
                    "place": j + 1,
                    "chances": int(tried[:, j].sum()),
                    name: ratio(scores[:, j], tried[:, j], counts)[0].as_json(),
                }
                for j in range(tried.shape[1])
            ]
        },
    )
