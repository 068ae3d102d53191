"""When requests come: instants of an open loop, or clients that wait for their answers.

Open-loop instants are drawn from the stream ``arrivals`` alone, so no policy can move them. A closed
loop follows completions, and a faster engine is therefore sent more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.serving.clock import nanoseconds
from simspec.serving.request import NEVER, Request
from simspec.streams import stream

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Poisson:
    """Independent exponential gaps, ``rate`` requests a second."""

    rate: float

    def __post_init__(self) -> None:
        _positive("rate", self.rate)

    def instants(self, count: int, seed: int) -> Ints:
        """Nanoseconds of the first ``count`` arrivals, shape (count,)."""
        return _summed(stream(seed, "arrivals").exponential(1 / self.rate, count))


@dataclass(frozen=True)
class Gamma:
    """Independent gamma gaps; ``variation`` is their standard deviation over their mean, 1 for Poisson."""

    rate: float
    variation: float

    def __post_init__(self) -> None:
        _positive("rate", self.rate)
        _positive("variation", self.variation)

    def instants(self, count: int, seed: int) -> Ints:
        """Nanoseconds of the first ``count`` arrivals, shape (count,)."""
        shape = self.variation**-2
        return _summed(stream(seed, "arrivals").gamma(shape, 1 / (shape * self.rate), count))


@dataclass(frozen=True)
class Listed:
    """Instants as they were, in seconds from the start; they may be equal but not go back."""

    seconds: tuple[float, ...]

    def instants(self, count: int, seed: int) -> Ints:
        """Nanoseconds of the first ``count`` arrivals; ``seed`` is not used.

        Raises:
            BadInput: when there are fewer, or an instant is not a number or before the one ahead of it.
        """
        if count > len(self.seconds):
            raise BadInput(f"{count} arrivals of a list of {len(self.seconds)}")
        at = np.array([nanoseconds(s, f"arrival {i}") for i, s in enumerate(self.seconds[:count])], np.int64)
        back = np.flatnonzero(np.diff(at) < 0)
        if len(back):
            raise BadInput(f"arrival {back[0] + 1} is before the one ahead of it", hint="sort them")
        return at


@dataclass(frozen=True)
class Sizes:
    """Prompt and output tokens of each request, shape (R,) both; ``sessions`` too, where they have any."""

    prompt_tokens: Ints
    output_tokens: Ints
    sessions: Ints | None = None

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "output_tokens"):
            values = getattr(self, name)
            if values.dtype.kind not in "iu":
                raise BadInput(f"{name} are {values.dtype}", allowed="whole numbers")
            low = np.flatnonzero(values < 1)
            if len(low):
                raise BadInput(f"{name} of request {low[0]} is {values[low[0]]}", allowed="at least 1")
        if len(self.prompt_tokens) != len(self.output_tokens):
            raise BadInput(f"{len(self.prompt_tokens)} prompts and {len(self.output_tokens)} outputs")
        if self.sessions is not None and len(self.sessions) != len(self.prompt_tokens):
            raise BadInput(f"{len(self.prompt_tokens)} prompts and {len(self.sessions)} sessions")

    @classmethod
    def alike(cls, count: int, prompt_tokens: int, output_tokens: int) -> Sizes:
        return cls(np.full(count, prompt_tokens), np.full(count, output_tokens))

    def requests(self) -> Iterator[Request]:
        """The requests, numbered from 0; made one by one, so that they need not all be in memory."""
        whose = repeat(NEVER, len(self.prompt_tokens)) if self.sessions is None else self.sessions
        sizes = zip(self.prompt_tokens, self.output_tokens, whose, strict=True)
        for i, (prompt, output, session) in enumerate(sizes):
            yield Request(i, int(prompt), int(output), int(session))


@dataclass(frozen=True)
class OpenLoop:
    """Requests that come when they come.

    Attributes:
        arrivals: (nanoseconds, request), instants not going back; read once, one ahead of time.
    """

    arrivals: Iterable[tuple[int, Request]]


@dataclass(frozen=True)
class ClosedLoop:
    """``clients`` that each send a request, wait for its end, think, and send the next of the list.

    A request without session belongs to its client. ``think_seconds`` is how long each waits between an
    answer and its next request.
    """

    clients: int
    requests: Iterable[Request]
    think_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.clients < 1:
            raise BadInput(f"{self.clients} clients", allowed="at least 1")
        nanoseconds(self.think_seconds, "think_seconds")


def open_loop(process: Poisson | Gamma | Listed, sizes: Sizes, seed: int) -> OpenLoop:
    """As many arrivals as there are sizes."""
    instants = process.instants(len(sizes.prompt_tokens), seed)
    return OpenLoop(zip(map(int, instants), sizes.requests(), strict=True))


def _summed(gaps: NDArray[np.float64]) -> Ints:
    # Each gap is rounded, not the sum: a longer run begins with the same instants.
    return np.cumsum((gaps * 1e9 + 0.5).astype(np.int64))


def _positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise BadInput(f"{name} is {value}", allowed="a finite number above 0")
