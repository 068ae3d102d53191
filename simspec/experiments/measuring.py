"""Forwards timed and chains decoded for real, in turn: what ``simspec validate`` measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.calibration.pattern import PatternGrid, PatternTimer
from simspec.compare.cut import cut_texts
from simspec.compare.replayed import Candidate
from simspec.cost.models import MeasuredCost
from simspec.errors import BadInput
from simspec.experiments.candidates import choose
from simspec.experiments.comparing import features_of, unit_of
from simspec.experiments.files import Pieces
from simspec.experiments.prompts import recorded_prompts
from simspec.record.decoded import Settings
from simspec.record.engines import LOOKUP_TOKENS, Engine, compare_engines
from simspec.record.executor import KeptPrompts, decode
from simspec.record.models import LoadedModels, skip_layers
from simspec.record.recipe import Recipe
from simspec.replay.trajectories import Trajectories, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import Schedule
from simspec.speculation.verify import Tokens
from simspec.streams import stream
from simspec.tables import LATENCY
from simspec.traces.index import Trace

Progress = Callable[[str], None]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ValidateSettings:
    """The measurement.

    Attributes:
        shares: (batch size, prompts decoded at it in a round). Rounds go on through the decoded prompts, in
            orders drawn anew, so that prompts meet in other batches.
        decoded: prompts of the record that are decoded; acceptance is fitted on the others.
        rounds: how often forwards are timed and every configuration decodes its batches.
        lengths: draft lengths that are considered.
        near: of the chains x lengths that replay finds fastest, how many are decoded.
        output_tokens: of each text.
        engines: whether transformers' own engines are measured as well.
        longest_prompt: prompts of more tokens are left out, since reading them, which is not
            compared, would take most of the run.
    """

    shares: tuple[tuple[int, int], ...] = ((1, 3), (2, 6), (4, 8), (8, 16))
    decoded: int = 16
    rounds: int = 4
    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    near: int = 8
    output_tokens: int = 32
    engines: bool = True
    longest_prompt: int = 200
    seed: int = 0


class Session:
    """One measurement: everything that takes time is a piece, made once."""

    def __init__(
        self,
        trace: Trace,
        recipe: Recipe,
        folder: Path,
        models: LoadedModels,
        settings: ValidateSettings,
        pieces: Pieces,
        progress: Progress,
    ) -> None:
        self.recipe, self.models, self.settings = recipe, models, settings
        self.pieces, self.progress = pieces, progress
        self.trace = cut_texts(trace, settings.output_tokens)
        largest = max(batch for batch, _ in settings.shares)
        rows, prompts = recorded_prompts(trace, models, recipe, folder, settings.longest_prompt)
        if len(rows) < settings.decoded + largest:
            raise BadInput(
                f"holds {len(rows)} prompts of at most {settings.longest_prompt} tokens",
                where=trace.folder,
                allowed=f"at least {settings.decoded + largest}",
            )
        self.rows, self.fitted = rows[: settings.decoded], rows[settings.decoded :]
        self.prompts, self.spare = prompts[: settings.decoded], prompts[settings.decoded :][:largest]
        self.asked = Settings(settings.output_tokens, trace.manifest.block_length)
        self.units = {batch: self._units(batch, count) for batch, count in settings.shares}
        self.timer: PatternTimer | None = None

    def _units(self, batch: int, count: int) -> Ints:
        """Places in ``rows`` of each batch that is decoded, shape (rounds * batches a round, batch)."""
        wanted = self.settings.rounds * (count // batch) * batch
        generator = stream(self.settings.seed, "validate", "prompts", batch)
        orders = [generator.permutation(len(self.rows)) for _ in range(-(-wanted // len(self.rows)))]
        return np.concatenate(orders)[:wanted].reshape(-1, batch)

    def measure(self) -> None:
        """Make every piece that is not there yet."""
        rounds = self.settings.rounds
        for turn in range(rounds):
            self._time_forwards(turn)
            if turn == 0:
                self.chosen = self._choose()
            # Batch sizes in turn, so that a slow stretch of the machine falls on all alike.
            mine = [
                (b, u, unit)
                for b, us in self.units.items()
                for u, unit in enumerate(np.split(us, rounds)[turn])
            ]
            for i in stream(self.settings.seed, "validate", "order", turn).permutation(len(mine)).tolist():
                batch, u, unit = mine[i]
                said = f"round {turn + 1} of {rounds}, batch {batch}"
                self._decode(f"unit-{batch:03d}-{turn:03d}-{u:03d}", said, batch, unit)
            self.pieces.make(f"spare-{turn:03d}", lambda t=turn: self._spare(t))  # type: ignore[misc]
        self._time_forwards(rounds)
        if self.settings.engines:
            self.pieces.make("engines", self._engines)

    def _time_forwards(self, turn: int) -> None:
        def build() -> list[Any]:
            self.progress(f"forwards, time {turn + 1} of {self.settings.rounds + 1}")
            if self.timer is None:
                self.timer = self._timer()
            self.timer.rows.clear()
            self.timer.rounds = turn
            self.timer.round()
            return self.timer.rows

        self.pieces.make(f"forwards-{turn:03d}", build)

    def _timer(self) -> PatternTimer:
        models, recipe = self.models, self.recipe
        networks = {n: models.networks[n] for n in self.trace.drafters if n in models.networks}
        networks |= {n: kind.network for n, kind in models.blocks.items()}
        if self.settings.engines:
            early, exit_layers, layers = self._early_exit()
            # Early exit drafts with the target's first layers; timed like a drafter of its own.
            networks[early] = skip_layers(
                models.networks[self.trace.target], exit_layers, layers - exit_layers
            )
        networks[self.trace.target] = models.networks[self.trace.target]
        return PatternTimer(
            networks,
            models.lookups,
            self._grid(),
            device=recipe.device,
            dtype=recipe.dtype,
            vocabulary=models.vocabulary,
            seed=self.settings.seed,
        )

    def _grid(self) -> PatternGrid:
        """Wide enough for the forwards of block-parallel drafters: what is new, and the masked places."""
        grid = PatternGrid(batches=tuple(sorted(self.units)))
        if not self.models.blocks:
            return grid
        new = max(self.settings.lengths) + 1
        masks = max(kind.block for kind in self.models.blocks.values()) - 1
        wide = (w for w in (12, 16, 24, new, new + masks) if grid.widths[-1] < w <= new + masks)
        return replace(grid, widths=(*grid.widths, *sorted(set(wide))))

    def _early_exit(self) -> tuple[str, int, int]:
        """A name for the target's first layers, how many, and how many there are."""
        network: Any = self.models.networks[self.trace.target]
        layers = int(network.config.num_hidden_layers)
        return f"first-{2 * layers // 3}", 2 * layers // 3, layers

    def _timed(self) -> list[Any]:
        return self.pieces.like("forwards-")[: self.settings.rounds + 1]

    def latency(self) -> pd.DataFrame:
        """Every forward that was timed."""
        kept = [row for piece in self._timed() for row in piece]
        return pd.DataFrame(kept, columns=LATENCY.schema.names)

    def cost(self) -> MeasuredCost:
        """What was timed so far, as a cost."""
        return MeasuredCost(self.latency(), self.recipe.dtype, "fresh", "timed in this run")

    def _choose(self) -> dict[int, list[Candidate]]:
        """Kept as a piece: forwards that are timed later must not change it."""

        def build() -> dict[str, Any]:
            self.progress("choosing chains")
            cost = self.cost()
            decoded = {b: self.rows[np.unique(u)] for b, u in self.units.items()}
            found = choose(self.trace, cost, self.fitted, decoded, self.settings.lengths, self.settings.near)
            return {str(b): [(c.levels, c.semantics, n) for c, n in kept] for b, kept in found.items()}

        kept = self.pieces.make("chosen", build)
        return {int(b): [(Chain(tuple(c), s), n) for c, s, n in some] for b, some in kept.items()}

    def _decode(self, name: str, said: str, batch: int, unit: Ints) -> None:
        """Every configuration of a batch size on one batch of prompts, in an order drawn anew."""
        candidates = self.chosen[batch]
        order = stream(self.settings.seed, "validate", name).permutation(len(candidates)).tolist()
        kept: KeptPrompts = {}
        for done, k in enumerate(order):

            def build(k: int = k, done: int = done) -> Any:
                self.progress(f"{said}: chain {done + 1} of {len(order)}")
                schedule = schedule_of(candidates[k])
                made = decode(self.models, [schedule], self._texts(unit), self.asked, kept=kept)
                return msgspec.to_builtins(unit_of(made, self.replay(schedule, self.rows), unit))

            self.pieces.make(f"{name}-{k:03d}", build)

    def _texts(self, unit: Ints) -> list[Tokens]:
        return [self.prompts[i] for i in unit]

    def replay(self, schedule: Schedule, rows: Ints) -> Trajectories:
        """The prompts ``rows`` of the record under a schedule."""
        return run(self.trace, schedule.chain, schedule.rule, self.trace.offsets[rows])

    def _spare(self, turn: int) -> list[Any]:
        """What comes beside forwards, on prompts that are not compared: (features, seconds)."""
        self.progress(f"round {turn + 1} of {self.settings.rounds}: spare prompts")
        largest = max(self.chosen)
        order = stream(self.settings.seed, "validate", "spare", turn).permutation(len(self.chosen[largest]))
        kept: KeptPrompts = {}
        found = []
        for k in order[:3].tolist():
            for prompts in (self.spare[:1], self.spare):
                schedule = schedule_of(self.chosen[largest][k])
                done = decode(self.models, [schedule], prompts, self.asked, kept=kept)
                found.append((features_of(done), done.seconds["total"] - done.seconds["forward"]))
        return found

    def _engines(self) -> list[dict[str, Any]]:
        drafters = [d for d in self.trace.drafters if d in self.models.networks]
        early, exit_layers, layers = self._early_exit()
        asked = [Engine(f"assisted by {d}", d, 5) for d in dict.fromkeys((*drafters[:1], *drafters[-1:]))]
        asked.append(Engine("prompt lookup", None, LOOKUP_TOKENS))
        asked.append(Engine(f"early exit at {exit_layers}", early, 4, exit_layers))
        self.models.networks[early] = skip_layers(
            self.models.networks[self.trace.target], exit_layers, layers - exit_layers
        )
        fitted, tested = self.spare[:2], self.prompts[:6]
        alone = Schedule(Chain((self.trace.target,)))
        texts = decode(self.models, [alone], [*fitted, *tested], self.asked).texts
        return compare_engines(
            self.models,
            asked,
            fitted,
            tested,
            texts,
            self.cost(),
            self.settings.output_tokens,
            self.progress,
        )


def schedule_of(candidate: Candidate) -> Schedule:
    chain, length = candidate
    return Schedule(chain, Static(length) if chain.drafter else None)
