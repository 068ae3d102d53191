"""What the slow twin of the serving engine pays: forward by forward, each by the cost model itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from simspec.cost.shape import StepShape
from simspec.serving.choosing import ChainView
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
    told: int = 0  # so many models below the target have read it too
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
        names: of each one's intermediates.
        drafter_model, middles: by number, what of all models below the target each one drafts with, and what
            its intermediates are; ``models``: how many there are.
    """

    def __init__(self, serving: Serving):
        self.costs = costs = serving.costs
        spec = serving.speculation
        first = (costs.drafter, spec and spec.source, costs.drafter_cost or costs.cost, costs.lookup)
        others = [(o.drafter, o.source, o.cost, o.lookup) for o in (spec.others if spec else ())]
        self.drafters = [first, *others]
        self.names = [spec.intermediates, *(o.intermediates for o in spec.others)] if spec else [()]
        seen: list[tuple[str, object]] = []
        self.drafter_model: list[int] = []
        self.middles: list[list[int]] = []
        for (name, _, cost, _), above in zip(self.drafters, self.names, strict=True):
            chain = [(name, cost), *((other, costs.cost) for other in above)]
            for model in chain:
                if not any(self.names) or not any(model[0] == m and model[1] is c for m, c in seen):
                    seen.append(model)
            numbers = [max(i for i, m in enumerate(seen) if m[0] == n and m[1] is c) for n, c in chain]
            self.drafter_model.append(numbers[0])
            self.middles.append(numbers[1:])
        self.models = len(seen)

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
        """Nanoseconds of the forward in which a drafter reads what it has missed; none where it keeps up.

        And of the same of its intermediates.
        """
        spent = self.drafter_late(rows, drafter)
        for above, model in zip(self.names[drafter], self.middles[drafter], strict=True):
            spent += self.late(rows, model, partial(self.middle, above))
        return spent

    def drafter_late(self, rows: list[Row], drafter: int) -> list[int]:
        """The same for the drafter alone."""
        name, _, cost, lookup = self.drafters[drafter]
        if lookup:
            return []
        return self.late(rows, self.drafter_model[drafter], partial(self.forward, cost, name))

    @staticmethod
    def late(rows: list[Row], model: int, forward: Callable[..., int]) -> list[int]:
        """The same for one model."""
        late = [r for r in rows if r.lags[model] > 2]
        if not late:
            return []
        new, read = [r.lags[model] - 1 for r in late], [r.text - r.lags[model] for r in late]
        return [forward(len(late), max(new), sum(new), max(read), sum(read))]

    def overhead(self) -> int:
        own = self.costs.overhead_seconds
        return int((self.costs.cost.step_overhead_seconds if own is None else own) * 1e9 + 0.5)

    def target(self, *shape: int) -> int:
        return self.forward(self.costs.cost, self.costs.target, *shape)

    def drafter(self, which: int, *shape: int) -> int:
        name, _, cost, lookup = self.drafters[which]
        return self.forward(cost, name, *shape, graphs=not lookup)

    def middle(self, name: str, *shape: int) -> int:
        return self.forward(self.costs.cost, name, *shape)

    def verifying(
        self, decode: list[Row], climbs: dict[int, tuple[list[int], list[int]]], which: int, always: bool
    ) -> int:
        """Nanoseconds of a chain's intermediates, over the rows that each has something to read of."""
        spent = 0
        for level, name in enumerate(self.names[which]):
            model, given = self.middles[which][level], {n: g[level] for n, (g, _) in climbs.items()}
            there = [r for r in decode if always or given[r.request_id]]

            def over(lags: list[int], there: list[Row] = there, given=given, name: str = name) -> int:
                if not there:
                    return 0
                reads = [n + given[r.request_id] for n, r in zip(lags, there, strict=True)]
                held = [r.text for r in there]
                return self.middle(name, len(there), max(reads), sum(reads), max(held), sum(held))

            lags = [r.lags[model] for r in there]
            ways = [over(lags)]
            if len(self.drafters) > 1:
                before = self.late(there, model, partial(self.middle, name))
                ways.append(sum(before) + over([1 if n > 2 and before else n for n in lags]))
            spent += min(ways)
        return spent

    def view(self, which: int, rows: list[Row], counts: list[tuple[float, float]]) -> ChainView:
        """What a policy that chooses among chains sees of one."""
        n, most, total = len(rows), max(r.text for r in rows), sum(r.text for r in rows)

        def drafting(k: int) -> float:
            if self.drafters[which][3]:
                return self.drafter(which, n, k, n * k, most, total) * 1e-9
            return k * self.drafter(which, n, 1, n, most, total) * 1e-9

        def verify(level: int, width: float) -> float:
            shape = [n, math.ceil(width), int(n * width + 0.5), most, total]
            above = self.names[which][level - 2 :]
            if above:
                return self.middle(above[0], *shape) * 1e-9
            return (self.target(*shape) + self.overhead()) * 1e-9

        replace = getattr(self.drafters[which][1], "replace", False)
        return ChainView(counts, self.step_seconds(rows, 0, which)[0], drafting, verify, replace)

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
        spent = sum(self.drafter_late(begin, which)) if several else 0
        for j in range(1, length + 1):
            there = [r for r in decode if drafts[r.request_id] >= j]
            if there:
                reads = [r.lags[self.drafter_model[which]] if j == 1 else 1 for r in there]
                if several:
                    reads = [n if n <= 2 else 1 for n in reads]
                held = [r.text for r in there]
                spent += self.drafter(which, len(there), max(reads), sum(reads), max(held), sum(held))
        return spent
