"""Are the levels of a chain independent (E3), and is SimScore acceptance (E8)?

Under greedy decoding a token is accepted when it is the verifier's own. At every place of the text with a
draft, with models 1 (drafter), 2 (intermediate), 3 (target) on the same past:
X12: 1's token is 2's own; X23: 2's token is 3's own; X13: 1's token is 3's own. alpha_ij is the mean of Xij.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.claims.empirical.finding import Finding, Question, spread, undecided
from simspec.claims.empirical.resample import Floats, flips, ratio, sums_by
from simspec.claims.empirical.setting import Setting, chains, firsts
from simspec.metrics import estimate

Flags = NDArray[np.bool_]

PRODUCT = Question(
    id="E3a",
    words="Acceptance over two levels is the product of that over each: alpha_13 = alpha_12 alpha_23",
    null="alpha_13 - alpha_12 alpha_23 = 0, over prompts",
    statistic="alpha_13 - alpha_12 alpha_23; sign flips of prompts' scores",
    source="SpecRouter (2505.07680), reading of Eq. 7 with independent levels; S8b of the ledger",
    because=(
        "The difference is the covariance of X12 and X23, plus the share of places where drafter and target "
        "agree on a token that the intermediate refuses. Independence of the levels makes the first zero, "
        "never the second."
    ),
)
SURVIVORS = Question(
    id="E3b",
    words=(
        "What the intermediate accepts, the target accepts at the plain pairwise rate: "
        "P(target accepts | intermediate accepts) = alpha_23"
    ),
    null="P(X13 | X12) - alpha_23 = 0, over prompts",
    statistic="P(X13 | X12) - alpha_23; sign flips of prompts' scores of the covariance of X12 and X23",
    source="SpecRouter (2505.07680), funnel reading of Eq. 7",
    because=(
        "Given X12 the draft is the intermediate's own token, so X13 and X23 are the same there, and the "
        "claim says that X12 and X23 do not covary. Where places that are easy for one model are easy for "
        "the next, survivors are accepted more often than alpha_23 says."
    ),
)
SIMSCORE = Question(
    id="E8",
    words="SimScore, 1 - TV along the text, is the acceptance of greedy decoding",
    null="mean of (argmax agreement - (1 - TV)) = 0, over prompts",
    statistic="argmax agreement - SimScore; sign flips of prompts' sums",
    source="SpecRouter (2505.07680), Eq. 2 and 5 used for greedy chains; S2 of the ledger",
    because=(
        "1 - TV is the acceptance of speculative sampling (S1). With greedy decoding the argmax decides "
        "alone, and either can be the larger. Measured where both models have a distribution: a look-up's is "
        "all on its token."
    ),
)

NEAR_NOTHING = "nothing varies: neither accepts some and refuses others"


@dataclass(frozen=True)
class Level:
    """Sums over one prompt's places, each of shape (P,)."""

    places: Floats
    x12: Floats
    x23: Floats
    x13: Floats
    x12_and_23: Floats


def level(prompt: NDArray[np.int64], x12: Flags, x23: Flags, x13: Flags, prompts: int) -> Level:
    """Sum flags of shape (n,) over the prompts that the places belong to."""
    flags = (np.ones(len(prompt)), x12, x23, x13, x12 & x23)
    return Level(*(sums_by(prompt, f, prompts) for f in flags))


