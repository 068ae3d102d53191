"""The part of ``simspec check`` that puts its questions to a recorded trace."""

from __future__ import annotations

import sys
from pathlib import Path


def check_data(
    trace: Path, decoded: Path | None, draws: int, seed: int, out: Path | None, json: bool
) -> None:
    """Decide the claims on a trace, show them, and write a page where one is asked for."""
    from simspec.claims.empirical.batches import read_real_decoding
    from simspec.claims.empirical.check import check_trace, document
    from simspec.cli.checks import draws_and_seed
    from simspec.cli.output import print_json, print_table
    from simspec.provenance import provenance, sha256_file
    from simspec.report.data_claims import summary_table, tests_table, write_data_claims
    from simspec.report.folder import LEDGER, check_free
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    if out is not None:
        check_free(out, LEDGER)
    loaded = load_trace(trace)
    real = None if decoded is None else read_real_decoding(decoded)
    findings = check_trace(loaded, seed, draws, _say, real)
    command = ["check", "--trace", trace.as_posix(), "--draws", str(draws), "--seed", str(seed)]
    inputs = dict(loaded.inputs)
    if decoded is not None:
        command += ["--decoded", decoded.as_posix()]
        inputs["decoded"] = sha256_file(decoded)
    made_by = provenance(command, inputs, seed)
    found = {**document(findings, loaded, seed, draws), "provenance": made_by}
    if out is not None:
        write_data_claims(found, out)
        _say(f"wrote {out / 'index.html'}")
    if json:
        print_json(found)
        return
    print_table(f"{found['trace']} ({found['origin']}), {found['prompts']} prompts", *summary_table(found))
    print_table("claims that were tested", *tests_table(found))
    print(found["family"]["words"])


def _say(what: str) -> None:
    print(f"check: {what}", file=sys.stderr, flush=True)
