"""Synthetic traces: what a recorder would write of made-up models.

Suffixes are shared the way a recorder relies on, and every count in the trace can be got again by running
the models token by token. Nothing here is measured: the manifest says ``synthetic``, and the latencies are
noise without order in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from simspec.speculation.verify import accepted_prefix
from simspec.strategies.made_up_models import (
    EOS,
    LOOKUP,
    MIDDLE,
    MODELS,
    SMALL,
    TARGET,
    VOCABULARY,
    History,
    MadeUpModels,
    settings_of,
)
from simspec.streams import stream

# The tables and the index need pandas and pyarrow: loaded where a trace is made.
if TYPE_CHECKING:
    import pyarrow as pa

    from simspec.tables import Table
    from simspec.traces.index import Trace
    from simspec.traces.manifest import Manifest

BATCHES, WIDTHS, CONTEXTS, REPETITIONS = (1, 2, 4), (1, 2, 4, 8), (8, 64), 2
NO_HASH = "0" * 64

Rows = dict[str, list[dict[str, Any]]]


def synthetic_traces(
    *, prompts: int = 4, output_tokens: tuple[int, int] = (4, 24), block_length: tuple[int, int] = (3, 10)
) -> st.SearchStrategy[Synthetic]:
    """Made-up models with their trace, of :func:`settings_of`; ``.trace()`` is what replay takes."""
    found = settings_of(prompts=prompts, output_tokens=output_tokens, block_length=block_length)
    return st.builds(Synthetic, found)


class Synthetic(MadeUpModels):
    """Made-up models with the trace that a recorder would write of them."""

    def __repr__(self) -> str:
        return f"Synthetic({self.setting!r})"

    @property
    def manifest(self) -> Manifest:
        from simspec.tables import TRACE_TABLES
        from simspec.traces.manifest import Manifest, ModelEntry, TableEntry

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
            notes=["made-up models: synthetic, nothing here is measured"],
        )

    @cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The trace's tables, as the recorder would fill them."""
        from simspec.tables import TRACE_TABLES

        rows: Rows = {t.name: [] for t in TRACE_TABLES}
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

    def _along(self, p: int, rows: Rows) -> None:
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

    def _blocks(self, p: int, drafter: str, rows: Rows) -> None:
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
            if block:
                rows["verdicts"] += self._verdicts(key, seen, text[start:], block)

    def _verdicts(
        self, key: Mapping[str, Any], seen: list[int], rest: list[int], block: list[int]
    ) -> Iterator[dict[str, Any]]:
        """What every other model says along a block drafted after ``seen``; the text goes on as ``rest``."""
        for verifier in (m for m in MODELS if m not in (key["drafter"], LOOKUP)):
            known, words = block, len(block) + 1
            if verifier == TARGET:  # its columns end where it cuts
                cut = accepted_prefix(np.array(block, dtype=np.int32), np.array(rest, dtype=np.int32)) + 1
                words = min(cut, len(rest)) if key["drafter"] == LOOKUP else 1
                known = block[:words]
            greedy = self.greedy(verifier, seen, block)[:words]
            places = [[*seen, *block[:j]] for j in range(words)]
            drafted = [self._prob(verifier, places[j], w) for j, w in enumerate(known)]
            yield {
                **key,
                "verifier": verifier,
                "greedy_token": greedy.tolist(),
                "top1_prob": [self.confidence(verifier, h) for h in places],
                "top2_margin": [1.0] * words,
                "drafted_prob": drafted,
                "overlap": drafted,
            }

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
            for c, b, w, m, r in product(CONTEXTS, BATCHES, WIDTHS, MODELS, range(REPETITIONS))
        ]

    def write(self, folder: Path) -> Manifest:
        """Write the trace to ``folder``."""
        from simspec.traces.files import write_trace

        return write_trace(folder, self.manifest, {n: _shard(t) for n, t in self.tables.items()})

    def load(self, folder: Path) -> Trace:
        """Write the trace to ``folder`` and read it back through every check."""
        from simspec.traces.index import load_trace

        self.write(folder)
        return load_trace(folder)

    def trace(self) -> Trace:
        """The trace indexed without going through files."""
        from simspec.traces.checked import Tables
        from simspec.traces.index import index_tables

        return index_tables(Tables(Path("toy"), self.manifest, self.tables))


def _shard(data: pa.Table) -> pa.Table:
    """Through Parquet and back, as the recorder's tables go through its shards."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(data, sink)
    return pq.read_table(pa.BufferReader(sink.getvalue()))


def table_of(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of the stated types."""
    import pyarrow as pa

    arrays = []
    for column in table.columns:
        values = [row[column.name] for row in rows]
        if column.type == pa.list_(pa.float16()):
            values = [np.asarray(v, dtype=np.float16) for v in values]
        arrays.append(pa.array(values, type=column.type))
    return pa.Table.from_arrays(arrays, schema=table.schema)
