"""Does acceptance vary between requests more than chance makes it (E9)?"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from simspec.claims.empirical.finding import Finding, Question, undecided
from simspec.claims.empirical.resample import Floats, sums_by, upper
from simspec.claims.empirical.setting import Firsts, Setting, firsts
from simspec.metrics import estimate

# First drafts that a third of a text must have for its rate to be used.
ENOUGH_IN_A_THIRD = 5

SAME_RATE = Question(
    id="E9a",
    words="All requests have one acceptance rate: their rates differ by no more than chance",
    null="first drafts of all texts are independent with one rate (the accepted ones fall anywhere)",
    statistic=(
        "variance of prompts' rates over what independent acceptance gives (1: no more than chance); "
        "accepted drafts dealt out anew over all drafts, exact under the null, one-sided"
    ),
    source="the premise of S3b: with rates that vary, (1 - a^(g+1)) / (1 - a) at the mean rate errs",
    because=(
        "The only test here whose null takes positions as independent, since that is what is claimed. Clumps "
        "within a text alone would reject it too; E9b is blind to them."
    ),
)
SAME_THROUGHOUT = Question(
    id="E9b",
    words="A text that is accepted more than others at its beginning is not accepted more at its end",
    null="acceptance in the first and in the last third of a text are independent, over prompts",
    statistic=(
        "correlation over prompts of acceptance in the first and in the last third of the text; last thirds "
        "permuted over prompts, one-sided"
    ),
    source="the premise of S3b, free of dependence between neighbours",
    because=(
        "What the two thirds share is the request, not the neighbourhood. numbers.between_prompts is the "
        "spread of the requests' own rates: the root of the covariance."
    ),
)


def same_rate(at: Firsts, subject: str, counts: Floats, resamples: int, luck: np.random.Generator) -> Finding:
    """E9a for one drafter."""
    size = counts.shape[1]
    many = np.bincount(at.prompt, minlength=size)
    good = sums_by(at.prompt, at.accepted, size)
    used = many > 0
    n, a = many[used].astype(np.float64), good[used]
    total, accepted = n.sum(), a.sum()
    if len(n) < 2 or accepted in (0.0, total):
        return undecided(SAME_RATE, subject, "every draft has the same fate", int(used.sum()))

    def over_chance(squares: Floats, sums: Floats, drafts: Floats, prompts: Floats) -> Floats:
        """Squares are sums of a^2 / n over prompts, sums of a, drafts of n; 1 in the mean by chance."""
        rate = sums / drafts
        chance = np.maximum(rate * (1 - rate) * np.maximum(prompts - 1, 1), 1e-12)
        found: Floats = (squares - rate * sums) / chance
        return found

    dealt = luck.multivariate_hypergeometric(many[used], int(accepted), size=resamples, method="marginals")
    everyone = np.full(1, float(len(n)))
    observed = float(
        over_chance(np.array([(a**2 / n).sum()]), np.array([accepted]), np.array([total]), everyone)[0]
    )
    shuffled = over_chance((dealt**2 / n).sum(axis=1), np.array([accepted]), np.array([total]), everyone)
    drawn = counts[:, used]
    draws = over_chance(drawn @ (a**2 / n), drawn @ a, drawn @ n, drawn.sum(axis=1))
    rate = accepted / total
    excess = (observed - 1) * rate * (1 - rate) * (len(n) - 1) / (total - (n**2).sum() / total)
    return Finding(
        SAME_RATE,
        subject,
        None,
        value=estimate(observed, draws),
        n=len(n),
        trials=int(total),
        tested=upper(observed, shuffled),
        numbers={
            "acceptance": float(rate),
            "between_prompts": float(np.sqrt(max(excess, 0.0))),
            "least_rate": float((a / n).min()),
            "greatest_rate": float((a / n).max()),
        },
    )


def same_throughout(
    at: Firsts, texts: Floats, subject: str, counts: Floats, resamples: int, luck: np.random.Generator
) -> Finding:
    """E9b for one drafter; ``texts`` are the texts' lengths, shape (P,)."""
    size = counts.shape[1]
    third = np.floor(3 * at.position / texts[at.prompt]).astype(np.int64)
    many = np.stack([sums_by(at.prompt, third == k, size) for k in range(3)])
    good = np.stack([sums_by(at.prompt, at.accepted & (third == k), size) for k in range(3)])
    used = (many >= ENOUGH_IN_A_THIRD).all(axis=0)
    n = int(used.sum())
    if n < 3:
        reason = f"fewer than 3 texts have {ENOUGH_IN_A_THIRD} drafts in every third"
        return undecided(SAME_THROUGHOUT, subject, reason, n)
    first, middle, last = good[:, used] / many[:, used]
    if np.ptp(first) == 0 or np.ptp(last) == 0:
        return undecided(SAME_THROUGHOUT, subject, "one third of every text has the same acceptance", n)
    x, y = first - first.mean(), last - last.mean()
    observed = float(x @ y)
    order = luck.permuted(np.tile(np.arange(n), (resamples, 1)), axis=1)
    draws, everyone = _correlation(first, last, counts[:, used]), np.ones((1, n))
    return Finding(
        SAME_THROUGHOUT,
        subject,
        None,
        value=estimate(observed / float(np.sqrt((x @ x) * (y @ y))), draws),
        n=n,
        trials=int(many[:, used].sum()),
        tested=upper(observed, y[order] @ x, float(np.exp(-gammaln(n + 1)))),
        # Of a correlation near zero.
        standard_error=1.0 / float(np.sqrt(n - 1)),
        numbers={
            "between_prompts": float(np.sqrt(max(observed / (n - 1), 0.0))),
            # Neighbouring thirds also share what lasts a while and then ends.
            "first_with_middle": _or_none(_correlation(first, middle, everyone)),
            "middle_with_last": _or_none(_correlation(middle, last, everyone)),
        },
    )


def _correlation(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted correlation by draw, weights of shape (draws, n); NaN where nothing varies."""
    total = np.maximum(weights.sum(axis=1), 1.0)
    mean_x, mean_y = weights @ x / total, weights @ y / total
    shared = weights @ (x * y) / total - mean_x * mean_y
    spread_x = weights @ x**2 / total - mean_x**2
    spread_y = weights @ y**2 / total - mean_y**2
    below = np.sqrt(np.maximum(spread_x, 0.0) * np.maximum(spread_y, 0.0))
    found: Floats = np.where(below > 0, shared / np.where(below > 0, below, 1.0), np.nan)
    return found


def _or_none(value: Floats) -> float | None:
    return float(value[0]) if np.isfinite(value[0]) else None


def ask_requests(asked: Setting) -> list[Finding]:
    """E9a and E9b for every drafter."""
    trace, found = asked.trace, []
    length = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    for drafter in trace.drafters:
        at = firsts(trace, drafter)
        found.append(same_rate(at, drafter, asked.counts, asked.resamples, asked.luck("E9a", drafter)))
        found.append(
            same_throughout(at, length, drafter, asked.counts, asked.resamples, asked.luck("E9b", drafter))
        )
    return found