def independence(
    sums: Level, subject: str, counts: Floats, resamples: int, luck: np.random.Generator
) -> tuple[Finding, Finding]:
    """E3a and E3b for one chain of three."""
    used, n = int((sums.places > 0).sum()), sums.places.sum()
    alpha, drawn = {}, {}
    parts = {"alpha_12": sums.x12, "alpha_23": sums.x23, "alpha_13": sums.x13}
    for name, numerator in parts.items():
        alpha[name], drawn[name] = ratio(numerator, sums.places, counts)
    after, after_draws = ratio(sums.x12_and_23, sums.x12, counts)
    if after.value is None or n == 0:
        reason = "the intermediate accepts no draft"
        return undecided(PRODUCT, subject, reason, used), undecided(SURVIVORS, subject, reason, used)
    a12, a23 = sums.x12.sum() / n, sums.x23.sum() / n
    numbers: dict[str, Any] = {name: each.as_json() for name, each in alpha.items()}
    numbers |= {
        "product": float(a12 * a23),
        "accepted_after_intermediate": after.as_json(),
        "covariance": float(sums.x12_and_23.sum() / n - a12 * a23),
        "agree_past_the_intermediate": float((sums.x13 - sums.x12_and_23).sum() / n),
    }
    found = []
    for question, joint, value, draws in (
        (
            PRODUCT,
            sums.x13,
            float(sums.x13.sum() / n - a12 * a23),
            drawn["alpha_13"] - drawn["alpha_12"] * drawn["alpha_23"],
        ),
        (SURVIVORS, sums.x12_and_23, float(after.value - a23), after_draws - drawn["alpha_23"]),
    ):
        # The products' own errors cancel to first order.
        scores = joint - a23 * sums.x12 - a12 * sums.x23 + a12 * a23 * sums.places
        tested = flips(scores, resamples, luck)
        if tested is None:
            found.append(undecided(question, subject, NEAR_NOTHING, used))
            continue
        found.append(
            Finding(
                question,
                subject,
                None,
                value=estimate(value, draws),
                n=used,
                trials=int(n),
                tested=tested,
                standard_error=spread(draws),
                numbers=numbers,
            )
        )
    return found[0], found[1]


def similarity(
    prompt: NDArray[np.int64],
    overlap: Floats,
    agrees: Flags,
    subject: str,
    counts: Floats,
    resamples: int,
    luck: np.random.Generator,
) -> Finding:
    """E8 for one pair; ``overlap`` (1 - TV) and ``agrees`` by place, shape (n,)."""
    size = counts.shape[1]
    places = np.bincount(prompt, minlength=size).astype(np.float64)
    shared, same = sums_by(prompt, overlap, size), sums_by(prompt, agrees, size)
    used = int((places > 0).sum())
    tested = flips(same - shared, resamples, luck)
    if tested is None:
        return undecided(SIMSCORE, subject, "the two numbers are the same at every place", used)
    value, draws = ratio(same - shared, places, counts)
    score, agreement = ratio(shared, places, counts)[0], ratio(same, places, counts)[0]
    return Finding(
        SIMSCORE,
        subject,
        None,
        value=value,
        n=used,
        trials=len(prompt),
        tested=tested,
        standard_error=spread(draws),
        numbers={
            "simscore": score.as_json(),
            "argmax_agreement": agreement.as_json(),
            "places_where_tv_is_wrong_by_half": float(np.mean(np.abs(agrees - overlap) > 0.5)),
        },
    )


def ask_independence(asked: Setting) -> list[Finding]:
    """E3a and E3b for every drafter and intermediate, by the first draft of every start that has one."""
    trace = asked.trace
    found: list[Finding] = []
    for drafter, between in chains(trace):
        at = firsts(trace, drafter)
        sums = level(
            at.prompt,
            trace.drafters[drafter].agreed[between][at.flat] > 0,
            trace.owns[between][at.flat],
            at.accepted,
            asked.prompts,
        )
        luck = asked.luck("E3", drafter, between)
        subject = f"{drafter} > {between} > {trace.target}"
        found += independence(sums, subject, asked.counts, asked.resamples, luck)
    return found


def ask_similarity(asked: Setting) -> list[Finding]:
    """E8 for every pair of models."""
    found = []
    pair: Any
    for pair, rows in asked.trace.pairs.groupby(["model_a", "model_b"], sort=False):
        found.append(
            similarity(
                rows["prompt_id"].to_numpy().astype(np.int64),
                1.0 - rows["tv"].to_numpy().astype(np.float64),
                rows["argmax_agree"].to_numpy().astype(bool),
                f"{pair[0]}, {pair[1]}",
                asked.counts,
                asked.resamples,
                asked.luck("E8", *pair),
            )
        )
    return found
