"""Small engines as data: what an engine is, what it is sent, and for how long.

Costs, acceptance and loads are made up. A scenario is data alone and can be printed; :func:`serve` does
what it says. Steps take a few nanoseconds, so that instants meet, or as long as on a real device.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from simspec.serving.kvcache import Memory
from simspec.serving.policies import Policy

# The engine itself needs pyarrow: loaded where a scenario is served.
if TYPE_CHECKING:
    from simspec.cost.models import AffineCost, CostModel, MeasuredCost
    from simspec.serving.config import Serving
    from simspec.serving.simulate import Records
    from simspec.serving.verdicts import Source

PriceList = Literal["ticks", "device", "padded"]
NANO = 1e-9


def affine(base: float, token: float, cached: float) -> AffineCost:
    """A target and drafters at made-up prices, in seconds: a forward of n tokens takes base + token n."""
    from simspec.cost.models import AffineCost

    return AffineCost(
        name="made-up",
        label="made up",
        target="target",
        base_seconds=base,
        token_seconds=token,
        context_token_seconds=cached,
        step_overhead_seconds=base / 4,
        ratios={"small": 0.25, "ngram": 0.0},
    )


@lru_cache
def made_up_cost(prices: PriceList) -> CostModel:
    """``ticks``: 4 + n ns for n tokens; ``device``: of a real one's size; ``padded``: a table of ticks."""
    if prices == "padded":
        return _measured()
    return affine(4e-9, 1e-9, 0.0) if prices == "ticks" else affine(5.9e-3, 2.1e-5, 3.9e-8)


def _measured() -> MeasuredCost:
    import pandas as pd

    from simspec.cost.models import MeasuredCost

    rows = [
        (model, "made-up", "float32", batch, new, context, 0, scale * (4 + new * batch + context / 8) * NANO)
        for model, scale in (("target", 4), ("small", 1), ("ngram", 0))
        for batch in (1, 2, 4)
        for new in (1, 2, 8)
        for context in (8, 64)
    ]
    names = ["model", "device", "dtype", "batch", "new_tokens", "context", "repetition", "seconds"]
    return MeasuredCost(pd.DataFrame(rows, columns=names), "float32", "made-up", "made up")


@dataclass(frozen=True)
class Survival:
    """Acceptance by place: ``survival[j]`` that the first j + 1 drafts are all accepted.

    ``mean``: every step accepts the mean of its length, carried over in fractions, without luck.
    """

    survival: tuple[float, ...]
    mean: bool = False

    def source(self) -> Source:
        from simspec.serving.verdicts import Mean, Rates

        return Mean(self.survival) if self.mean else Rates(self.survival)


@dataclass(frozen=True)
class Texts:
    """Recorded texts: tokens that a step emits from each position, at ``longest`` drafts."""

    emitted: tuple[tuple[int, ...], ...]
    longest: int = 4

    def source(self) -> Source:
        from simspec.serving.verdicts import Recorded

        return Recorded.of_lengths(self.emitted, self.longest)


@dataclass(frozen=True)
class Drafting:
    """Who says how long drafts are, and what becomes of them."""

    policy: Policy
    acceptance: Survival | Texts


@dataclass(frozen=True)
class Setup:
    """An engine as data; durations in nanoseconds, fields as in :class:`~simspec.serving.config.Serving`.

    Attributes:
        drafter_prices: where the drafter is priced apart.
        lookup: whether the drafter is a look-up, which costs nothing here.
    """

    slots: int = 1
    drafting: Drafting | None = None
    prices: PriceList = "ticks"
    drafter_prices: PriceList | None = None
    lookup: bool = False
    overhead_ns: int | None = None
    idle_ns: int = 0
    memory: Memory = field(default_factory=Memory)
    prefill: Literal["whole", "chunked"] = "whole"
    mixed: bool = True
    token_budget: int = 8192
    queue_limit: int | None = None
    patience_ns: int | None = None
    stride: bool = True

    def __str__(self) -> str:
        usual = Setup()
        told = {f.name: getattr(self, f.name) for f in fields(self)}
        return ", ".join(f"{n} {v}" for n, v in told.items() if n == "slots" or v != getattr(usual, n))

    @property
    def longest(self) -> int:
        """The longest draft that its policy may ask for."""
        return 0 if self.drafting is None else self.drafting.policy.longest

    def serving(self) -> Serving:
        """The engine's parameters."""
        return _serving(self)


@lru_cache(maxsize=512)
def _serving(setup: Setup) -> Serving:
    from simspec.serving.config import Serving, Speculation
    from simspec.serving.pricing import Costs

    costs = Costs(
        made_up_cost(setup.prices),
        "target",
        "ngram" if setup.lookup else "small",
        drafter_cost=None if setup.drafter_prices is None else made_up_cost(setup.drafter_prices),
        lookup=setup.lookup,
        overhead_seconds=_seconds(setup.overhead_ns),
        idle_seconds=setup.idle_ns * NANO,
    )
    told = setup.drafting
    same = ("slots", "memory", "prefill", "mixed", "token_budget", "queue_limit", "stride")
    return Serving(
        costs,
        speculation=None if told is None else Speculation(told.policy, told.acceptance.source()),
        patience_seconds=_seconds(setup.patience_ns),
        **{name: getattr(setup, name) for name in same},
    )


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds * NANO


@dataclass(frozen=True)
class Scenario:
    """An engine, what it is sent, and for how long.

    Attributes:
        engine: as data, or ready made.
        seed: of the verdicts' luck.
        sizes: prompt and output tokens of each request.
        instants: nanoseconds at which they come, one each, unless there are clients.
        clients: so many clients in a closed loop, which think for ``think_ns`` between requests; 0 for none.
        until: nanoseconds at which it ends; None when all are served.
    """

    engine: Setup | Serving
    seed: int
    sizes: tuple[tuple[int, int], ...]
    instants: tuple[int, ...]
    clients: int = 0
    think_ns: int = 0
    until: int | None = None

    @property
    def serving(self) -> Serving:
        """The engine's parameters."""
        return self.engine.serving() if isinstance(self.engine, Setup) else self.engine

    @property
    def setup(self) -> Setup:
        """The engine as data; raises ValueError where it came ready made."""
        if not isinstance(self.engine, Setup):
            raise ValueError(f"an engine that is not data: {self.engine}")
        return self.engine

    def on(self, engine: Setup) -> Scenario:
        """The same requests to another engine."""
        return replace(self, engine=engine)

    def __str__(self) -> str:
        how = f"at {self.instants} ns"
        if self.clients:
            how = f"from {self.clients} clients that think for {self.think_ns} ns"
        stops = "" if self.until is None else f", until {self.until} ns"
        return f"requests (prompt, output) {self.sizes} {how}{stops}; seed {self.seed}; {self.engine}"


def serve(scenario: Scenario, *, emissions: bool = False, serving: Serving | None = None) -> Records:
    """Serve a scenario, by another engine where one is given."""
    from simspec.serving.arrivals import ClosedLoop, OpenLoop
    from simspec.serving.request import Request
    from simspec.serving.simulate import simulate

    requests = [Request(i, p, o) for i, (p, o) in enumerate(scenario.sizes)]
    load: OpenLoop | ClosedLoop
    if scenario.clients:
        load = ClosedLoop(scenario.clients, requests, scenario.think_ns * NANO)
    else:
        load = OpenLoop(zip(scenario.instants, requests, strict=True))
    until = _seconds(scenario.until)
    return simulate(
        serving or scenario.serving, load, scenario.seed, until_seconds=until, emissions=emissions
    )
