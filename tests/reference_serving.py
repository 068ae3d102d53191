"""The serving engine's slow twin: rows as objects, blocks with numbers, an agenda in a list, no SimPy.

It shares the frozen parameters (costs, memory, policies) with :mod:`simspec.serving` and none of the
code that serves. Forwards are priced one by one by the cost model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from simspec.serving.choosing import Routed
from simspec.serving.config import Serving
from simspec.serving.policies import View
from simspec.serving.row_policies import RowPolicy, RowView
from simspec.serving.switching import DrafterView, Switching
from simspec.serving.verdicts import Mean
from simspec.speculation.lengths import Decision
from tests.reference_chains import climb, settle, to_be_had
from tests.reference_load import PLAN, STEP, Asked, Door
from tests.reference_serving_parts import Blocks, luck, place, run_from
from tests.reference_serving_prices import Prices, Row

EMITTED = ("replica", "step", "request_id", "emitted_tokens", "drafted_tokens", "accepted_tokens")


class House(Protocol):
    """Where a replica stands: whose agenda it writes into, and who hears of what becomes of its rows."""

    now: int
    link: int
    steps: list[dict[str, object]]
    emissions: list[dict[str, object]]

    def at(self, instant: int, stage: int, what: Callable[[], None], number: int = 0) -> None: ...

    def close(self, row: Row, outcome: str) -> None: ...

    def hand_over(self, row: Row) -> None: ...

    def ask_device(self, nanoseconds: int) -> int | None:
        """How long it is until a device is free for so long a job; None where there is none."""


class Replica:
    """One engine, alone or one of several.

    Args:
        reads_only: whether it hands requests over as soon as their prompt is read.
    """

    def __init__(self, serving: Serving, seed: int, house: House, number: int = 0, reads_only: bool = False):
        self.s, self.seed, self.house, self.number, self.reads_only = serving, seed, house, number, reads_only
        spec = serving.speculation
        self.policy = spec.policy if spec else None
        self.prices = Prices(serving)
        self.drafters = self.prices.drafters
        self.life = self.count = 0
        self.begin()

    def begin(self) -> None:
        """Empty, as at the start."""
        self.up = True
        self.life += 1
        self.began: int | None = None
        self.moved = 0
        self.waiting: list[Row] = []
        self.batch: list[Row] = []  # in order of admission
        self.busy = False
        memory = self.s.memory
        self.pools = [Blocks(memory.target_blocks, memory.block_tokens)]
        if self.s.speculation is not None and memory.drafter_blocks is not None:
            self.pools.append(Blocks(memory.drafter_blocks, memory.block_tokens))
        self.pools += [Blocks(n, memory.block_tokens) for _, n in memory.middle_blocks]
        if self.policy and not isinstance(self.policy, RowPolicy | Switching | Routed):
            self.state = self.policy.begin()
        self.using = 0
        self.picked: tuple[int, int] | None = None
        self.decoded = 0
        self.climbs: dict[int, tuple[list[int], list[int]]] = {}
        self.levels: dict[object, list[float]] = {}  # (accepted, tried) of what one model hands to another
        self.good, self.tried = [0.0] * len(self.drafters), [0.0] * len(self.drafters)
        self.vacant = list(range(self.s.slots))[::-1]

    @property
    def now(self) -> int:
        return self.house.now

    def come(self, row: Row) -> None:
        """A request is placed here, and may be rejected."""
        most = self.ahead + (row.text + 1 if self.reads_only else row.prompt + row.output)
        too_large = any(p.total is not None and p.need(most) > p.total for p in self.pools)
        limit = None if row.brought else self.s.queue_limit
        if too_large or (limit is not None and len(self.waiting) >= limit):
            self.house.close(row, "rejected")
            return
        row.blocks = [[] for _ in self.pools]
        row.replica = self.number
        row.queue = self.waiting
        self.waiting.append(row)
        if not self.busy:
            self.busy = True
            self.plan()

    def plan(self) -> None:
        self.house.at(self.now, PLAN, self.unless_failed(self.begin_step), self.number)

    def unless_failed(self, what: Callable[[], None]) -> Callable[[], None]:
        life = self.life
        return lambda: what() if self.life == life else None

    def fail(self) -> list[Row]:
        """Go down; returns who was in the batch and then who waited, with nothing of theirs kept."""
        rows = [*self.batch, *self.waiting]
        for row in rows:
            row.unread, row.lags, row.swapped, row.brought = 0, [], False, False
        self.begin()
        self.up = False
        return rows

    # -- a step -------------------------------------------------------------------------------------------

    @property
    def ahead(self) -> int:
        if self.s.speculation is None:
            return 0
        return self.s.speculation.policy.longest + any(map(self.replaces, range(len(self.drafters))))

    def replaces(self, chain: int) -> bool:
        return getattr(self.drafters[chain][1], "replace", False)

    @property
    def reserved(self) -> bool:
        return self.s.memory.lookahead == "reserved"

    def decoding(self) -> list[Row]:
        return [r for r in self.batch if not r.reading]

    def short(self, which: int, tokens: Callable[[Row], int]) -> int:
        pool = self.pools[which]
        return sum(max(0, pool.need(tokens(r)) - len(r.blocks[which])) for r in self.decoding())

    def admit(self) -> None:
        short = [self.short(i, lambda r: r.text + self.ahead) for i in range(len(self.pools))]
        while self.waiting and len(self.batch) < self.s.slots:
            row = self.waiting[0]
            tokens = row.text + (self.ahead + 1 if self.reserved else 0)
            if any(p.need(tokens) > p.left() - n for p, n in zip(self.pools, short, strict=True)):
                return
            self.waiting.pop(0)
            row.slot = self.vacant.pop()
            if isinstance(self.policy, RowPolicy):
                row.state = float(self.policy.begin(1)[0])
            row.unread = 0 if row.swapped or row.brought else row.text
            if row.swapped:
                row.swapped = False
                self.moved += sum(p.need(row.text) for p in self.pools)
                self.draw_credit(row)
            elif row.brought:
                row.brought = False
                models = self.prices.models
                read = row.told == models and len(self.drafters) == 1
                row.lags = [1 if read else row.text] * models
                self.draw_credit(row)
            for pool, held in zip(self.pools, row.blocks, strict=True):
                pool.give(held, tokens)
            if row.admitted is None:
                row.admitted = self.now
            self.batch.append(row)

    def lengths(self, decode: list[Row]) -> tuple[int, dict[int, int], dict[int, int]]:
        """(length asked for, tokens that each request drafts, tokens that it submits)."""
        if self.policy is None:
            return 0, {r.request_id: 0 for r in decode}, {r.request_id: 0 for r in decode}
        if isinstance(self.policy, RowPolicy):
            return self.own_lengths(decode)
        if isinstance(self.policy, Routed):
            if self.decoded % self.policy.every == 0:
                views = [self.prices.view(i, decode, self.known(i)) for i in range(len(self.drafters))]
                self.picked = self.policy.choose(views, self.picked)
            self.decoded += 1
            self.using, length = self.picked
            if not length:
                self.forget()
        elif isinstance(self.policy, Switching):
            views = [self.seen(i, decode) for i in range(len(self.drafters))]
            self.using, length = self.policy.choose(views, self.using)
            if not length:
                self.forget()
        else:
            free = self.pools[0].left()
            free = (1 << 50) - len(self.pools[0].owned) if free == float("inf") else int(free)
            total = sum(r.text for r in decode)
            seen = self.good[0], self.tried[0], partial(self.prices.step_seconds, decode)
            view = View(len(decode), len(self.waiting), total, free, *seen)
            length, self.state = self.policy.length(view, self.state)
        drafts = {r.request_id: min(length, self.can_draft(r, length)) for r in decode}
        return length, drafts, self.go_up(decode, drafts) if length else drafts

    def go_up(self, decode: list[Row], submits: dict[int, int]) -> dict[int, int]:
        """What the target is given of each request, when its drafts have gone up the chain."""
        self.climbs = {}
        if not self.prices.middles[self.using]:
            return submits
        source = self.drafters[self.using][1]
        for row in decode:
            self.climbs[row.request_id] = climb(source, self.seed, row, submits[row.request_id])
        return {number: given[-1] for number, (given, _) in self.climbs.items()}

    def keys(self, chain: int) -> list[object]:
        """Under what each level's acceptance is counted: the two models, or a level of this chain alone."""
        names = [self.drafters[chain][0], *self.prices.names[chain], self.s.costs.target]
        if isinstance(self.policy, Routed):
            return [(names[i], names[i + 1]) for i in range(len(names) - 1)]
        return [(chain, i) for i in range(len(names) - 1)]

    def known(self, chain: int) -> list[tuple[float, float]]:
        return [tuple(self.levels.get(key, (0.0, 0.0))) for key in self.keys(chain)]

    @property
    def by_level(self) -> bool:
        """Whether acceptance is counted level by level."""
        return isinstance(self.policy, Routed) or (
            isinstance(self.policy, Switching) and any(self.prices.middles)
        )

    def seen(self, i: int, decode: list[Row]) -> DrafterView:
        late = sum(self.prices.catch_up(decode, i)) * 1e-9
        if not self.by_level:
            seconds = self.prices.step_seconds(decode, self.policy.longest, i)
            return DrafterView(self.good[i], self.tried[i], seconds, late)
        counts = self.known(i)
        if len(counts) == 1:
            return DrafterView(*counts[0], self.prices.step_seconds(decode, self.policy.longest, i), late)
        chain = self.prices.view(i, decode, counts)
        return DrafterView(*counts[0], [chain.plain], late, chain)

    def own_lengths(self, decode: list[Row]) -> tuple[int, dict[int, int], dict[int, int]]:
        policy, most = self.policy, self.policy.longest
        rows = sorted(decode, key=lambda r: r.slot)
        source = self.drafters[0][1]
        confidence, size = np.zeros((len(rows), most)), np.full(len(rows), most)
        if policy.weighs_confidence:
            flat = [place(source, self.seed, r) for r in rows]
            confidence = source.blocks.confidence[flat, :most].astype(float)
            size = source.blocks.length[flat]
        ones = np.ones(len(rows), int)
        prices = (partial(f, rows) for f in (self.prices.step_seconds, self.prices.verifying_seconds))
        view = RowView(ones, confidence, size, *prices)
        found = policy.lengths(view, np.array([r.state for r in rows]))
        drafts, submits = {}, {}
        for row, drafted, submitted in zip(rows, found.drafted, found.submitted, strict=True):
            drafts[row.request_id] = min(int(drafted), most, self.can_draft(row, 1))
            submits[row.request_id] = min(int(submitted), drafts[row.request_id])
        return max(min(int(n), most) for n in found.drafted), drafts, self.go_up(rows, submits)

    def forget(self) -> None:
        for counts in (self.good, self.tried):
            counts[:] = [n * self.s.speculation.remembered for n in counts]
        for counts in self.levels.values():
            counts[:] = [n * self.s.speculation.remembered for n in counts]

    def begin_step(self) -> None:
        if not self.waiting and not self.batch:
            self.busy = False
            return
        self.admit()
        decode = [] if not self.s.mixed and any(r.reading for r in self.batch) else self.decoding()
        drafts: dict[int, int] = {}
        submits: dict[int, int] = {}
        length = preempted = 0
        if decode:
            length, drafts, submits = self.lengths(decode)

            def tokens(row: Row) -> int:
                if self.reserved:
                    return row.text + self.ahead
                adds = submits[row.request_id] if length and self.replaces(self.using) else 0
                return row.text + max(drafts[row.request_id], adds)

            while any(self.short(i, tokens) > p.left() for i, p in enumerate(self.pools)):
                victim = self.batch.pop()
                victim.preemptions += 1
                if self.s.memory.preemption == "swap" and not victim.reading:
                    victim.swapped = True
                    self.moved += sum(p.need(victim.text) for p in self.pools)
                victim.unread = 0
                for pool, held in zip(self.pools, victim.blocks, strict=True):
                    pool.take(held, 0)
                self.vacant.append(victim.slot)
                self.waiting.insert(0, victim)
                victim.queue = self.waiting
                preempted += 1
            decode = [r for r in decode if r in self.batch]
            for row in decode:
                for pool, held in zip(self.pools, row.blocks, strict=True):
                    pool.give(held, tokens(row))
        submitted = sum(submits[r.request_id] for r in decode)
        chunks = self.chunks(self.s.token_budget - len(decode) - submitted)
        self.finish_later(decode, drafts, submits, length, chunks, preempted)

    def can_draft(self, row: Row, length: int) -> int:
        if not length:
            return 0
        source, room = self.drafters[self.using][1], row.output - row.produced - 1
        if isinstance(source, Mean):
            return min(room, len(source.survival))
        return min(room, to_be_had(source, self.seed, row))

    def chunks(self, budget: int) -> list[tuple[Row, int]]:
        found: list[tuple[Row, int]] = []
        for row in self.batch:
            if not row.reading:
                continue
            if self.s.prefill == "whole":
                if found and row.unread > budget:
                    break
                size = row.unread
            else:
                size = min(row.unread, budget)
                if size < 1:
                    break
            found.append((row, size))
            budget -= size
        return found

    def finish_later(
        self,
        decode: list[Row],
        drafts: dict[int, int],
        submits: dict[int, int],
        length: int,
        chunks: list[tuple[Row, int]],
        preempted: int,
    ) -> None:
        prices, lookup, using = self.prices, self.drafters[0][3], self.using
        drafted, submitted = (sum(d[r.request_id] for r in decode) for d in (drafts, submits))
        draft = reads = middle = verify = prefill = 0
        overhead = prices.overhead()
        total = sum(r.text for r in decode)
        shape = [0, 0, 0, 0, 0]
        if decode:
            most = max(r.text for r in decode)
            if self.policy is not None:
                always = isinstance(self.policy, RowPolicy) and self.policy.weighs_confidence
                draft += prices.drafting(decode, drafts, length, self.using, always)
                if length:
                    middle = prices.verifying(decode, self.climbs, using, self.replaces(using))
            if self.s.speculation and not drafted:
                overhead += int(self.s.costs.idle_seconds * 1e9 + 0.5)
            widest = max(submits[r.request_id] for r in decode)
            shape = [len(decode), widest + 1, len(decode) + submitted, most, total]
            verify = prices.target(*shape)
        if chunks:
            sizes, read = [n for _, n in chunks], [r.text - r.unread for r, _ in chunks]
            reading = [len(chunks), max(sizes), sum(sizes), max(read), sum(read)]
            both = [
                shape[0] + reading[0],
                max(shape[1], reading[1]),
                shape[2] + reading[2],
                max(shape[3], reading[3]),
                shape[4] + reading[4],
            ]
            whole = prices.target(*both)
            verify, prefill = min(verify, whole), max(whole - verify, 0)
            if self.s.speculation and not lookup and len(self.drafters) == 1:
                reads = prices.drafter(0, *reading)
            if self.s.speculation and len(self.drafters) == 1:
                middle += sum(prices.middle(name, *reading) for name in prices.names[0])
        swap = self.moved * int(self.s.memory.block_swap_seconds * 1e9 + 0.5)
        self.moved = 0
        wait, draft = self.on_device(draft, reads, middle + verify + prefill)
        row = {
            "replica": self.number,
            "started_at_ns": self.now,
            "wait_ns": wait,
            "draft_ns": draft,
            "middle_ns": middle,
            "verify_ns": verify,
            "prefill_ns": prefill,
            "swap_ns": swap,
            "overhead_ns": overhead,
            "queued_requests": len(self.waiting),
            "decoding_requests": len(decode),
            "prefilling_requests": len(chunks),
            "drafter": self.using,
            "draft_length_tokens": length,
            "drafted_tokens": drafted,
            "submitted_tokens": submitted,
            "prefill_tokens": sum(n for _, n in chunks),
            "context_tokens": total,
            "target_blocks": len(self.pools[0].owned),
            "drafter_blocks": len(self.pools[1].owned) if self.s.memory.drafter_blocks and self.policy else 0,
            "preempted_requests": preempted,
        }
        self.began = self.now
        end = self.now + wait + draft + middle + verify + prefill + swap + overhead
        over = self.unless_failed(lambda: self.end_step(row, decode, drafts, submits, chunks))
        self.house.at(end, STEP, over, self.number)

    def on_device(self, draft: int, reads: int, target: int) -> tuple[int, int]:
        """Nanoseconds that a step waits for the drafters' own device, and that it takes longer to draft.

        The device drafts and then reads prompts, while drafts and verdicts are on the link and the target's
        forward runs. A step that drafts nothing waits for the end of the reading alone.
        """
        waits = self.house.ask_device(draft + reads) if draft or reads else None
        if waits is None:
            return 0, draft + reads
        if not draft:
            return 0, max(0, waits + reads - target)
        link = 2 * self.house.link
        return waits + link, draft + max(0, reads - link - target)

    def end_step(
        self,
        record: dict[str, object],
        decode: list[Row],
        drafts: dict[int, int],
        submits: dict[int, int],
        chunks: list[tuple[Row, int]],
    ) -> None:
        emitted = accepted_total = tried = 0
        drafted = sum(drafts[r.request_id] for r in decode)
        asked = drafted or (record["draft_length_tokens"] and decode and self.replaces(self.using))
        if asked:
            self.forget()
        for row in sorted(decode, key=lambda r: r.slot):
            wanted, given = drafts[row.request_id], submits[row.request_id]
            offered, passed = self.climbs.get(row.request_id, ([given], [])) if asked else ([0], [])
            accepted = self.verdict(row, offered, passed) if asked else 0
            kept = min([accepted, *passed])
            self.emit(row, accepted + 1, wanted, accepted)
            if asked and self.by_level:
                self.tally(row, wanted, offered, [*passed, accepted])
            self.fall_behind(row, wanted, accepted, kept, offered[:-1])
            if asked and isinstance(self.policy, RowPolicy):
                done = Decision(np.array([wanted]), np.array([offered[0]]))
                row.state = float(self.policy.observe(np.array([row.state]), done, np.array([kept]))[0])
            row.passes += 1
            row.drafted += wanted
            row.accepted += accepted
            row.produced += accepted + 1
            emitted += accepted + 1
            accepted_total += accepted
            tried += accepted + (accepted < given)
        if asked:
            self.good[self.using] += accepted_total
            self.tried[self.using] += tried
        if not self.reserved:
            for row in decode:
                for pool, held in zip(self.pools, row.blocks, strict=True):
                    pool.take(held, pool.need(row.text))
        for row, size in chunks:
            row.unread -= size
            if not row.unread:
                self.emit(row, 1, 0, 0)
                row.produced += 1
                row.lags = [1 if len(self.drafters) == 1 else row.text] * self.prices.models
                emitted += 1
                if row.first is None:
                    row.first = self.now
                self.draw_credit(row)
        in_order = [*sorted(decode, key=lambda r: r.slot), *(r for r, _ in chunks)]
        done = [r for r in in_order if r.produced == r.output]
        read = [r for r, _ in chunks if self.reads_only and not r.unread and r not in done]
        for row in in_order:
            if row in done or row in read:
                self.batch.remove(row)
                self.vacant.append(row.slot)
                for pool, held in zip(self.pools, row.blocks, strict=True):
                    pool.take(held, 0)
        for row in sorted(done, key=lambda r: r.request_id):
            self.house.close(row, "finished")
        for row in sorted(read, key=lambda r: r.request_id):
            row.told = self.prices.models if self.s.speculation and len(self.drafters) == 1 else 0
            self.house.hand_over(row)
        record |= {
            "step": self.count,
            "accepted_tokens": accepted_total,
            "emitted_tokens": emitted,
            "finished_requests": len(done),
        }
        self.count += 1
        self.house.steps.append(record)
        self.began = None
        self.plan()

    def emit(self, row: Row, tokens: int, drafted: int, accepted: int) -> None:
        told = (self.number, self.count, row.request_id, tokens, drafted, accepted)
        self.house.emissions.append(dict(zip(EMITTED, told, strict=True)))

    def draw_credit(self, row: Row) -> None:
        sources = [source for _, source, _, _ in self.drafters]
        if any(isinstance(source, Mean) for source in sources):
            drawn = int(luck(self.seed, row.request_id).random() * 2**32)
            row.credits = [drawn] * len(sources)

    def tally(self, row: Row, drafted: int, offered: list[int], taken: list[int]) -> None:
        """One row's verdicts, level by level; having nothing to draft is a refusal."""
        for key, given, good in zip(self.keys(self.using), offered, taken, strict=True):
            counts = self.levels.setdefault(key, [0.0, 0.0])
            counts[0] += good
            counts[1] += good + (good < given)
        if not drafted and row.produced + 1 < row.output:
            self.levels[self.keys(self.using)[0]][1] += 1

    def fall_behind(self, row: Row, drafted: int, accepted: int, kept: int, offered: list[int]) -> None:
        """Tokens of the grown text that each model has not read."""
        row.lags = [lag + accepted + 1 for lag in row.lags]
        if drafted:
            row.lags[self.prices.drafter_model[self.using]] = accepted + 1 - min(kept, drafted - 1)
        for model, given in zip(self.prices.middles[self.using], offered, strict=False):
            if given or self.replaces(self.using):
                row.lags[model] = accepted + 1 - kept

    def verdict(self, row: Row, offered: list[int], passed: list[int]) -> int:
        source, drafted = self.drafters[self.using][1], offered[0]
        if passed:
            return settle(source, self.seed, row, offered, passed)
        if isinstance(source, Mean):
            mean = 0.0
            for rate in source.survival[:drafted]:
                mean += rate
            owed = row.credits[self.using] + int(mean * 2**32)
            row.credits[self.using] = owed % 2**32
            return owed // 2**32
        return min(run_from(source, self.seed, row)[0], drafted)


class Twin(Door):
    """One engine serves a workload step by step; the arguments are those of :class:`Door`."""

    link = 0

    def __init__(
        self,
        serving: Serving,
        seed: int,
        *,
        arrivals: list[tuple[int, Asked]] = (),  # type: ignore[assignment]
        clients: int = 0,
        asked: list[Asked] = (),  # type: ignore[assignment]
        think: int = 0,
        until: int | None = None,
    ):
        super().__init__(arrivals, clients, asked, think, until, serving.patience_seconds)
        self.replica = Replica(serving, seed, self)

    def place(self, row: Row) -> None:
        self.replica.come(row)

    def hand_over(self, row: Row) -> None:
        raise AssertionError("there is nobody else")

    def ask_device(self, nanoseconds: int) -> None:
        """There is none."""

    def run(self) -> Twin:
        super().run()
        return self
