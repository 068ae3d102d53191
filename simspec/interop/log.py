"""A log of requests: when each arrived, how long its prompt and its output were."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput

Ints = NDArray[np.int64]
NS = 1_000_000_000


@dataclass(frozen=True)
class RequestLog:
    """Requests in order of arrival.

    Attributes:
        at_ns: instants of arrival in whole nanoseconds from the first kept row of the file, (N,), rising.
        prompt_tokens, output_tokens: (N,), each at least 1.
        sessions: a number for each request's session, (N,); None where the file has none.
        source: the file's name and format.
        unit: what the file's instants were taken to be.
        dropped: reason -> rows left out for it.
        reordered: rows that came before a row of the file that arrived later.
    """

    at_ns: Ints
    prompt_tokens: Ints
    output_tokens: Ints
    source: str
    unit: str
    sessions: Ints | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    reordered: int = 0

    def __len__(self) -> int:
        return len(self.at_ns)

    @property
    def span_seconds(self) -> float:
        """From the first arrival to the last."""
        return float(self.at_ns[-1] - self.at_ns[0]) / NS

    @property
    def rate(self) -> float:
        """Requests a second over that span; infinite where all arrive at once."""
        return (len(self) - 1) / self.span_seconds if self.span_seconds else float("inf")

    def window(self, begin_seconds: float, end_seconds: float) -> RequestLog:
        """Requests that arrive in [begin, end), counted from the first; their clock starts at ``begin``.

        Raises BadInput if the window is empty or holds no request.
        """
        begin, end = _ns(begin_seconds, "begin"), _ns(end_seconds, "end")
        first, last = (int(i) for i in np.searchsorted(self.at_ns, [begin, end]))
        if end <= begin or first == last:
            raise BadInput(
                f"no request arrives from {begin_seconds} to {end_seconds} s",
                where=self.source,
                allowed=f"a window within 0 to {self.span_seconds:.3f} s",
            )
        kept = self._rows(slice(first, last))
        return replace(kept, at_ns=kept.at_ns - begin)

    def scaled(self, factor: float) -> RequestLog:
        """Every instant times ``factor``: 0.5 doubles the load. Raises BadInput unless it is positive."""
        exact = _positive(factor, "time scale")
        return replace(self, at_ns=_times(self.at_ns, exact))

    def at_rate(self, requests_per_second: float) -> RequestLog:
        """Scaled in time to this mean rate; the pattern of arrivals stays.

        Raises BadInput unless positive, or where all requests arrive at once.
        """
        wanted = _positive(requests_per_second, "rate")
        span = int(self.at_ns[-1] - self.at_ns[0])
        if not span:
            raise BadInput("all requests arrive at once: there is no rate to change", where=self.source)
        return replace(self, at_ns=_times(self.at_ns, Fraction((len(self) - 1) * NS, span) / wanted))

    def first(self, count: int) -> RequestLog:
        """The first ``count`` requests."""
        return self._rows(slice(0, count))

    def _rows(self, kept: slice) -> RequestLog:
        sessions = None if self.sessions is None else self.sessions[kept]
        return replace(
            self,
            at_ns=self.at_ns[kept],
            prompt_tokens=self.prompt_tokens[kept],
            output_tokens=self.output_tokens[kept],
            sessions=sessions,
        )


def in_order(
    at_ns: Ints,
    prompt_tokens: Ints,
    output_tokens: Ints,
    *,
    source: str,
    unit: str,
    dropped: dict[str, int] | None = None,
    sessions: Ints | None = None,
) -> RequestLog:
    """A log from rows as a file has them: sorted (rows of one instant keep their order), starting at 0.

    Rows without a prompt or without output are left out and counted: a failed request is no request of
    length 0. Raises BadInput if none is left.
    """
    lost = dict(dropped or {})
    keep = np.ones(len(at_ns), dtype=bool)
    for reason, bad in (("no output", output_tokens < 1), ("no prompt", prompt_tokens < 1)):
        count = int((keep & bad).sum())
        if count:
            lost[reason] = lost.get(reason, 0) + count
        keep &= ~bad
    if not keep.any():
        raise BadInput("no request with a prompt and output", where=source)
    at = at_ns[keep]
    late = int((at < np.maximum.accumulate(at)).sum())
    order = np.argsort(at, kind="stable")
    return RequestLog(
        at_ns=(at - at.min())[order],
        prompt_tokens=prompt_tokens[keep][order],
        output_tokens=output_tokens[keep][order],
        source=source,
        unit=unit,
        sessions=None if sessions is None else sessions[keep][order],
        dropped=lost,
        reordered=late,
    )


def _times(at_ns: Ints, factor: Fraction) -> Ints:
    """Whole nanoseconds times a fraction, rounded down; in Python's integers, which do not overflow."""
    return np.array([int(t) * factor.numerator // factor.denominator for t in at_ns], dtype=np.int64)


def _positive(value: float, name: str) -> Fraction:
    if not (np.isfinite(value) and 0 < value <= 1e9):
        raise BadInput(f"{name} {value}", allowed="above 0, at most 1e9")
    return Fraction(value).limit_denominator(10**9) or Fraction(value)


def _ns(seconds: float, name: str) -> int:
    if not (np.isfinite(seconds) and 0 <= seconds <= 1e9):
        raise BadInput(f"{name} of the window {seconds} s", allowed="0 to 1e9 s")
    return round(seconds * NS)
