"""One model of a chain and what it has read of each request of a batch."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.record.models import forward
from simspec.record.reads_target import states_of, states_width
from simspec.record.slot_cache import SlotCache
from simspec.speculation.slots import Appended, Slots

Tokens = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Packing:
    """When a level's cache is packed: above ``needed * (1 + slack) + floor`` slots (claim S9b)."""

    slack: float = 0.5
    floor: int = 32


@dataclass(frozen=True)
class ForwardLog:
    """One forward, as it ran.

    Attributes:
        model: its name.
        cycle: which round of the lock-step batch it belonged to, from 0; -1 for reading prompts.
        rows: requests in it.
        width: new tokens of the widest row.
        tokens: new tokens of all rows.
        context: tokens in the cache of the longest row, before it.
        context_tokens: tokens in the caches of its rows, before it.
        slots: slots of the cache, wasted ones included, before it.
        seconds: wall time of the network, and of moving its inputs to the device.
    """

    model: str
    cycle: int
    rows: int
    width: int
    tokens: int
    context: int
    context_tokens: int
    slots: int
    seconds: float


@dataclass(frozen=True)
class LevelState:
    """A level at one moment: its bookkeeping, its layers' keys and values, the tokens they are of, and its
    hidden states where it keeps those."""

    slots: Slots
    tensors: list[tuple[torch.Tensor, torch.Tensor]]
    held: list[Tokens]
    states: torch.Tensor | None = None


