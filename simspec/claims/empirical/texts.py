"""Is acceptance the same throughout a text and across kinds of text (E5)?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from simspec.claims.empirical.finding import Finding, Question, spread, undecided
from simspec.claims.empirical.resample import Floats, flips, ratio, sums_by, upper
from simspec.claims.empirical.setting import Firsts, Setting, firsts
from simspec.metrics import estimate

TREND = Question(
    id="E5a",
    words="Acceptance does not depend on the place in the text",
    null="within a text, acceptance and position do not covary, over prompts",
    statistic="change of acceptance per 100 tokens, within texts; sign flips of prompts' covariances",
    source="every closed form with one acceptance rate; users report gains that fade along a text",
    because=(
        "First drafts of all starts that have one. A straight line is fitted within texts, so that texts of "
        "unlike acceptance do not pass for a trend. Dependence of neighbours does no harm: the prompt is the "
        "unit. A rise that falls again later is not seen."
    ),
)
CATEGORY = Question(
    id="E5b",
    words="Acceptance does not depend on the category of the prompt",
    null="which category a prompt is in says nothing about its acceptance (labels can be exchanged)",
    statistic=(
        "acceptance in the best category minus that in the worst; the p value is of the variance between "
        "categories, labels permuted over whole prompts"
    ),
    source="every closed form with one acceptance rate; users report gains that differ by task",
    because="Best and worst are picked from these data, so the interval's middle errs upward.",
)


def trend(at: Firsts, subject: str, counts: Floats, resamples: int, luck: np.random.Generator) -> Finding:
    """E5a for one drafter."""
    size = counts.shape[1]
    many = sums_by(at.prompt, np.ones(len(at.prompt)), size)
    middle = sums_by(at.prompt, at.position.astype(np.float64), size) / np.maximum(many, 1.0)
    rate = sums_by(at.prompt, at.accepted, size) / np.maximum(many, 1.0)
    place = (at.position - middle[at.prompt]) / 100.0
    # Taking the rate off changes no sum, and leaves exact zeros where all drafts have one fate.
    moves = sums_by(at.prompt, place * (at.accepted - rate[at.prompt]), size)
    width = sums_by(at.prompt, place**2, size)
    used = int((many > 0).sum())
    tested = flips(moves, resamples, luck)
    if tested is None:
        return undecided(TREND, subject, "in no text are some drafts accepted and others refused", used)
    slope, draws = ratio(moves, width, counts)
    return Finding(
        TREND,
        subject,
        None,
        value=slope,
        n=used,
        trials=len(at.prompt),
        tested=tested,
        standard_error=spread(draws),
        numbers={"longest_text": int(at.position.max()) + 1},
    )


def by_category(
    at: Firsts,
    category: NDArray[np.str_],
    subject: str,
    counts: Floats,
    resamples: int,
    luck: np.random.Generator,
) -> Finding:
    """E5b for one drafter; ``category`` by prompt, shape (P,)."""
    size = counts.shape[1]
    many = sums_by(at.prompt, np.ones(len(at.prompt)), size)
    good = sums_by(at.prompt, at.accepted, size)
    kept = many > 0
    names, which = np.unique(category[kept], return_inverse=True)
    if len(names) < 2:
        return undecided(CATEGORY, subject, "the prompts are of one category", int(kept.sum()))
    rate = good.sum() / many.sum()
    if rate in (0.0, 1.0):
        return undecided(CATEGORY, subject, "every draft has the same fate", int(kept.sum()))
    off, weight = good[kept] - rate * many[kept], many[kept]

    def between(labels: NDArray[np.int64]) -> Floats:
        """Variance between categories, weighted, up to a factor; labels of shape (resamples, prompts)."""
        total = np.zeros(len(labels))
        for k in range(len(names)):
            mine = (labels == k).astype(np.float64)
            total += (mine @ off) ** 2 / (mine @ weight)
        return total

    observed = float(between(which[None])[0])
    shuffled = between(luck.permuted(np.tile(which, (resamples, 1)), axis=1))
    sizes = np.bincount(which)
    # Arrangements of the labels; equal sizes can be told apart only up to the categories' names.
    arrangements = gammaln(len(which) + 1) - gammaln(sizes + 1).sum()
    alike = gammaln(np.unique(sizes, return_counts=True)[1] + 1).sum()
    rates = {str(name): ratio(good * (category == name), many * (category == name), counts) for name in names}
    values = {name: found[0].value or 0.0 for name, found in rates.items()}
    best, worst = max(values, key=lambda k: values[k]), min(values, key=lambda k: values[k])
    draws = rates[best][1] - rates[worst][1]
    return Finding(
        CATEGORY,
        subject,
        None,
        value=estimate(values[best] - values[worst], draws),
        n=int(kept.sum()),
        trials=len(at.prompt),
        tested=upper(observed, shuffled, float(np.exp(alike - arrangements))),
        standard_error=spread(draws),
        note=f"best: {best}, worst: {worst}",
        numbers={"acceptance": {name: found[0].as_json() for name, found in rates.items()}},
    )


def ask_texts(asked: Setting) -> list[Finding]:
    """E5a and E5b for every drafter."""
    trace, found = asked.trace, []
    category = trace.prompts["category"].to_numpy().astype(str)
    for drafter in trace.drafters:
        at = firsts(trace, drafter)
        if not len(at.flat):
            found += [undecided(q, drafter, "it drafted nothing") for q in (TREND, CATEGORY)]
            continue
        found.append(trend(at, drafter, asked.counts, asked.resamples, asked.luck("E5a", drafter)))
        found.append(
            by_category(at, category, drafter, asked.counts, asked.resamples, asked.luck("E5b", drafter))
        )
    return found
