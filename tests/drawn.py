"""Sampled recordings of made-up models that look back on one token. SYNTHETIC, all of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from simspec.speculation.drafters import PromptLookup
from simspec.strategies.made_up_models import Setting
from simspec.strategies.traces import Synthetic, table_of
from simspec.streams import stream
from simspec.tables import TRACE_TABLES
from simspec.traces.checked import Tables
from simspec.traces.files import write_trace
from simspec.traces.manifest import ModelEntry, SamplingEntry

TARGET, NEAR, LOOKUP = "target", "small", "ngram"  # names of the greedy made-up models
PROMPT = (0, 1, 0, 1)


@dataclass(frozen=True)
class Drawn:
    """Two networks, a row of probabilities after each token, and a look-up.

    Attributes:
        p, q: of the target and of ``small``, (V, V); the last token ends the text.
    """

    p: np.ndarray
    q: np.ndarray
    prompts: int = 4
    output_tokens: int = 12
    block_length: int = 5
    seed: int = 0

    @property
    def end(self) -> int:
        return len(self.p) - 1

    def tables(self, folder: Path = Path("made-up")) -> Tables:
        """All tables of the recording."""
        rows: dict[str, list] = {t.name: [] for t in TRACE_TABLES}
        for prompt in range(self.prompts):
            self._prompt(prompt, rows)
        rows["latency"] = [
            {
                "model": m,
                "device": "none",
                "dtype": "none" if m == LOOKUP else "float32",
                "batch": b,
                "new_tokens": w,
                "context": c,
                "repetition": 0,
                # In stairs of four tokens, as padded forwards are.
                "seconds": {TARGET: 1.0, NEAR: 0.1, LOOKUP: 0.01}[m] * (1 + 0.1 * -(-w // 4) * b),
            }
            for c, b, w, m in product((8, 64), (1, 4), range(1, 18), (TARGET, NEAR, LOOKUP))
        ]
        manifest = msgspec.structs.replace(
            Synthetic(Setting()).manifest,
            models={
                m: ModelEntry(kind="prompt-lookup" if m == LOOKUP else "autoregressive")
                for m in (TARGET, NEAR, LOOKUP)
            },
            vocabulary=len(self.p),
            eos_tokens=[self.end],
            output_tokens=self.output_tokens,
            block_length=self.block_length,
            sampling=SamplingEntry(1.0, 1.0),
        )
        return Tables(folder, manifest, {t.name: table_of(t, rows[t.name]) for t in TRACE_TABLES})

    def write(self, folder: Path) -> Path:
        """As files."""
        made = self.tables(folder)
        shards = {n: pa.Table.from_batches(t.to_batches(), t.schema) for n, t in made.tables.items()}
        write_trace(folder, made.manifest, shards)
        return folder

    def _prompt(self, number: int, rows: dict[str, list]) -> None:
        luck, text = stream(self.seed, "made-up", number), []
        while len(text) < self.output_tokens and self.end not in text:
            text.append(int(luck.choice(len(self.p), p=self.p[([*PROMPT, *text])[-1]])))
        rows["prompts"].append(
            {
                "prompt_id": number,
                "category": ("odd", "even")[number % 2],
                "source": "made up",
                "source_id": str(number),
                "prompt_hash": hashlib.sha256(bytes([number])).hexdigest(),
                "prompt_tokens": len(PROMPT),
                "output_tokens": len(text),
                "finish": "eos" if text[-1] == self.end else "length",
            }
        )
        rows["texts"] += [{"prompt_id": number, "position": t, "token": y} for t, y in enumerate(text)]
        for t, y in enumerate(text):
            last = ([*PROMPT, *text[:t]])[-1]
            p, q = self.p[last], self.q[last]
            for model, row in ((TARGET, p), (NEAR, q)):
                rows["along"].append(
                    {"prompt_id": number, "position": t, "model": model, **_summary(row)}
                    | {"greedy_token": int(row.argmax()), "text_prob": row[y], "text_rank": 0}
                )
            rows["pairs"].append(
                {
                    "prompt_id": number,
                    "position": t,
                    "model_a": TARGET,
                    "model_b": NEAR,
                    "tv": 0.5 * float(np.abs(p - q).sum()),
                    "argmax_agree": bool(p.argmax() == q.argmax()),
                }
            )
            self._blocks({"prompt_id": number, "start": t}, [*PROMPT, *text[:t]], luck, rows)

    def _blocks(self, key: dict, seen: list[int], luck: np.random.Generator, rows: dict[str, list]) -> None:
        block = [*seen[-1:]]
        while len(block) <= self.block_length:
            block.append(int(luck.choice(len(self.q), p=self.q[block[-1]])))
        found = PromptLookup(3, 1).draft(np.array(seen, dtype=np.int32), self.block_length).tolist()
        certain = np.eye(len(self.p))
        for drafter, tokens in ((NEAR, block[1:]), (LOOKUP, found)):
            places = list(zip([seen[-1], *tokens], tokens, strict=False))
            source = [self.q[last] if drafter == NEAR else certain[x] for last, x in places]
            told = [_summary(row) for row in source]
            rows["blocks"].append(
                {**key, "drafter": drafter, "tokens": tokens}
                | {"confidence": [float(row[x]) for row, (_, x) in zip(source, places, strict=True)]}
                | {name: [one[name] for one in told] for name in ("top1_prob", "top2_margin", "entropy")}
            )
            for verifier, table in ((TARGET, self.p), (NEAR, self.q)):
                if verifier != drafter and tokens:
                    said = [table[last] for last in [seen[-1], *tokens]]
                    rows["verdicts"].append(
                        {**key, "drafter": drafter, "verifier": verifier}
                        | {"greedy_token": [int(row.argmax()) for row in said]}
                        | {n: [_summary(row)[n] for row in said] for n in ("top1_prob", "top2_margin")}
                        | {"drafted_prob": [float(r[x]) for r, x in zip(said, tokens, strict=False)]}
                        | {
                            "overlap": [
                                float(np.minimum(r, s).sum()) for r, s in zip(said, source, strict=False)
                            ]
                        }
                    )


def _summary(row: np.ndarray) -> dict[str, float]:
    left = row[row > 0]
    entropy = max(float(-(left * np.log(left)).sum()), 0.0)
    return {"top1_prob": float(row.max()), "top2_margin": 0.0, "entropy": entropy}


def models(
    seed: int, tokens: int = 4, end: float = 0.0, *, independent: bool = False, spread: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Random p and q, (V, V) each, that end a text with chance ``end`` at each token.

    ``independent``: every row is the first one; the less ``spread``, the surer they are.
    """
    generator = stream(seed, "made-up", "models")
    p, other = (generator.dirichlet(np.full(tokens, spread), tokens) for _ in range(2))
    q = 0.6 * p + 0.4 * other
    for rows in (p, q):
        rows[:, -1] = 0.0
        rows *= (1.0 - end) / rows.sum(axis=1, keepdims=True)
        rows[:, -1] = end
        if independent:
            rows[:] = rows[0]
    return p, q