class Level:
    """A model's state for a batch of requests: one cache, and which tokens it holds.

    Rolling back marks entries invalid and moves nothing; :meth:`settle` then drops the slots that
    the whole batch has rolled back and packs the cache when too much of it is waste.
    """

    def __init__(
        self,
        name: str,
        network: Any,
        packing: Packing,
        *,
        keeps_states: tuple[int, ...] = (),
        target: Level | None = None,
    ) -> None:
        """A level without requests.

        Args:
            keeps_states: layers whose states at each token are kept, for drafters that read them.
            target: whose states this one reads; its rows are the same requests.
        """
        self.name, self.network, self.packing = name, network, packing
        self.device: torch.device = network.device
        self.slots = Slots(0)
        self.cache = SlotCache(int(network.config.num_hidden_layers), 0)
        self.held: list[Tokens] = []
        self.log: list[ForwardLog] = []
        self.cycle = -1
        self.packed = 0
        self.packing_seconds = 0.0
        self.target = target
        self.keeps_states = keeps_states
        # Shape (rows, at least the longest text, layers * hidden), by place in the text; what lies past the
        # tokens that are held means nothing.
        self.states: torch.Tensor | None = None
        if keeps_states:
            self.states = torch.zeros((0, 64, states_width(network, keeps_states)), device=self.device)

    def join(self, rows: int) -> None:
        """Rows for new requests, at the end, holding nothing."""
        self.slots.join(rows)
        self.cache.add_rows(rows)
        self.held += [np.empty(0, dtype=np.int32)] * rows
        if self.states is not None:
            self.states = torch.cat([self.states, self.states.new_zeros(rows, *self.states.shape[1:])])

    def copy_state(self) -> LevelState:
        """What :meth:`adopt` needs to go on from here; a copy, which later reading leaves alone."""
        states = None if self.states is None else self.states.clone()
        return LevelState(copy.deepcopy(self.slots), self.cache.copy_tensors(), list(self.held), states)

    def adopt(self, state: LevelState) -> None:
        """Go on from a state of the same model, instead of reading the same prompts again."""
        self.slots, self.held = copy.deepcopy(state.slots), list(state.held)
        if self.states is not None:
            assert state.states is not None  # the same models keep them in every run
            self.states = state.states.clone()
        self.cache.adopt_tensors(state.tensors, self.slots.rows, self.slots.slots)

    def read(
        self,
        rows: Sequence[int],
        texts: Sequence[Tokens],
        wanted: Sequence[int],
        *,
        padding: tuple[int, int] | None = None,
        see_all: bool = False,
    ) -> tuple[torch.Tensor, Ints]:
        """Read what is new of each text.

        Args:
            rows: which requests, ascending.
            texts: each one's whole text, prompt included; what the cache holds of another
                text is rolled back first.
            wanted: how many of its last tokens the model's word is wanted after; 0 for none.
            padding: (token, count): as many of that token after each text, rolled back at once;
                their words are given too (a drafter that fills masked places).
            see_all: whether those padded places see each other whole, not only what is before them.

        Returns:
            logits, shape (sum of wanted [+ count], vocabulary), one request after another, and how
            many new tokens each request had, shape (rows,).
        """
        extra = padding[1] if padding else 0
        fresh = []
        keep = self.slots.lengths.copy()
        for row, text, least in zip(rows, texts, wanted, strict=True):
            held = self.held[row]
            shared = min(len(held), len(text) - max(least, 1))
            differ = np.flatnonzero(held[:shared] != text[:shared])
            keep[row] = differ[0] if len(differ) else shared
            fresh.append(text[keep[row] :])
        self.roll_back(keep)
        widths = np.zeros(self.slots.rows, dtype=np.int64)
        counts = np.array([len(f) for f in fresh], dtype=np.int64)
        widths[list(rows)] = counts + extra
        before = self.slots.lengths[list(rows)]
        added = self.slots.append(widths)
        begun = time.perf_counter()
        whole = len(rows) == self.slots.rows
        tokens = np.zeros((len(rows), added.width), dtype=np.int64)
        for i, new in enumerate(fresh):
            tokens[i, : len(new)] = new
            if padding:
                tokens[i, len(new) : len(new) + extra] = padding[0]
        take = np.asarray(rows)
        mask = None if added.mask is None else added.mask[take]
        if see_all:
            mask = _block_mask(added, mask, counts, extra)
        self.cache.place(added.first_slot, self.slots.slots, None if whole else self._tensor(take))
        # Logits are made only from the first place on that some row wants; the output layer is
        # a good part of a small model.
        first = min((int(n) - least for n, least in zip(counts, wanted, strict=True) if least), default=-1)
        kept = added.width - first if first >= 0 else 1
        fed = None if self.target is None else self._target_states(rows, keep, counts, added.width)
        with states_of(self.network, self.keeps_states) as found:
            logits = forward(
                self.network,
                self._tensor(tokens),
                self._tensor(added.positions[take]),
                self.cache,
                None if mask is None else self._tensor(mask)[:, None],
                last=kept,
                states=fed,
            )
        for states in found:
            self._keep_states(states, rows, keep, counts)
        flat = logits.reshape(-1, logits.shape[-1])
        chosen = np.concatenate(
            [
                np.arange(n - least, n + extra) - (added.width - kept) + i * kept
                for i, (n, least) in enumerate(zip(counts, wanted, strict=True))
                if least
            ]
            or [np.empty(0)]
        ).astype(np.int64)
        words = flat if len(chosen) == len(flat) else flat[self._tensor(chosen)]
        self._wait()
        self.log.append(
            ForwardLog(
                model=self.name,
                cycle=self.cycle,
                rows=len(rows),
                width=added.width,
                tokens=int(widths.sum()),
                context=int(before.max()),
                context_tokens=int(before.sum()),
                slots=added.first_slot,
                seconds=time.perf_counter() - begun,
            )
        )
        for row, text in zip(rows, texts, strict=True):
            self.held[row] = text
        if padding:
            self.roll_back(np.array([len(h) for h in self.held], dtype=np.int64))
        return words, counts

    def roll_back(self, lengths: Ints) -> None:
        """Keep at most so many tokens of each request, shape (rows,)."""
        lengths = np.minimum(lengths, self.slots.lengths)
        if (lengths < self.slots.lengths).any():
            self.slots.roll_back(lengths)
            self.held = [h[:n] for h, n in zip(self.held, lengths, strict=True)]

    def settle(self) -> None:
        """After a cycle: drop what the whole batch has rolled back, and pack when the rule says so."""
        self.slots.truncate()
        if self.slots.should_compact(self.packing.slack, self.packing.floor):
            begun = time.perf_counter()
            source = self.slots.compact()
            # Tokens before the first waste stay where they are.
            moved = np.flatnonzero((source != np.arange(source.shape[1])).any(axis=0))
            if len(moved):
                self.cache.gather(self._tensor(source[:, moved[0] :]), int(moved[0]))
            self._wait()
            self.packed += 1
            self.packing_seconds += time.perf_counter() - begun

    def leave(self, keep: Sequence[int]) -> None:
        """Only these requests go on; the others give up their rows."""
        gone = np.setdiff1d(np.arange(self.slots.rows), keep)
        self.slots.finish(gone)
        self.slots.remove(np.asarray(keep, dtype=np.int64))
        self.cache.take_rows(self._tensor(np.asarray(keep, dtype=np.int64)))
        self.held = [self.held[r] for r in keep]
        if self.states is not None:
            self.states = self.states[self._tensor(np.asarray(keep, dtype=np.int64))]

    def _keep_states(self, states: torch.Tensor, rows: Sequence[int], first: Ints, counts: Ints) -> None:
        """Of the ``counts`` new tokens from place ``first`` of each row on; written in place."""
        assert self.states is not None
        longest = max(int(first[row] + n) for row, n in zip(rows, counts, strict=True))
        if longest > self.states.shape[1]:
            more = max(longest, 2 * self.states.shape[1]) - self.states.shape[1]
            self.states = torch.nn.functional.pad(self.states, (0, 0, 0, more))
        for i, (row, n) in enumerate(zip(rows, counts, strict=True)):
            self.states[row, first[row] : first[row] + n] = states[i, :n]

    def _target_states(self, rows: Sequence[int], first: Ints, counts: Ints, width: int) -> torch.Tensor:
        """The target's states at the token before each new one, zeros where it has not read that."""
        assert self.target is not None
        states = self.target.states
        assert states is not None
        fed = states.new_zeros(len(rows), width, states.shape[2])
        for i, (row, n) in enumerate(zip(rows, counts, strict=True)):
            before = int(first[row]) - 1
            known = min(before + int(n), len(self.target.held[row]))
            begin = max(before, 0)
            if begin < known:
                fed[i, begin - before : known - before] = states[row, begin:known]
        return fed

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        return torch.as_tensor(values, device=self.device)

    def _wait(self) -> None:
        """Wait for work already handed to an accelerator, so that a time is a time."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()


def _block_mask(
    added: Appended, mask: NDArray[np.bool_] | None, counts: Ints, extra: int
) -> NDArray[np.bool_]:
    """The mask of :meth:`Slots.append`, opened among the ``extra`` places after each row's text."""
    slots = added.first_slot + added.width
    if mask is None:
        causal = np.arange(slots) <= added.first_slot + np.arange(added.width)[:, None]
        mask = np.repeat(causal[None], len(counts), axis=0)
    offset = np.arange(added.width)
    inside = (offset >= counts[:, None]) & (offset < counts[:, None] + extra)
    opened = mask.copy()
    opened[:, :, added.first_slot :] |= inside[:, :, None] & inside[:, None, :]
    return opened
