"""Parquet in and out: strict on the way in, atomic on the way out."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simspec.errors import BadInput
from simspec.provenance import sha256_file
from simspec.tables import CHOICES, TRACE_TABLES, Table, check_table
from simspec.traces import ragged
from simspec.traces.manifest import MANIFEST_NAME, Manifest, TableEntry


def read_table(path: Path, table: Table, entry: TableEntry | None = None) -> pa.Table:
    """Read and check one table.

    Raises:
        BadInput: when the file is missing, truncated, not the one the manifest means, or
            holds a value that its column does not allow.
    """
    if entry is not None and (found := sha256_file(path)) != entry.sha256:
        raise BadInput(
            f"has hash {found[:12]}..., the manifest says {entry.sha256[:12]}...",
            where=path,
            hint="the file was changed or cut after it was recorded",
        )
    try:
        data = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"is not a readable Parquet file: {error}", where=path) from error
    data = data.replace_schema_metadata(None)
    check_table(table, data, path)
    if entry is not None and data.num_rows != entry.rows:
        raise BadInput(f"has {data.num_rows} rows", where=path, allowed=f"{entry.rows}")
    return data


def write_table(path: Path, table: Table, data: pa.Table) -> TableEntry:
    """Check and write one table; the file appears whole or not at all."""
    check_table(table, data, path)
    partial = path.with_suffix(".partial")
    # Format 2.6 has half floats; byte-stream split lets zstd see the exponents together.
    floats = [
        f"{f.name}.list.element" if pa.types.is_list(f.type) else f.name
        for f in data.schema
        if pa.types.is_floating(f.type.value_type if pa.types.is_list(f.type) else f.type)
    ]
    others = [f.name for f in data.schema if f.name not in {n.split(".")[0] for n in floats}]
    pq.write_table(
        data,
        partial,
        version="2.6",
        compression="zstd",
        compression_level=12,
        use_dictionary=[
            f"{n}.list.element" if pa.types.is_list(data.schema.field(n).type) else n for n in others
        ],
        use_byte_stream_split=floats,
        store_schema=True,
        row_group_size=1 << 20,
    )
    partial.replace(path)
    return TableEntry(file=path.name, rows=data.num_rows, sha256=sha256_file(path))


def write_trace(folder: Path, manifest: Manifest, tables: dict[str, pa.Table]) -> Manifest:
    """Write a whole trace; ``folder`` appears complete or not at all.

    The manifest's ``tables`` and ``behaviour_sha256`` are filled in here.

    Raises:
        BadInput: when ``folder`` exists.
    """
    if folder.exists():
        raise BadInput("exists", where=folder, hint="a recording is never overwritten: move it away")
    partial = folder.with_name(folder.name + ".writing")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    try:
        entries = {
            t.name: write_table(partial / f"{t.name}.parquet", t, tables[t.name])
            for t in (*TRACE_TABLES, CHOICES)
            if t in TRACE_TABLES or manifest.alternatives
        }
        digest = behaviour_hash({name: tables[name] for name in entries})
        complete = msgspec.structs.replace(manifest, tables=entries, behaviour_sha256=digest)
        text = msgspec.json.format(msgspec.json.encode(complete), indent=2)
        (partial / MANIFEST_NAME).write_bytes(text + b"\n")
        partial.replace(folder)
    except BaseException:
        # On a full disk what was begun would be in the way of the next try.
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return complete


def behaviour_hash(tables: dict[str, pa.Table]) -> str:
    """Hash of what the models said: the values of every table but latency, column by column.

    ``choices`` counts where it is there, so traces without it keep their hashes.

    Over values, not over bytes of files or buffers, which depend on who wrote them.
    """
    digest = hashlib.sha256()
    for table in (*TRACE_TABLES, CHOICES):
        if table.name == "latency" or table.name not in tables:
            continue
        data = tables[table.name]
        for column in table.columns:
            values = data.column(column.name)
            digest.update(f"{table.name}.{column.name}:{len(values)}\n".encode())
            if pa.types.is_list(column.type):
                digest.update(ragged.lengths(values).astype("<i8").tobytes())
                values = pc.list_flatten(values)
            if pa.types.is_string(column.type):
                digest.update("\x1f".join(values.to_pylist()).encode())
            else:
                plain = values.to_numpy()
                digest.update(plain.astype(plain.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()
