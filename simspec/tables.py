"""The columns of every table that simspec writes or reads, and the check that enforces them.

This is the only place where a column's name, type, unit and range are stated; the
reader, the writer, the glossary's test and the documentation all look here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from simspec.errors import BadInput


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it counts in, and what values it may take.

    For a list column, ``low`` and ``high`` bound the items. Values may not be null or
    NaN unless ``nullable`` says so.
    """

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    """A named table: its columns and the key that no two rows may share."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns],
        )


_tokens = pa.list_(pa.int32())
_halves = pa.list_(pa.float16())

PROMPTS = Table(
    "prompts",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt, numbered from 0 in recording order", 0),
        Column("category", pa.string(), "name", "kind of task: maths, code, chat, summarisation, ..."),
        Column("source", pa.string(), "name", "file or collection that the prompt was taken from"),
        Column("source_id", pa.string(), "name", "which item of the source it is"),
        Column("prompt_hash", pa.string(), "sha256", "hash of the prompt's token ids"),
        Column("prompt_tokens", pa.int32(), "tokens", "length of the prompt, chat template included", 1),
        Column("output_tokens", pa.int32(), "tokens", "length of the target's text", 1),
        Column("finish", pa.string(), "name", "why the text ended", choices=("eos", "length")),
    ),
    key=("prompt_id",),
)

TEXTS = Table(
    "texts",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt", 0),
        Column("position", pa.int32(), "tokens", "place in the target's text, from 0", 0),
        Column("token", pa.int32(), "token id", "the target's own token there", 0),
    ),
    key=("prompt_id", "position"),
)

ALONG = Table(
    "along",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt", 0),
        Column("position", pa.int32(), "tokens", "place in the target's text, from 0", 0),
        Column("model", pa.string(), "name", "the model asked for the next token of the target's text"),
        Column("greedy_token", pa.int32(), "token id", "its most probable token", 0),
        Column("top1_prob", pa.float32(), "probability", "probability of that token", 0, 1),
        Column("top2_margin", pa.float32(), "logits", "logit of the first minus logit of the second", 0),
        Column("entropy", pa.float32(), "nats", "entropy of its distribution", 0),
        Column("text_prob", pa.float32(), "probability", "its probability of the target's token", 0, 1),
        Column("text_rank", pa.int32(), "rank", "how many tokens it finds more probable than that", 0),
    ),
    key=("prompt_id", "position", "model"),
)

PAIRS = Table(
    "pairs",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt", 0),
        Column("position", pa.int32(), "tokens", "place in the target's text, from 0", 0),
        Column("model_a", pa.string(), "name", "the first model of the pair"),
        Column("model_b", pa.string(), "name", "the second model of the pair"),
        Column("tv", pa.float32(), "probability", "total variation distance of the two distributions", 0, 1),
        Column("argmax_agree", pa.bool_(), "flag", "whether both have the same most probable token"),
    ),
    key=("prompt_id", "position", "model_a", "model_b"),
)

BLOCKS = Table(
    "blocks",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt", 0),
        Column("start", pa.int32(), "tokens", "position in the text that the block begins at", 0),
        Column("drafter", pa.string(), "name", "the model that drafted it"),
        Column("tokens", _tokens, "token id", "what it drafted, in order; empty when it had nothing", 0),
        Column(
            "confidence",
            pa.list_(pa.float32()),
            "probability",
            "the drafter's probability of each drafted token; 1 for a look-up, which is certain by form",
            0,
            1,
        ),
        Column("top1_prob", _halves, "probability", "its greatest probability at each place", 0, 1),
        Column("top2_margin", _halves, "logits", "logit of the first minus logit of the second", 0),
        Column("entropy", _halves, "nats", "entropy of its distribution at each place", 0),
    ),
    key=("prompt_id", "start", "drafter"),
)

VERDICTS = Table(
    "verdicts",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt", 0),
        Column("start", pa.int32(), "tokens", "position in the text that the block begins at", 0),
        Column("drafter", pa.string(), "name", "the model that drafted the block"),
        Column("verifier", pa.string(), "name", "the model that reads it"),
        Column(
            "greedy_token",
            _tokens,
            "token id",
            "the verifier's most probable token at each place of the block and one past its end",
            0,
        ),
        Column("top1_prob", _halves, "probability", "its greatest probability at each place", 0, 1),
        Column("top2_margin", _halves, "logits", "logit of the first minus logit of the second", 0),
        Column("drafted_prob", _halves, "probability", "its probability of each drafted token", 0, 1),
        Column(
            "overlap",
            _halves,
            "probability",
            "sum over the vocabulary of min(drafter, verifier): acceptance under sampling",
            0,
            1,
        ),
    ),
    key=("prompt_id", "start", "drafter", "verifier"),
)

LATENCY = Table(
    "latency",
    (
        Column("model", pa.string(), "name", "the model that ran"),
        Column("device", pa.string(), "name", "what it ran on"),
        Column("dtype", pa.string(), "name", "number format of its weights; 'none' for a look-up"),
        Column("batch", pa.int32(), "rows", "rows in the forward", 1),
        Column("new_tokens", pa.int32(), "tokens", "tokens fed for each row", 1),
        Column("context", pa.int32(), "tokens", "tokens already in the cache of each row", 0),
        Column("repetition", pa.int32(), "index", "which repetition, from 0, in the order they ran", 0),
        Column("seconds", pa.float64(), "seconds", "wall time of the forward", 0),
    ),
    key=("model", "device", "dtype", "batch", "new_tokens", "context", "repetition"),
)

TRACE_TABLES = (PROMPTS, TEXTS, ALONG, PAIRS, BLOCKS, VERDICTS, LATENCY)

# In a trace only where its manifest's ``alternatives`` is not 0: what drafted trees are chosen from.
CHOICES = Table(
    "choices",
    (
        Column("prompt_id", pa.int32(), "index", "the prompt", 0),
        Column("start", pa.int32(), "tokens", "position in the text that the block begins at", 0),
        Column("drafter", pa.string(), "name", "the model that drafts it; no look-up"),
        Column(
            "confidence",
            _halves,
            "probability",
            "its probabilities of its most probable tokens, the drafted one first, ``alternatives`` of them "
            "for each place of the block; of the first place alone where no block is stored, since its first "
            "token is the text's",
            0,
            1,
        ),
        Column(
            "text_rank",
            pa.list_(pa.int32()),
            "rank",
            "how many tokens it finds more probable than the text's token at each of these places that the "
            "text has, given the block before it; ties go to the drafted token, then by token id",
            0,
        ),
    ),
    key=("prompt_id", "start", "drafter"),
)


def check_table(table: Table, data: pa.Table, where: Path | str) -> None:
    """Refuse ``data`` unless it is exactly what ``table`` states.

    Raises:
        BadInput: naming the file, the column, the first bad row and its value.
    """
    names = [c.name for c in table.columns]
    missing = [n for n in names if n not in data.column_names]
    extra = [n for n in data.column_names if n not in names]
    if missing or extra:
        raise BadInput(
            f"columns do not match: missing {missing or 'none'}, unexpected {extra or 'none'}",
            where=where,
            allowed=", ".join(names),
        )
    for column in table.columns:
        found = data.schema.field(column.name).type
        if found != column.type:
            raise BadInput(f"column {column.name!r} has type {found}", where=where, allowed=str(column.type))
        _check_values(column, data.column(column.name), where)
    _check_key(table, data, where)


def _check_values(column: Column, values: pa.ChunkedArray, where: Path | str) -> None:
    flat, row_of = values.combine_chunks(), None
    if isinstance(flat, pa.ChunkedArray):  # an empty column stays chunked
        flat = pa.array([], type=column.type)
    if flat.null_count and not column.nullable:
        _refuse(column, int(np.flatnonzero(flat.is_null().to_numpy(False))[0]), None, where)
    if pa.types.is_list(column.type):
        row_of = pc.list_parent_indices(flat)
        flat = pc.list_flatten(flat)
        if flat.null_count:
            item = int(np.flatnonzero(flat.is_null().to_numpy(False))[0])
            _refuse(column, row_of[item].as_py(), None, where)
    elif flat.null_count:
        row_of = pc.indices_nonzero(flat.is_valid())
        flat = flat.drop_null()
    if column.choices:
        bad = ~np.isin(np.asarray(flat.to_pylist(), dtype=object), column.choices)
    elif pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type):
        numbers = flat.to_numpy(zero_copy_only=False)
        if pa.types.is_floating(flat.type):
            numbers = numbers.astype(np.float64)
        bad = ~np.isfinite(numbers)
        if column.low is not None:
            bad |= numbers < column.low
        if column.high is not None:
            # Half precision may round a sum of probabilities one step above one.
            slack = 1e-3 if flat.type == pa.float16() else 1e-6
            bad |= numbers > column.high + slack
    else:
        return
    if bad.any():
        item = int(np.flatnonzero(bad)[0])
        row = item if row_of is None else row_of[item].as_py()
        _refuse(column, row, flat[item].as_py(), where)


def _refuse(column: Column, row: int, value: object, where: Path | str) -> None:
    if column.choices:
        allowed = ", ".join(column.choices)
    else:
        low = "" if column.low is None else f" at least {column.low}"
        high = "" if column.high is None else f" at most {column.high}"
        allowed = f"finite {column.unit}{low}{high}"
    raise BadInput(f"row {row}, column {column.name!r}: {value!r}", where=where, allowed=allowed)


def _check_key(table: Table, data: pa.Table, where: Path | str) -> None:
    if data.num_rows < 2:
        return
    codes = np.zeros(data.num_rows, dtype=np.int64)
    for name in table.key:
        column = data.column(name).combine_chunks()
        encoded = column.dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        index = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = codes * max(len(encoded.dictionary), 1) + index
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    if (counts > 1).any():
        code = codes[int(first[np.argmax(counts > 1)])]
        rows = np.flatnonzero(codes == code)[:2]
        values = {n: data.column(n)[int(rows[0])].as_py() for n in table.key}
        raise BadInput(
            f"rows {int(rows[0])} and {int(rows[1])} have the same key {values}",
            where=where,
            allowed="one row a key",
        )
