"""Synthetic traces: made-up deterministic models, and what a recorder would write of them.

A made-up model is a function of the whole token history, as a real one is under greedy decoding, and so
is its confidence. Suffixes are therefore shared the way a recorder relies on, and every count in the trace
can be got again by running the models token by token. Nothing here is measured: the manifest says
``synthetic``, and the latencies are noise without order in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from simspec.speculation.drafters import PromptLookup
from simspec.speculation.verify import accepted_prefix
from simspec.streams import stream

# The tables and the index need pandas and pyarrow, the models do not: those are loaded where a trace is made.
if TYPE_CHECKING:
    import pyarrow as pa

    from simspec.tables import Table
    from simspec.traces.index import Trace
    from simspec.traces.manifest import Manifest

VOCABULARY = 20
EOS = VOCABULARY - 1
TARGET, MIDDLE, SMALL, LOOKUP = "target", "middle", "small", "ngram"
MODELS = (TARGET, LOOKUP, SMALL, MIDDLE)
BATCHES, WIDTHS, CONTEXTS, REPETITIONS = (1, 2, 4), (1, 2, 4, 8), (8, 64), 2
NO_HASH = "0" * 64

# What follows token 0 and what follows token 1.
FUNCTIONS: tuple[tuple[int, int], ...] = tuple((a, b) for a in (0, 1, EOS) for b in (0, 1, EOS))

# Token ids from the prompt's first on.
History = Sequence[int]
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Setting:
    """What the models, prompts and texts of a synthetic trace are made from.

    Attributes:
        seed: of everything that is made up.
        prompts: how many, each of 3 to 17 tokens.
        output_tokens: a text ends there, or at an end-of-text token, one in ``VOCABULARY`` at each place.
        block_length: tokens recorded of each block.
        order: tokens that the target looks back on; 1 makes texts that repeat themselves, so that a
            look-up finds something, and from 3 on they hardly do, so that it often finds nothing.
        middle_rate, small_rate: how often a model says what the one it follows says: 0 is never, 1 always.
            ``MIDDLE`` follows the target.
        small_follows: whom ``SMALL`` follows. Following ``MIDDLE``, it is right mostly where that is.
    """

    seed: int = 0
    prompts: int = 3
    output_tokens: int = 12
    block_length: int = 5
    order: int = 2
    middle_rate: float = 0.7
    small_rate: float = 0.6
    small_follows: str = MIDDLE

    def __post_init__(self) -> None:
        for name in ("prompts", "output_tokens", "block_length", "order"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("middle_rate", "small_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, not {getattr(self, name)}")
        if self.small_follows not in (TARGET, MIDDLE):
            raise ValueError(f"{SMALL} follows {TARGET} or {MIDDLE}, not {self.small_follows}")


@dataclass(frozen=True)
class Tabulated:
    """All models that look back on one token, over the tokens 0 and 1 and an end of text.

    There are 9 such next-token functions: what follows 0, and what follows 1. A prompt's first tokens say
    which of them the target, ``SMALL`` and ``MIDDLE`` are, and its last one is 0; with a prompt for each of
    9 x 9 x ``middles`` triples, one replay of the trace is a replay of all these models.

    Attributes:
        middles: how many of the functions ``MIDDLE`` runs through, 1 to 9.
    """

    middles: int = 9
    output_tokens: int = 3
    block_length: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.middles <= len(FUNCTIONS):
            raise ValueError(f"middles must be from 1 to {len(FUNCTIONS)}, not {self.middles}")

    @property
    def prompts(self) -> int:
        return len(FUNCTIONS) ** 2 * self.middles

    def models(self, prompt: int) -> dict[str, tuple[int, int]]:
        """What each model says after 0 and after 1, at this prompt."""
        pair, middle = divmod(prompt, self.middles)
        target, small = divmod(pair, len(FUNCTIONS))
        return {TARGET: FUNCTIONS[target], SMALL: FUNCTIONS[small], MIDDLE: FUNCTIONS[middle]}


def settings_of(
    *, prompts: int = 4, output_tokens: tuple[int, int] = (4, 24), block_length: tuple[int, int] = (3, 10)
) -> st.SearchStrategy[Setting]:
    """Settings within the given bounds, perfect and worthless drafters among them."""
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


def all_settings(
    seeds: int, output_tokens: tuple[int, ...] = (1, 3, 6, 10), prompts: int = 3
) -> Iterator[Setting]:
    """Small settings, short texts first: each seed below ``seeds`` with each kind of models."""
    for size, seed, order, middle, small, follows in product(
        output_tokens, range(seeds), (1, 3), (0.0, 0.6, 1.0), (0.0, 0.6, 1.0), (TARGET, MIDDLE)
    ):
        yield Setting(seed, prompts, size, max(1, size // 2), order, middle, small, follows)


def synthetic_traces(
    *, prompts: int = 4, output_tokens: tuple[int, int] = (4, 24), block_length: tuple[int, int] = (3, 10)
) -> st.SearchStrategy[Synthetic]:
    """Made-up models with their trace, of :func:`settings_of`; ``.trace()`` is what replay takes."""
    found = settings_of(prompts=prompts, output_tokens=output_tokens, block_length=block_length)
    return st.builds(Synthetic, found)


class Synthetic:
    """The models of a setting, their prompts and texts, and the trace that a recorder would write.

    Attributes:
        prompts: token ids of each prompt.
        texts: token ids of each text, the target's own greedy output.
    """

    def __init__(self, setting: Setting | Tabulated):
        self.setting = setting
        self.lookup = PromptLookup(3, 1)
        self._memo: dict[tuple[str, tuple[int, ...]], tuple[int, float]] = {}
        self.prompts = [self._prompt(p) for p in range(setting.prompts)]
        self.texts = [self._decode(prompt) for prompt in self.prompts]

    def __repr__(self) -> str:
        return f"Synthetic({self.setting!r})"

    # The models, one token at a time.

    def next_token(self, model: str, history: History) -> int:
        """The model's most probable token after ``history``."""
        return self._asked(model, tuple(history))[0]

    def confidence(self, model: str, history: History) -> float:
        """The probability that it gives to that token; it says nothing of whether the token is right."""
        return self._asked(model, tuple(history))[1]

    def greedy(self, model: str, history: History, block: History) -> NDArray[np.int32]:
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
        if isinstance(s, Tabulated):
            function = FUNCTIONS[history[(TARGET, SMALL, MIDDLE).index(model)] - 2]
            return function[history[-1]] if history[-1] in (0, 1) else 0
        if model == TARGET:
            return int(self._unit(TARGET, history[-s.order :]) * VOCABULARY)
        rate, follows = {MIDDLE: (s.middle_rate, TARGET), SMALL: (s.small_rate, s.small_follows)}[model]
        theirs = self.next_token(follows, history)
        if self._unit(model, "follows", history) < rate:
            return theirs
        # Any token but theirs: a rate of 0 is a drafter that is never right.
        return (theirs + 1 + int(self._unit(model, "own", history) * (VOCABULARY - 1))) % VOCABULARY

    def _unit(self, *what: object) -> float:
        """A number in [0, 1) that is a function of the seed and of ``what``."""
        digest = hashlib.blake2b(repr((self.setting.seed, *what)).encode(), digest_size=6).digest()
        return int.from_bytes(digest, "little") / 2**48

    def _prompt(self, index: int) -> list[int]:
        if isinstance(self.setting, Tabulated):
            return [*(2 + FUNCTIONS.index(f) for f in self.setting.models(index).values()), 0]
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
        from simspec.traces.index import index_tables
        from simspec.traces.invariants import Tables

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
