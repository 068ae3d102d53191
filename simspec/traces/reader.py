"""Read a trace: each table against its schema, then table against table."""

from __future__ import annotations

from pathlib import Path

from simspec.errors import BadInput
from simspec.tables import CHOICES, TRACE_TABLES
from simspec.traces.checked import Tables
from simspec.traces.files import behaviour_hash, read_table
from simspec.traces.invariants import check_together
from simspec.traces.manifest import read_manifest


def read_tables(folder: Path) -> Tables:
    """Read and check every table of the trace in ``folder``.

    Raises:
        BadInput: naming file, row and column of the first thing that does not hold.
    """
    manifest = read_manifest(folder)
    tables = {}
    for table in (*TRACE_TABLES, CHOICES) if manifest.alternatives else TRACE_TABLES:
        entry = manifest.tables.get(table.name)
        if entry is None:
            raise BadInput(f"the manifest names no table {table.name!r}", where=folder)
        tables[table.name] = read_table(folder / entry.file, table, entry)
    read = Tables(folder, manifest, tables)
    check_together(read)
    if (found := behaviour_hash(tables)) != manifest.behaviour_sha256:
        raise BadInput(
            f"tables hash to {found[:12]}..., field 'behaviour_sha256' says "
            f"{manifest.behaviour_sha256[:12]}...",
            where=folder / "manifest.json",
        )
    return read
