"""What the slow twin of the serving engine pays: forward by forward, each by the cost model itself."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simspec.cost.shape import StepShape
from simspec.serving.config import Serving


@dataclass(eq=False)
class Row:
    """A request, waiting or in the batch."""

    request_id: int
    prompt: int
    output: int
    arrived: int
    session: int = -1
    admitted: int | None = None
    first: int | None = None
    produced: int = 0
    discarded: int = 0
    restarts: int = 0
    replica: int | None = None
    unread: int = 0
    slot: int = -1
    state: float = 0.0
    lags: list[int] = field(default_factory=list)
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    preemptions: int = 0
    credits: list[int] = field(default_factory=list)
    client: int | None = None  # who waits for it
    swapped: bool = False
    brought: bool = False  # its KV cache comes from another replica
    told: bool = False  # whose drafter has read it too
    blocks: list[list[int]] = field(default_factory=list)
    queue: list[Row] = field(default_factory=list)  # in which it waits

    @property
    def text(self) -> int:
        return self.prompt + self.produced

    @property
    def reading(self) -> bool:
        return self.unread > 0


class Prices:
    """Nanoseconds of forwards and of steps.

    Attributes:
        drafters: (name, source of verdicts, cost, whether it is a look-up) of each.
    """

    def __init__(self, serving: Serving):
        self.costs = costs = serving.costs
        spec = serving.speculation
        first = (costs.drafter, spec and spec.source, costs.drafter_cost or costs.cost, costs.lookup)
        others = [(o.drafter, o.source, o.cost, o.lookup) for o in (spec.others if spec else ())]
        self.drafters = [first, *others]

    def step_seconds(self, rows: list[Row], longest: int, drafter: int = 0) -> list[float]:
        return [self.alike(rows, k, k * len(rows), k, drafter) for k in range(longest + 1)]

    def verifying_seconds(
        self, rows: list[Row], drafted: int, widest: np.ndarray, total: np.ndarray
    ) -> np.ndarray:
        return np.array(
            [self.alike(rows, drafted, int(t), int(w)) for w, t in zip(widest, total, strict=True)]
        )

    def alike(self, rows: list[Row], k: int, submitted: int, widest: int, drafter: int = 0) -> float:
        """Seconds of a step in which all rows draft k tokens and some are submitted."""
        n, most, total = len(rows), max(r.text for r in rows), sum(r.text for r in rows)
        spent = self.overhead() + self.target(n, widest + 1, n + submitted, most, total)
        if not k:
            spent += int(self.costs.idle_seconds * 1e9 + 0.5)
        elif self.drafters[drafter][3]:
            spent += self.drafter(drafter, n, k, n * k, most, total)
        else:
            spent += k * self.drafter(drafter, n, 1, n, most, total)
        return spent * 1e-9

    def catch_up(self, rows: list[Row], drafter: int) -> list[int]:
        """Nanoseconds of the forward in which a drafter reads what it has missed; none where it keeps up."""
        late = [r for r in rows if r.lags[drafter] > 2]
        if not late or self.drafters[drafter][3]:
            return []
        new, read = [r.lags[drafter] - 1 for r in late], [r.text - r.lags[drafter] for r in late]
        return [self.drafter(drafter, len(late), max(new), sum(new), max(read), sum(read))]

    def overhead(self) -> int:
        own = self.costs.overhead_seconds
        return int((self.costs.cost.step_overhead_seconds if own is None else own) * 1e9 + 0.5)

    def target(self, *shape: int) -> int:
        return self.forward(self.costs.cost, self.costs.target, *shape)

    def drafter(self, which: int, *shape: int) -> int:
        name, _, cost, lookup = self.drafters[which]
        return self.forward(cost, name, *shape, graphs=not lookup)

    def forward(self, cost, model: str, *shape: int, graphs: bool = True) -> int:  # type: ignore[no-untyped-def]
        held = self.costs.graphs if graphs else None
        rows, width, tokens, *context = shape
        if held is not None:
            wide = [n for n in held.rows or (rows,) if n >= rows]
            more = tokens + (min(wide, default=rows) - rows) * width
            new = [n for n in held.tokens or (more,) if n >= more]
            if not wide or not new:
                alone = self.price(cost, model, *shape)
                return int(alone * held.beyond_factor + 0.5) + int(held.beyond_seconds * 1e9 + 0.5)
            rows, tokens = min(wide), min(new)
        return self.price(cost, model, rows, width, tokens, *context)

    @staticmethod
    def price(cost, model: str, *shape: int) -> int:  # type: ignore[no-untyped-def]
        seconds = cost.forward_seconds(model, StepShape(*(np.array([n]) for n in shape)))
        return int(float(seconds[0]) * 1e9 + 0.5)

    def drafting(
        self, decode: list[Row], drafts: dict[int, int], length: int, which: int, always: bool
    ) -> int:
        """Nanoseconds of the drafter's forwards, or of asking a look-up."""
        if self.drafters[which][3]:
            asked = [max(drafts[r.request_id], 1) for r in decode]
            if not length and not always:
                return 0
            held = [r.text for r in decode]
            return self.drafter(which, len(decode), max(asked), sum(asked), max(held), sum(held))
        several = len(self.drafters) > 1
        begin = [r for r in decode if drafts[r.request_id]]
        spent = sum(self.catch_up(begin, which)) if several else 0
        for j in range(1, length + 1):
            there = [r for r in decode if drafts[r.request_id] >= j]
            if there:
                reads = [r.lags[which] if j == 1 else 1 for r in there]
                if several:
                    reads = [n if n <= 2 else 1 for n in reads]
                held = [r.text for r in there]
                spent += self.drafter(which, len(there), max(reads), sum(reads), max(held), sum(held))
        return spent
