"""Slow, plain twins of what simspec does in bulk. Nothing here is clever; that is the point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from simspec.cost.models import AffineCost
from simspec.replay.trajectories import Trajectories
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import run_cycle
from simspec.speculation.lengths import LengthRule, Prescribed, View
from tests.toy import EOS, LOOKUP, Toy

# Seconds of one forward: model, rows, width of the widest row, tokens over all rows,
# context of the longest row, context over all rows.
Price = Callable[[str, int, int, int, int, int], float]


@dataclass(frozen=True)
class TwinCycle:
    """One cycle as the toy models lived it; widths are what each forward really read."""

    context: int
    drafted: int
    submitted: int
    offered: tuple[int, ...]
    kept: int
    accepted: int
    emitted: tuple[int, ...]
    lag: int  # tokens read by the drafter's first forward, 0 when it did not run
    middle: tuple[int, ...]
    width: int


@dataclass
class Request:
    """A request decoded token by token, with a real list of tokens in every level's cache."""

    toy: Toy
    chain: Chain
    prompt: int
    produced: int = 0
    history: list[int] = field(default_factory=list)
    caches: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def begin(cls, toy: Toy, chain: Chain, prompt: int, produced: int = 0) -> Request:
        """Start after ``produced`` tokens of the text, all but the last token in every cache."""
        history = [*toy.prompts[prompt], *toy.texts[prompt][:produced]]
        caches = {m: history[:-1] for m in chain.levels if m != LOOKUP}
        return cls(toy, chain, prompt, produced, history, caches)

    def copy(self) -> Request:
        caches = {m: list(c) for m, c in self.caches.items()}
        return Request(self.toy, self.chain, self.prompt, self.produced, list(self.history), caches)

    @property
    def room(self) -> int:
        return self.toy.setting.output_tokens - self.produced

    @property
    def done(self) -> bool:
        return self.room == 0 or (self.produced > 0 and self.history[-1] == EOS)

    def block(self) -> tuple[list[int], list[float]]:
        """All that the drafter could draft now, with its confidences."""
        if self.chain.drafter is None:
            return [], []
        most = min(self.toy.setting.block_length, self.room - 1)
        return self.toy.draft(self.chain.drafter, self.history, most)

    def cycle(self, drafted: int, submitted: int) -> TwinCycle:
        """Run one cycle; ``drafted`` is at most the block's length."""
        before = list(self.history)
        tokens = self.block()[0][:drafted]
        assert len(tokens) == drafted
        assert submitted <= drafted
        drafter, lag = self.chain.drafter, 0
        if drafter in self.caches and drafted:
            lag = len(before) - len(self.caches[drafter])
            # The last draft is never read back by the model that drafted it.
            self.caches[drafter] = before + tokens[:-1]
        widths = dict.fromkeys(self.chain.levels, 0)

        def verifier(model: str) -> Callable[[np.ndarray], np.ndarray]:
            def read(block: np.ndarray) -> np.ndarray:
                fed = [*before, *block.tolist()][len(self.caches[model]) :]
                widths[model] = len(fed)
                self.caches[model] = self.caches[model] + fed
                return self.toy.greedy(model, before, block.tolist())

            return read

        done = run_cycle(
            np.array(tokens[:submitted], dtype=np.int32),
            [verifier(m) for m in self.chain.levels[1:] or self.chain.levels],
            self.chain.semantics,
            self.room,
            [EOS],
        )
        emitted = done.emitted.tolist()
        self.history = before + emitted
        self.produced += len(emitted)
        for model in self.caches:
            # Only accepted drafts stay, even if a later cached token would happen to be right.
            right = done.accepted if model == self.chain.target else done.kept
            self.caches[model] = self.caches[model][: len(before) + right]
            assert self.caches[model] == self.history[: len(self.caches[model])]
        return TwinCycle(
            len(before),
            drafted,
            submitted,
            done.offered,
            done.kept,
            done.accepted,
            tuple(emitted),
            lag,
            tuple(widths[m] for m in self.chain.intermediates),
            widths[self.chain.target],
        )


def decode(
    toy: Toy,
    chain: Chain,
    rule: LengthRule | Prescribed | None,
    prompt: int,
    first: int,
    start: int = 0,
    seconds: np.ndarray | None = None,
) -> tuple[list[TwinCycle], list[int]]:
    """Decode a request to its end.

    Args:
        first: flat position of the prompt's text, to look up ``seconds`` and prescriptions.
        start: place in the text to begin at.
        seconds: as for :func:`simspec.replay.trajectories.run`.

    Returns:
        the cycles and the emitted tokens.
    """
    request = Request.begin(toy, chain, prompt, start)
    depth = toy.setting.block_length
    dynamic = None if rule is None or isinstance(rule, Prescribed) else rule
    state = dynamic.begin(1) if dynamic else np.zeros(1)
    cycles: list[TwinCycle] = []
    while not request.done:
        block, sure = request.block()
        flat, decision = first + request.produced, None
        if isinstance(rule, Prescribed):
            drafted = submitted = min(int(rule.lengths[flat]), len(block))
        elif dynamic and chain.drafter is not None:
            padded = np.zeros((1, depth))
            padded[0, : len(sure)] = sure
            priced = np.ones((1, depth + 1)) if seconds is None else seconds[flat : flat + 1]
            decision = dynamic.decide(View(padded, np.array([len(block)]), priced), state)
            drafted = min(int(decision.drafted[0]), len(block))
            submitted = min(int(decision.submitted[0]), drafted)
        else:
            drafted = submitted = 0
        done = request.cycle(drafted, submitted)
        if dynamic and decision is not None:
            carried = type(decision)(np.array([drafted]), np.array([submitted]))
            state = dynamic.observe(state, carried, np.array([done.kept]))
        cycles.append(done)
    return cycles, [token for cycle in cycles for token in cycle.emitted]


