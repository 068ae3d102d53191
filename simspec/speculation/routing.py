"""What picks the chain and the draft length of every cycle, for many batches at once.

The bulk form of :mod:`simspec.speculation.schedulers`. A router is its frozen parameters; what
it remembers is a dictionary of arrays, one row a *decider*: a batch whose requests all take the
same candidate, or a request that takes its own. It is shown a :class:`View` before a cycle and
what the cycle did (:class:`Seen`) after it, never a verdict that is still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.chains import Chain
from simspec.speculation.schedulers import ChainScheduler, Past

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Candidate = tuple[Chain, int]
State = dict[str, NDArray[Any]]

# Where acceptance is learned from. ``realised``: verdicts of the chain that ran. ``simscore``: 1 - TV
# of its neighbours, at the places that they both read. ``simscore-all``: 1 - TV of all pairs of models
# along the emitted text, which would need every model to read it (and is not charged).
Evidence = Literal["realised", "simscore", "simscore-all"]


@dataclass(frozen=True)
class Pool:
    """The candidates of a router, and the models in them by number.

    Attributes:
        candidates: chains with their draft lengths, 0 for the target alone.
        names: models; their numbers are their places here.
        target: the target's name.
        lookups: models that keep no cache and draft in one call.
        at_once: tokens that one forward of a drafter gives.
    """

    candidates: tuple[Candidate, ...]
    names: tuple[str, ...]
    target: str
    lookups: frozenset[str]
    at_once: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def drafter(self) -> Ints:
        """Number of each candidate's drafter, -1 without one, shape (K,)."""
        return self._numbers([c.drafter for c, _ in self.candidates])

    @cached_property
    def middle(self) -> Ints:
        """Number of each candidate's intermediate, -1 without one, shape (K,)."""
        return self._numbers([c.intermediates[0] if c.intermediates else None for c, _ in self.candidates])

    @property
    def plain(self) -> int | None:
        """The candidate that is the target alone, if there is one."""
        return next((k for k, (c, _) in enumerate(self.candidates) if c.drafter is None), None)

    def pair(self, lower: str, upper: str) -> int:
        """Number of an ordered pair of models among ``len(names) ** 2``."""
        return self.names.index(lower) * len(self.names) + self.names.index(upper)

    def _numbers(self, models: list[str | None]) -> Ints:
        return np.array([-1 if m is None else self.names.index(m) for m in models], dtype=np.int64)


@dataclass(frozen=True)
class View:
    """What a router may know before a cycle, for D deciders.

    Attributes:
        cycle: cycles that the batches have behind them.
        request: a number of each decider that is its own, shape (D,).
        rows: live requests of its batch, (D,).
        context: mean tokens before the cycle, (D,).
        lag: for each model, most tokens that a live request of it has not been read by it, (D, models).
        last: the candidate of the last cycle, -1 before the first, (D,).
        seconds: what a forward of a model over that many rows takes, given its number and a width
            that broadcasts with (D,) or (D, W): a profile of the machine, not a verdict.
        overhead: fixed seconds of each cycle.
        offered: which candidates may be taken, (D, K); all of them where it is None.
    """

    cycle: int
    request: Ints
    rows: Ints
    context: Floats
    lag: Ints
    last: Ints
    seconds: Callable[[int, Ints], Floats]
    overhead: float
    offered: Bools | None = None

    def among(self, scores: Floats, otherwise: float) -> Floats:
        """Scores of the candidates, (D, K), and ``otherwise`` of those that are not offered."""
        return scores if self.offered is None else np.where(self.offered, scores, otherwise)


@dataclass(frozen=True)
class Clock:
    """What forwards of each model took in one cycle of a whole batch, (D, models) each.

    Attributes:
        forwards: how many there were; a call of a look-up counts as one.
        seconds: of all of them, without the cycle's fixed overhead.
        width: new tokens of each forward's widest row, summed over the forwards.
    """

    forwards: Floats
    seconds: Floats
    width: Floats

    def repeat(self, times: int) -> Clock:
        """Every row so often: what each of a batch's deciders sees."""
        return Clock(*(np.repeat(a, times, axis=0) for a in (self.forwards, self.seconds, self.width)))


@dataclass(frozen=True)
class Seen:
    """What a cycle did, by decider; counts are sums over its live requests.

    Attributes:
        chosen: the candidate, (D,).
        rows: requests that ran, (D,).
        tokens: tokens emitted, (D,).
        seconds: what the cycle of the whole batch took, (D,).
        submitted, kept: tokens drafted, and those among the emitted ones, (D,).
        first: requests whose first draft was kept, and requests that drafted (or could have), (D, 2).
        good, tried: evidence of acceptance for each ordered pair of models, (D, pairs).
        clock: what forwards took, for routers that :func:`watch <watches_clock>`.
    """

    chosen: Ints
    rows: Ints
    tokens: Ints
    seconds: Floats
    submitted: Ints
    kept: Ints
    first: Ints
    good: Floats
    tried: Floats
    clock: Clock | None = None


class Router(Protocol):
    """Frozen parameters; ``evidence`` says what it wants to be told of acceptance."""

    @property
    def evidence(self) -> Evidence: ...

    def begin(self, pool: Pool, deciders: int) -> State:
        """State before the first cycle: arrays whose first axis is the decider."""

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        """The candidate of each decider's next cycle, (D,). May write into ``state``."""

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        """State after a cycle."""


def watches_clock(router: Router) -> bool:
    """Whether a router wants to be told what forwards took: one with a ``latency_weight`` above 0."""
    return float(getattr(router, "latency_weight", 0.0)) > 0.0


@dataclass(frozen=True)
class Always:
    """One candidate for ever."""

    candidate: int
    evidence: Evidence = "realised"

    def begin(self, pool: Pool, deciders: int) -> State:
        return {}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        return np.full(len(view.rows), self.candidate, dtype=np.int64)

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        return state


@dataclass(frozen=True)
class OneByOne:
    """A decoder's :class:`~simspec.speculation.schedulers.ChainScheduler`, asked request by request.

    Slow; for deciders that are single requests.
    """

    scheduler: ChainScheduler
    evidence: Evidence = "realised"

    def begin(self, pool: Pool, deciders: int) -> State:
        pasts = np.empty(deciders, dtype=object)
        pasts[:] = [Past(i, 0) for i in range(deciders)]
        return {"past": pasts}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        found = [self.scheduler.choose(p, len(pool.candidates)) for p in state["past"]]
        return np.array(found, dtype=np.int64)

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        pasts = np.empty(len(state["past"]), dtype=object)
        for i, past in enumerate(state["past"]):
            past.chosen.append(int(seen.chosen[i]))
            past.submitted.append(int(seen.submitted[i]))
            past.kept.append(int(seen.kept[i]))
            pasts[i] = Past(
                past.request,
                past.emitted_tokens + int(seen.tokens[i]),
                past.chosen,
                past.submitted,
                past.kept,
            )
        return {"past": pasts}
