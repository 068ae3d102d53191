"""Made-up models, small enough to run token by token, and the synthetic trace of them.

A toy model is a deterministic function of the whole token history, as a real one is under
greedy decoding; its confidences are too. So suffixes are shared the way the recorder relies
on, and every count in the trace can be got again by simply running the models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from simspec.speculation.drafters import PromptLookup
from simspec.speculation.verify import accepted_prefix
from simspec.streams import stream
from simspec.tables import TRACE_TABLES, Table
from simspec.traces.files import write_trace
from simspec.traces.index import Trace, index_tables
from simspec.traces.invariants import Tables
from simspec.traces.manifest import Manifest, ModelEntry, TableEntry
from simspec.traces.reader import read_tables

VOCABULARY = 20
EOS = VOCABULARY - 1
TARGET, MIDDLE, SMALL, LOOKUP = "target", "middle", "small", "ngram"
MODELS = (TARGET, LOOKUP, SMALL, MIDDLE)
BATCHES, WIDTHS, CONTEXTS, REPETITIONS = (1, 2, 4), (1, 2, 4, 8), (8, 64), 2
NO_HASH = "0" * 64

History = Sequence[int]


@dataclass(frozen=True)
class Setting:
    """What a toy is made from. The rates say how often a drafter repeats whom it follows."""

    seed: int = 0
    prompts: int = 3
    output_tokens: int = 12
    block_length: int = 5
    order: int = 2  # tokens that the target looks back on; 1 makes texts that repeat themselves
    middle_rate: float = 0.7
    small_rate: float = 0.6
    small_follows: str = MIDDLE


def settings_of(
    *, prompts: int = 4, output_tokens: tuple[int, int] = (4, 24), block_length: tuple[int, int] = (3, 10)
) -> st.SearchStrategy[Setting]:
    """Settings to draw from, within the given bounds."""
    rate = st.sampled_from([0.0, 0.3, 0.6, 0.8, 0.95, 1.0])
    return st.builds(
        Setting,
        seed=st.integers(0, 10_000),
        prompts=st.integers(1, prompts),
        output_tokens=st.integers(*output_tokens),
        block_length=st.integers(*block_length),
        order=st.integers(1, 3),
        middle_rate=rate,
        small_rate=rate,
        small_follows=st.sampled_from([TARGET, MIDDLE]),
    )


class Toy:
    """The models of a setting, their prompts and texts, and the trace that a recorder would write."""

    def __init__(self, setting: Setting):
        self.setting = setting
        self.lookup = PromptLookup(3, 1)
        self._memo: dict[tuple[str, tuple[int, ...]], tuple[int, float]] = {}
        self.prompts = [self._prompt(p) for p in range(setting.prompts)]
        self.texts = [self._decode(prompt) for prompt in self.prompts]

    # The models, one token at a time.

    def next_token(self, model: str, history: History) -> int:
        """The model's most probable token after ``history``."""
        return self._asked(model, tuple(history))[0]

    def confidence(self, model: str, history: History) -> float:
        """The probability that it gives to that token."""
        return self._asked(model, tuple(history))[1]

    def greedy(self, model: str, history: History, block: History) -> np.ndarray:
        """What it would put at each place of ``block`` and one past its end, shape (n + 1,)."""
        whole = [*history, *block]
        first = len(history)
        return np.array(
            [self.next_token(model, whole[:i]) for i in range(first, len(whole) + 1)], dtype=np.int32
        )

    def draft(self, model: str, history: History, length: int) -> tuple[list[int], list[float]]:
        """At most ``length`` drafted tokens, none after an end of text, and their confidences."""
        if model == LOOKUP:
            found = self.lookup.draft(np.array(history, dtype=np.int32), max(length, 0)).tolist()
            if EOS in found:
                found = found[: found.index(EOS) + 1]
            return found, [1.0] * len(found)
        tokens: list[int] = []
        sure: list[float] = []
        while len(tokens) < length and EOS not in tokens:
            seen = [*history, *tokens]
            sure.append(self.confidence(model, seen))
            tokens.append(self.next_token(model, seen))
        return tokens, sure

    def _asked(self, model: str, history: tuple[int, ...]) -> tuple[int, float]:
        key = (model, history)
        if key not in self._memo:
            chance = float(np.float32(0.02 + 0.98 * self._unit(model, "confidence", history)))
            self._memo[key] = (self._choose(model, history), chance)
        return self._memo[key]

    def _choose(self, model: str, history: tuple[int, ...]) -> int:
        s = self.setting
        if model == TARGET:
            return int(self._unit(TARGET, history[-s.order :]) * VOCABULARY)
        rate, follows = {MIDDLE: (s.middle_rate, TARGET), SMALL: (s.small_rate, s.small_follows)}[model]
        if self._unit(model, "follows", history) < rate:
            return self.next_token(follows, history)
        return int(self._unit(model, "own", history) * VOCABULARY)

    def _unit(self, *what: object) -> float:
        """A number in [0, 1) that is a function of the seed and of ``what``."""
        digest = hashlib.blake2b(repr((self.setting.seed, *what)).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "little") / 2**48

    def _prompt(self, index: int) -> list[int]:
        generator = stream(self.setting.seed, "toy", "prompt", index)
        words = generator.integers(0, VOCABULARY, int(generator.integers(2, 9))).tolist()
        # A chat template has the end-of-text token in it too, and a prompt may say a thing twice.
        return [*words, EOS, *words[: int(generator.integers(1, len(words) + 1))]]

    def _decode(self, prompt: list[int]) -> list[int]:
        text: list[int] = []
        while len(text) < self.setting.output_tokens and EOS not in text:
            text.append(self.next_token(TARGET, [*prompt, *text]))
        return text

    # The trace.

    @property
    def manifest(self) -> Manifest:
        s = self.setting
        entry = TableEntry(file="none.parquet", rows=0, sha256=NO_HASH)
        return Manifest(
            format=1,
            name="toy",
            origin="synthetic",
            created="1970-01-01T00:00:00Z",
            command=[],
            recipe={"seed": s.seed},
            recipe_sha256=NO_HASH,
            target=TARGET,
            models={m: ModelEntry(kind="prompt-lookup" if m == LOOKUP else "autoregressive") for m in MODELS},
            tokenizer_sha256=NO_HASH,
            vocabulary=VOCABULARY,
            eos_tokens=[EOS],
            output_tokens=s.output_tokens,
            block_length=s.block_length,
            context_limit=512,
            seed=s.seed,
            device="none",
            dtype="float32",
            machine={},
            versions={},
            units={},
            near_ties={},
            recording_seconds={},
            behaviour_sha256=NO_HASH,
            tables={t.name: entry for t in TRACE_TABLES},
            notes=["made-up models: for tests only"],
        )

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The trace's tables, as the recorder would fill them."""
        rows: dict[str, list[dict[str, Any]]] = {t.name: [] for t in TRACE_TABLES}
        for p, (prompt, text) in enumerate(zip(self.prompts, self.texts, strict=True)):
            rows["prompts"].append(
                {
                    "prompt_id": p,
                    "category": "synthetic",
                    "source": "toy",
                    "source_id": str(p),
                    "prompt_hash": hashlib.sha256(bytes(prompt)).hexdigest(),
                    "prompt_tokens": len(prompt),
                    "output_tokens": len(text),
                    "finish": "eos" if text[-1] == EOS else "length",
                }
            )
            rows["texts"] += [{"prompt_id": p, "position": t, "token": w} for t, w in enumerate(text)]
            self._along(p, rows)
            for drafter in MODELS[1:]:
                self._blocks(p, drafter, rows)
        rows["latency"] = self._latency()
        return {t.name: table_of(t, rows[t.name]) for t in TRACE_TABLES}

    def _along(self, p: int, rows: dict[str, list[dict[str, Any]]]) -> None:
        prompt, text = self.prompts[p], self.texts[p]
        networks = [m for m in MODELS if m != LOOKUP]
        for model in networks:
            for t, token in enumerate(text):
                seen = [*prompt, *text[:t]]
                mine = self.next_token(model, seen)
                rows["along"].append(
                    {
                        "prompt_id": p,
                        "position": t,
                        "model": model,
                        "greedy_token": mine,
                        "top1_prob": self.confidence(model, seen),
                        "top2_margin": 1.0,
                        "entropy": 0.5,
                        "text_prob": self._prob(model, seen, token),
                        "text_rank": int(mine != token),
                    }
                )
        for t in range(len(text)):
            seen = [*prompt, *text[:t]]
            block = self.lookup.draft(np.array(seen, dtype=np.int32), 1)
            first = {m: self.next_token(m, seen) for m in networks}
            pairs = [(a, b) for i, a in enumerate(networks) for b in networks[i + 1 :]]
            if len(block):
                first[LOOKUP] = int(block[0])
                pairs += [(m, LOOKUP) for m in networks]
            rows["pairs"] += [
                {
                    "prompt_id": p,
                    "position": t,
                    "model_a": a,
                    "model_b": b,
                    "tv": self._unit("tv", a, b, tuple(seen)),
                    "argmax_agree": first[a] == first[b],
                }
                for a, b in pairs
            ]

    def _blocks(self, p: int, drafter: str, rows: dict[str, list[dict[str, Any]]]) -> None:
        """Every start of a look-up; of any other drafter, where its first token leaves the text."""
        prompt, text = self.prompts[p], self.texts[p]
        starts = range(len(text) + (text[-1] != EOS))
        for start in starts:
            seen = [*prompt, *text[:start]]
            if drafter == LOOKUP:
                if start == len(text):
                    continue
                block = self.lookup.draft(np.array(seen, dtype=np.int32), self.setting.block_length).tolist()
                sure = [1.0] * len(block)
            else:
                if start < len(text) and self.next_token(drafter, seen) == text[start]:
                    continue
                block, sure = [], []
                for _ in range(self.setting.block_length):  # on past any end of text, as recorded
                    sure.append(self.confidence(drafter, [*seen, *block]))
                    block.append(self.next_token(drafter, [*seen, *block]))
            key = {"prompt_id": p, "start": start, "drafter": drafter}
            zeros = [0.0] * len(block)
            rows["blocks"].append(
                {
                    **key,
                    "tokens": block,
                    "confidence": sure,
                    "top1_prob": sure,
                    "top2_margin": zeros,
                    "entropy": zeros,
                }
            )
            if not block:
                continue
            for verifier in (m for m in MODELS if m not in (drafter, LOOKUP)):
                known, words = block, len(block) + 1
                if verifier == TARGET:  # its columns end where it cuts
                    cut = accepted_prefix(np.array(block), np.array(text[start:], dtype=np.int64)) + 1
                    words = min(cut, len(text) - start) if drafter == LOOKUP else 1
                    known = block[:words]
                greedy = self.greedy(verifier, seen, block)[:words]
                places = [[*seen, *block[:j]] for j in range(words)]
                drafted = [self._prob(verifier, places[j], w) for j, w in enumerate(known)]
                rows["verdicts"].append(
                    {
                        **key,
                        "verifier": verifier,
                        "greedy_token": greedy.tolist(),
                        "top1_prob": [self.confidence(verifier, h) for h in places],
                        "top2_margin": [1.0] * words,
                        "drafted_prob": drafted,
                        "overlap": drafted,
                    }
                )

    def _prob(self, model: str, history: History, token: int) -> float:
        top = self.confidence(model, history)
        return top if self.next_token(model, history) == token else (1.0 - top) / VOCABULARY

    def _latency(self) -> list[dict[str, Any]]:
        """Times with no order in them: wider or larger can be faster, as on a noisy machine."""
        generator = stream(self.setting.seed, "toy", "latency")
        scale = {TARGET: 1.0, MIDDLE: 0.4, SMALL: 0.1, LOOKUP: 0.01}
        return [
            {
                "model": m,
                "device": "none",
                "dtype": "none" if m == LOOKUP else "float32",
                "batch": b,
                "new_tokens": w,
                "context": c,
                "repetition": r,
                "seconds": scale[m] * float(generator.uniform(0.5, 1.5)) * (1 + 0.1 * b * w),
            }
            for c in CONTEXTS
            for b in BATCHES
            for w in WIDTHS
            for m in MODELS
            for r in range(REPETITIONS)
        ]

    def write(self, folder: Path) -> Manifest:
        """Write the trace to ``folder``."""
        return write_trace(folder, self.manifest, {n: _shard(t) for n, t in self.tables.items()})

    def load(self, folder: Path) -> Trace:
        """Write the trace to ``folder`` and read it back through every check."""
        self.write(folder)
        return index_tables(read_tables(folder))

    def trace(self) -> Trace:
        """The trace indexed without going through files."""
        return index_tables(Tables(Path("toy"), self.manifest, self.tables))


def _shard(data: pa.Table) -> pa.Table:
    """Through Parquet and back, as the recorder's tables go through its shards."""
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink)
    return pq.read_table(pa.BufferReader(sink.getvalue()))


def table_of(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of the stated types."""
    arrays = []
    for column in table.columns:
        values = [row[column.name] for row in rows]
        if column.type == pa.list_(pa.float16()):
            values = [np.asarray(v, dtype=np.float16) for v in values]
        arrays.append(pa.array(values, type=column.type))
    return pa.Table.from_arrays(arrays, schema=table.schema)