def cycle_seconds(cycle: TwinCycle, chain: Chain, price: Price, overhead: float = 0.0) -> float:
    """One cycle of one request alone."""

    def one(model: str, width: int) -> float:
        return price(model, 1, width, width, cycle.context, cycle.context)

    total = overhead
    if chain.drafter == LOOKUP:
        total += one(LOOKUP, max(cycle.drafted, 1))
    elif cycle.drafted:
        total += one(chain.levels[0], cycle.lag)
        total += sum(one(chain.levels[0], 1) for _ in range(cycle.drafted - 1))
    total += sum(one(m, width) for m, width in zip(chain.intermediates, cycle.middle, strict=True) if width)
    return total + one(chain.target, cycle.width)


def least_by_search(request: Request, price: Price, overhead: float = 0.0) -> float:
    """The least time to finish, over every sequence of (drafted, submitted); tiny texts only."""
    if request.done:
        return 0.0
    best = math.inf
    for drafted in range(len(request.block()[0]) + 1):
        for submitted in range(drafted + 1):
            after = request.copy()
            spent = cycle_seconds(after.cycle(drafted, submitted), request.chain, price, overhead)
            best = min(best, spent + least_by_search(after, price, overhead))
    return best


def lockstep_seconds(
    runs: Trajectories, batch: Sequence[int], price: Price, overhead: float, *, lookup: bool
) -> float:
    """Seconds of one batch: a loop over cycles, levels and requests."""
    total = 0.0
    for c in range(runs.flat.shape[1]):
        here = [q for q in batch if runs.flat[q, c] >= 0]
        if not here:
            continue
        total += overhead
        forwards: list[tuple[str, list[tuple[int, int]]]] = []  # model, (width, context) a request

        # Requests are told apart by their place, as a batch may hold one twice.
        at = dict(enumerate(here))
        drafted = {i: int(runs.drafted[q, c]) for i, q in at.items()}

        held_by = {i: int(runs.context[q, c]) for i, q in at.items()}

        def add(
            model: str,
            widths: dict[int, int],
            held_by: dict[int, int] = held_by,
            forwards: list[tuple[str, list[tuple[int, int]]]] = forwards,
        ) -> None:
            forwards.append((model, [(w, held_by[i]) for i, w in widths.items() if w]))

        drafter = runs.chain.drafter
        if drafter is not None and lookup:
            add(drafter, {i: max(n, 1) for i, n in drafted.items()})
        elif drafter is not None:
            add(drafter, {i: int(runs.lag[q, c]) for i, q in at.items() if drafted[i]})
            for step in range(2, max(drafted.values()) + 1):
                add(drafter, {i: 1 for i, n in drafted.items() if n >= step})
        for model, read in zip(runs.chain.intermediates, runs.middle, strict=True):
            add(model, {i: int(read[q, c]) for i, q in at.items()})
        add(runs.chain.target, {i: int(runs.width[q, c]) for i, q in at.items()})
        for model, rows in forwards:
            if rows:
                widths, held = [w for w, _ in rows], [h for _, h in rows]
                total += price(model, len(rows), max(widths), sum(widths), max(held), sum(held))
    return total


def measured_price(latency: Sequence[dict[str, object]], dtype: str) -> Price:
    """A latency table read one point at a time: medians, straight lines, proportion beyond."""
    repeated: dict[tuple[str, int, int, int], list[float]] = {}
    for row in latency:
        if row["dtype"] in (dtype, "none"):
            key = (str(row["model"]), int(row["context"]), int(row["batch"]), int(row["new_tokens"]))  # type: ignore[call-overload]
            repeated.setdefault(key, []).append(float(row["seconds"]))  # type: ignore[arg-type]
    medians = {key: float(np.median(values)) for key, values in repeated.items()}

    def line(x: float, xs: list[int], y: Callable[[int], float], *, flat_above: bool) -> float:
        if x <= xs[0]:
            return y(xs[0])
        if x >= xs[-1]:
            return y(xs[-1]) * (1.0 if flat_above else x / xs[-1])
        i = max(k for k, known in enumerate(xs) if known <= x)
        share = (x - xs[i]) / (xs[i + 1] - xs[i])
        return (1 - share) * y(xs[i]) + share * y(xs[i + 1])

    def price(model: str, rows: int, width: int, tokens: int, context: int, held: int) -> float:
        contexts = sorted({k[1] for k in medians if k[0] == model})
        batches = sorted({k[2] for k in medians if k[0] == model})
        widths = sorted({k[3] for k in medians if k[0] == model})
        return line(
            context,
            contexts,
            lambda c: line(
                rows,
                batches,
                lambda b: line(width, widths, lambda w: medians[model, c, b, w], flat_above=False),
                flat_above=False,
            ),
            flat_above=True,
        )

    return price


def affine_price(cost: AffineCost) -> Price:
    """The affine profile, one forward at a time."""

    def price(model: str, rows: int, width: int, tokens: int, context: int, held: int) -> float:
        ratio = 1.0 if model == cost.target else cost.ratios[model]
        return ratio * (cost.base_seconds + cost.token_seconds * tokens + cost.context_token_seconds * held)

    return price
