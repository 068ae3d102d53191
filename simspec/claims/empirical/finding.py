"""A question put to a trace, and what the trace says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simspec.claims.empirical.resample import PValue, holm
from simspec.metrics import Estimate

# A null that is not rejected has not been shown to hold. "holds" and "refuted" are for statements about
# the recorded numbers themselves, which need no test.
Verdict = Literal["holds", "refuted", "rejected", "not rejected", "not decidable here"]

# Chance of even one false rejection over all tests of a trace.
FALSE_ALARMS = 0.05
# "Detectable" means: found with this chance.
POWER = 0.8


@dataclass(frozen=True)
class Question:
    """What is asked, the same for every trace.

    Attributes:
        id: such as ``E3a``.
        words: the claim as the theory supposes it.
        null: what the test takes to be true until shown otherwise, or the rule where there is no test.
        statistic: what ``value`` is, and what the p value is computed from.
        source: where the theory supposes it.
        because: why it matters, and what the test can and cannot tell.
    """

    id: str
    words: str
    null: str
    statistic: str
    source: str
    because: str


@dataclass(frozen=True)
class Finding:
    """An answer for one subject (a drafter, a pair, a chain, a cost curve).

    Attributes:
        verdict: None until the whole family of tests is known (:func:`judged`).
        value: the effect, with its 95% interval by bootstrap over prompts.
        n: prompts (the independent units), and ``trials``: positions, starts or rows behind them.
        tested: the p value and the least one that so few prompts allow; None where there is no test.
        standard_error: of ``value``, for the effect that could have been detected.
        p_adjusted: Holm's, over the family.
        detectable: the smallest effect that the strictest step of the family finds with chance POWER.
        note: the reason for a verdict, with numbers.
        numbers: more, by name.
    """

    question: Question
    subject: str
    verdict: Verdict | None
    value: Estimate = field(default_factory=lambda: Estimate(None, None, None))
    n: int = 0
    trials: int = 0
    tested: PValue | None = None
    standard_error: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None
    note: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Keys: see :func:`simspec.claims.empirical.check.document`."""
        asked = self.question
        return {
            "id": asked.id,
            "subject": self.subject,
            "verdict": self.verdict,
            "words": asked.words,
            "null": asked.null,
            "statistic": asked.statistic,
            "value": self.value.value,
            "interval": [self.value.low, self.value.high],
            "n": self.n,
            "trials": self.trials,
            "p_value": None if self.tested is None else self.tested.p,
            "p_adjusted": self.p_adjusted,
            "family": self.tested is not None,
            "detectable": self.detectable,
            "exact": False,
            "seconds": round(self.seconds, 4),
            "source": asked.source,
            "because": asked.because,
            "note": self.note,
            "numbers": self.numbers,
        }


def undecided(question: Question, subject: str, reason: str, n: int = 0) -> Finding:
    """A question that this trace cannot answer."""
    return Finding(question, subject, "not decidable here", n=n, note=reason)


def spread(draws: NDArray[np.float64]) -> float | None:
    """Standard error from bootstrap draws; None with fewer than two."""
    kept = draws[np.isfinite(draws)]
    return float(kept.std(ddof=1)) if len(kept) > 1 else None


def judged(findings: Sequence[Finding], level: float = FALSE_ALARMS) -> list[Finding]:
    """Holm's verdicts over all findings that have a test, as one family.

    A test whose least possible p value is above ``level`` / (members) cannot reject on its own, whatever
    the data: where it does not, it is reported as not decidable. It stays a member, so that the others are
    no less careful.
    """
    members = [f.tested.p for f in findings if f.tested is not None]
    adjusted = iter(holm(np.array(members)).tolist())
    strictest = level / max(len(members), 1)
    reach = NormalDist().inv_cdf(1 - strictest / 2) + NormalDist().inv_cdf(POWER)
    done = []
    for finding in findings:
        if finding.tested is None:
            done.append(finding)
            continue
        p_adjusted = next(adjusted)
        verdict: Verdict = "rejected" if p_adjusted <= level else "not rejected"
        note = finding.note
        if verdict == "not rejected" and finding.tested.least > strictest:
            verdict = "not decidable here"
            note = (
                f"the least p value that the data allow is {finding.tested.least:.2g}, above "
                f"{level:g} / {len(members)} tests = {strictest:.2g}: too few prompts. {note}"
            ).strip()
        done.append(
            replace(
                finding,
                verdict=verdict,
                note=note,
                p_adjusted=p_adjusted,
                detectable=None if finding.standard_error is None else reach * finding.standard_error,
            )
        )
    return done
