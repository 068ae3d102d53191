"""Is acceptance along a block independent with one rate (E6)?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from simspec.claims.empirical.along import later_less_first
from simspec.claims.empirical.finding import Finding, Question, spread, undecided
from simspec.claims.empirical.resample import Floats, both_sides, ratio
from simspec.claims.empirical.setting import Places, Setting, firsts, places

ONE_RATE = Question(
    id="E6a",
    words="Along the block, each draft is accepted with one and the same rate, given that all before it were",
    null="P(place j accepted | places before j accepted) is the same for every j, over prompts",
    statistic=(
        "that rate at places 2 and later minus that at place 1; sign flips of prompts' scores of all places "
        "together"
    ),
    source="arXiv 2211.17192, assumption of Eq. 1; SpecRouter's expected tokens (S3)",
    because=(
        "Accepted runs are geometric exactly if these rates are constant. Over every start; places with "
        "fewer than 5 chances a prompt are left out. Two things break it: texts of unlike acceptance (E9), "
        "whose easy ones are the ones that reach later places, and dependence within a text (E6b)."
    ),
)
SHUFFLED = Question(
    id="E6b",
    words="Within a text, acceptances are independent with that text's own rate: accepted runs are geometric",
    null="in each text, the order of accepted and refused first drafts is exchangeable",
    statistic=(
        "mean accepted run over all starts (tokens, cut at the block length) minus its mean when the order "
        "is shuffled within texts; the shuffles give the p value, exact under the null"
    ),
    source="arXiv 2211.17192, assumption of Eq. 1, allowing each text a rate of its own",
    because=(
        "Of an autoregressive drafter, whose accepted runs follow from its first drafts. Above 0: hard "
        "places come in clumps, and runs are longer than the acceptance rate says; below 0: shorter. A text "
        "whose acceptance drifts (E5a) has clumps, too."
    ),
)


def one_rate(
    by_place: Places, subject: str, counts: Floats, resamples: int, luck: np.random.Generator
) -> Finding:
    """E6a for one drafter."""
    return later_less_first(
        ONE_RATE,
        subject,
        by_place.accepted,
        by_place.tried,
        counts,
        resamples,
        luck,
        name="accepted",
        alike="every draft has the same fate",
    )


def summed_runs(accepted: NDArray[np.bool_], longest: int) -> NDArray[np.int64]:
    """Sum over starts of the accepted run from there, at most ``longest``; shape (T, R) gives (R,)."""
    run = np.zeros(accepted.shape[1], dtype=np.int64)
    total = np.zeros_like(run)
    for here in accepted[::-1]:
        run = (run + 1) * here
        total += np.minimum(run, longest)
    return total


def shuffled_runs(
    texts: Sequence[NDArray[np.bool_]],
    longest: int,
    subject: str,
    counts: Floats,
    resamples: int,
    luck: np.random.Generator,
) -> Finding:
    """E6b for one drafter.

    Args:
        texts: for each prompt, whether the first draft from each position is accepted, in order.
        longest: the block length.
    """
    size = np.array([len(t) for t in texts], dtype=np.float64)
    observed = np.array([summed_runs(t[:, None], longest)[0] for t in texts], dtype=np.float64)
    good = np.array([t.sum() for t in texts], dtype=np.float64)
    if not ((good > 0) & (good < size)).any():
        return undecided(SHUFFLED, subject, "in no text are some drafts accepted and others refused", 0)
    totals = np.zeros(resamples)
    expected = np.zeros(len(texts))
    for p, text in enumerate(texts):
        orders = luck.permuted(np.tile(text, (resamples, 1)), axis=1)
        runs = summed_runs(orders.T, longest)
        totals += runs
        expected[p] = runs.mean()
    arrangements = (gammaln(size + 1) - gammaln(good + 1) - gammaln(size - good + 1)).sum()
    tested = both_sides(float(observed.sum()), totals, float(np.exp(-arrangements)))
    value = ratio(observed - expected, size, counts)[0]
    return Finding(
        SHUFFLED,
        subject,
        None,
        value=value,
        n=len(texts),
        trials=int(size.sum()),
        tested=tested,
        # Under the null: the bootstrap's is wider where runs are long.
        standard_error=spread(totals / size.sum()),
        numbers={
            "mean_run": float(observed.sum() / size.sum()),
            "mean_run_shuffled": float(expected.sum() / size.sum()),
        },
    )


def ask_blocks(asked: Setting) -> list[Finding]:
    """E6a and E6b for every drafter."""
    trace, found = asked.trace, []
    for drafter in trace.drafters:
        found.append(
            one_rate(
                places(trace, drafter), drafter, asked.counts, asked.resamples, asked.luck("E6a", drafter)
            )
        )
        at = firsts(trace, drafter)
        if trace.manifest.models[drafter].kind != "autoregressive":
            reason = "only an autoregressive drafter's accepted runs follow from its first drafts"
            found.append(undecided(SHUFFLED, drafter, reason))
            continue
        texts = [at.accepted[at.prompt == p] for p in range(asked.prompts)]
        found.append(
            shuffled_runs(
                texts,
                trace.manifest.block_length,
                drafter,
                asked.counts,
                asked.resamples,
                asked.luck("E6b", drafter),
            )
        )
    return found
