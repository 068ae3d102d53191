"""Decode with real chains of models: batches of requests in lock-step, cycle by cycle.

The rules of a cycle are :func:`simspec.speculation.cycle.cycle`, one generator a request; here
their questions are gathered, so that requests that wait for the same model share a forward. All
requests of a batch finish a cycle before any begins the next. Lower levels go first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.record.decoded import Decoded, NearTie, Settings
from simspec.record.drafting import Drafting, draft
from simspec.record.level import Level, LevelState
from simspec.record.live import Request
from simspec.record.models import LoadedModels
from simspec.record.words import Words, words_of
from simspec.speculation.cycle import AskDraft, AskWords
from simspec.speculation.schedulers import ChainScheduler, Fixed, Past, Schedule
from simspec.speculation.verify import Tokens
from simspec.streams import stream

Floats = NDArray[np.float64]

# A model and a batch's prompts -> the model's state once it has read them. Weights must not change.
KeptPrompts = dict[tuple[str, tuple[bytes, ...]], LevelState]

# What a cycle costs at each draft length, shape (D + 1,), given the request and its text's length.
Prices = Callable[[int, int], Floats]


def decode(
    models: LoadedModels,
    schedules: Sequence[Schedule],
    prompts: Sequence[Tokens],
    settings: Settings,
    *,
    scheduler: ChainScheduler | None = None,
    prices: Prices | None = None,
    reference: Sequence[Tokens] | None = None,
    kept: KeptPrompts | None = None,
    progress: Callable[[str], None] | None = None,
) -> Decoded:
    """Decode every prompt.

    Args:
        schedules: what the scheduler picks from; all end in the target.
        prompts: token ids, each of shape (prompt tokens,), at least one token.
        scheduler: picks a schedule for each request's every cycle; None for the first always.
        prices: for rules that weigh cost.
        reference: texts to hold the output to: where it leaves one it is forced back, and the
            place is reported.
        kept: prompts that were read before, for runs that decode the same ones again and again.

    Raises:
        BadInput: when a schedule does not fit the models, or its rule cannot be used with sampling.
    """
    _check(models, schedules, settings)
    run = _Run(models, schedules, prompts, settings, scheduler or Fixed(), prices, reference, kept)
    while run.live or run.waiting:
        if not run.live or settings.refill:
            run.admit()
        run.step()
        if progress:
            progress(f"{len(prompts) - len(run.waiting) - len(run.live)} of {len(prompts)} texts")
    return run.result()


def _check(models: LoadedModels, schedules: Sequence[Schedule], settings: Settings) -> None:
    known = {*models.networks, *models.lookups, *models.blocks}
    for schedule in schedules:
        chain, rule = schedule.chain, schedule.rule
        strangers = [m for m in chain.levels if m not in known]
        if strangers:
            raise BadInput(f"{chain} names unknown models {strangers}", allowed=", ".join(sorted(known)))
        if chain.target != models.target:
            raise BadInput(f"{chain} does not end in the target", allowed=models.target)
        readers = [m for m in chain.levels[1:] if m not in models.networks]
        if readers:
            raise BadInput(f"{readers} can draft but not verify", where=chain)
        if settings.sampling and rule is not None and not rule.sampling_safe:
            raise BadInput(
                f"{rule} looks at draws before it says how many to verify, which changes what is drawn",
                where=chain,
                allowed="rules whose every step is settled by the tokens before it",
            )


class _Run:
    """The state of one call of :func:`decode`."""

    def __init__(
        self,
        models: LoadedModels,
        schedules: Sequence[Schedule],
        prompts: Sequence[Tokens],
        settings: Settings,
        scheduler: ChainScheduler,
        prices: Prices | None,
        reference: Sequence[Tokens] | None,
        kept: KeptPrompts | None,
    ) -> None:
        self.models, self.schedules, self.settings = models, schedules, settings
        self.scheduler, self.prices, self.reference = scheduler, prices, reference
        self.kept = kept
        self.waiting = [
            Request(i, prompt, Past(i, 0), stream(settings.seed, "decode", i))
            for i, prompt in enumerate(prompts)
        ]
        self.all = list(self.waiting)
        self.live: list[Request] = []
        self.levels: dict[str, Level] = {}
        # How far below the target a model stands at most: the farthest is served first.
        self.height: dict[str, int] = {}
        # First, since drafters may read of each prompt what it thinks of it.
        network = models.networks[models.target]
        target = Level(models.target, network, settings.packing, keeps_states=models.read_layers)
        self.levels[models.target] = target
        for schedule in schedules:
            for i, name in enumerate(schedule.chain.levels):
                self.height[name] = max(self.height.get(name, 0), len(schedule.chain.levels) - i)
                if name in self.levels:
                    continue
                if name in models.blocks:
                    kind = models.blocks[name]
                    self.levels[name] = Level(
                        name, kind.network, settings.packing, target=target if kind.reads_target else None
                    )
                elif name in models.networks:
                    self.levels[name] = Level(name, models.networks[name], settings.packing)
        self.cycle = 0
        self.near_ties: list[NearTie] = []
        self.prompt_seconds = self.choosing_seconds = 0.0
        self.begun = time.perf_counter()

    def admit(self) -> None:
        """Take waiting requests into the batch and read their prompts, but for the last token."""
        room = (self.settings.batch or len(self.all)) - len(self.live)
        new, self.waiting = self.waiting[:room], self.waiting[room:]
        if not new:
            return
        begun = time.perf_counter()
        rows = list(range(len(self.live), len(self.live) + len(new)))
        key = tuple(r.prompt.tobytes() for r in new)
        for level in self.levels.values():
            level.settle()
            level.cycle = -1
            known = None if self.kept is None or self.live else self.kept.get((level.name, key))
            if known is not None:
                level.adopt(known)
                continue
            level.join(len(new))
            long = [(row, r.prompt[:-1]) for row, r in zip(rows, new, strict=True) if len(r.prompt) > 1]
            if long:
                level.read([row for row, _ in long], [text for _, text in long], [0] * len(long))
                if self.kept is not None and not self.live:
                    self.kept[level.name, key] = level.copy_state()
        self.live += new
        self.prompt_seconds += time.perf_counter() - begun

    def step(self) -> None:
        """One cycle of every live request."""
        for level in self.levels.values():
            level.cycle = self.cycle
        for request in self.live:
            chosen = self.scheduler.choose(request.past, len(self.schedules))
            request.begin(chosen, self.schedules[chosen], self.settings, self.models.eos_ids)
        while True:
            drafting = [(row, r) for row, r in enumerate(self.live) if isinstance(r.ask, AskDraft)]
            reading = [(row, r) for row, r in enumerate(self.live) if isinstance(r.ask, AskWords)]
            if drafting:
                self._serve_drafts(drafting)
            elif reading:
                self._serve_words(reading)
            else:
                break
        self.cycle += 1
        self._finish()

    def _serve_drafts(self, drafting: list[tuple[int, Request]]) -> None:
        """Blocks for the requests that share the first one's schedule; the others come next."""
        chosen = drafting[0][1].chosen
        schedule = self.schedules[chosen]
        drafter, rule = schedule.chain.drafter, schedule.rule
        assert drafter is not None
        assert rule is not None
        together = []
        for row, request in drafting:
            if request.chosen != chosen:
                continue
            ask = request.ask
            assert isinstance(ask, AskDraft)
            if chosen not in request.states:
                request.states[chosen] = float(rule.begin(1)[0])
            priced = np.ones(self.settings.block_length + 1)
            if self.prices is not None:
                priced = self.prices(request.index, len(request.text))
            request.drafting = Drafting(
                row=row,
                text=np.concatenate([request.prompt, request.text, ask.ahead]),
                most=min(ask.most, self.settings.block_length),
                prices=priced,
                state=request.states[chosen],
                generator=request.generator,
            )
            together.append(request)
        level = self.levels.get(drafter)
        forwards = len(level.log) if level else 0
        begun = time.perf_counter()
        waiting = [r.drafting for r in together if r.drafting is not None]
        draft(self.models, drafter, level, rule, waiting, self.settings.sampling)
        spent = sum(f.seconds for f in level.log[forwards:]) if level else 0.0
        self.choosing_seconds += time.perf_counter() - begun - spent
        for request, drafted in zip(together, waiting, strict=True):
            request.drafted += len(drafted.block)
            request.submitted += drafted.submitted
            request.widths[drafter] = drafted.lag
            request.answer(drafted.block.first(drafted.submitted))

    def _serve_words(self, reading: list[tuple[int, Request]]) -> None:
        """One forward of the lowest model that anyone waits for."""
        asks = []
        for row, request in reading:
            assert isinstance(request.ask, AskWords)
            name = self.schedules[request.chosen].chain.levels[request.ask.level]
            asks.append((self.height[name], name, row, request, request.ask))
        name = max(asks, key=lambda found: found[:2])[1]
        mine = [found for found in asks if found[1] == name]
        level, is_target = self.levels[name], name == self.models.target
        wanted = [len(ask.block) + 1 for *_, ask in mine]
        logits, widths = level.read(
            [row for _, _, row, _, _ in mine],
            [np.concatenate([r.prompt, r.text, ask.ahead, ask.block]) for *_, r, ask in mine],
            wanted,
        )
        begun = time.perf_counter()
        margin = self.settings.margins or (is_target and self.reference is not None)
        words = words_of(logits, self.settings.sampling, margin=margin)
        self.choosing_seconds += time.perf_counter() - begun
        at = 0
        for (*_, request, _ask), width, n in zip(mine, widths, wanted, strict=True):
            own: Words = words.part(at, at + n)
            at += n
            request.widths[name] = int(width)
            if own.margin is not None:
                request.margin = min(request.margin, float(own.margin.min()))
                request.target_margin = own.margin
            request.answer(own.for_judge)

    def _finish(self) -> None:
        """Texts grow, caches roll back, finished requests leave."""
        keep = {name: level.slots.lengths.copy() for name, level in self.levels.items()}
        going = []
        for row, request in enumerate(self.live):
            done = request.done
            assert done is not None
            before = len(request.text)
            chain = self.schedules[request.chosen].chain
            emitted = done.emitted
            if self.reference is not None:
                emitted, tie = request.held_to(self.reference[request.index], emitted)
                self.near_ties += [] if tie is None else [tie]
            accepted = min(done.accepted, len(emitted))
            kept = min(done.kept, len(emitted))
            for name in chain.levels:
                if name in keep:
                    # Back to the accepted drafts: what the drafter and the intermediates read of the block.
                    sure = accepted if name == chain.target else kept
                    if self.levels[name].target is not None:
                        sure = 0  # drafts were read without the target's states, which there are now
                    keep[name][row] = min(keep[name][row], len(request.prompt) + before + sure)
            request.log_cycle(done, len(emitted))
            request.text = np.concatenate([request.text, emitted])
            past = request.past
            past.chosen.append(request.chosen)
            past.submitted.append(request.submitted)
            past.kept.append(kept)
            request.past = replace(past, emitted_tokens=len(request.text))
            ended = int(request.text[-1]) in self.models.eos_ids
            if len(request.text) < self.settings.output_tokens and not ended:
                going.append(row)
        for name, level in self.levels.items():
            level.roll_back(keep[name])
            if len(going) < len(self.live):
                level.leave(going)
            level.settle()
        self.live = [self.live[row] for row in going]

    def result(self) -> Decoded:
        total = time.perf_counter() - self.begun - self.prompt_seconds
        forwards = [f for level in self.levels.values() for f in level.log]
        return Decoded(
            texts=[r.text for r in self.all],
            cycles=[r.cycles for r in self.all],
            forwards=forwards,
            seconds={
                "prompts": self.prompt_seconds,
                "total": total,
                "forward": sum(f.seconds for f in forwards if f.cycle >= 0),
                "choosing": self.choosing_seconds,
                "packing": sum(level.packing_seconds for level in self.levels.values()),
            },
            near_ties=self.near_ties,
            packed=sum(level.packed for level in self.levels.values()),
        )
