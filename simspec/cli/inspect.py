"""``simspec inspect``: what is in a trace, and what in it gives reason to doubt.

Keys of the JSON document:

- ``name``, ``origin`` (measured or synthetic), ``created``, ``machine``, ``device``, ``dtype``,
  ``versions``, ``target``, ``block_length``, ``near_ties``: from the manifest.
- ``models``: list of ``name``, ``kind``, ``layers`` and ``parameters`` (null where not stated).
- ``prompts``: ``count``, ``by_category``, ``ended_by`` (eos, length), ``positions`` (tokens of text).
- ``sampling``: null for greedy texts; else ``temperature`` and ``top_p``.
- ``overlap``: of a sampled trace, one entry a pair: ``drafter``, ``verifier`` and ``positions``, a list
  of ``position`` (from 1), ``drafts`` and ``overlap``, the chance that a drawn token is accepted.
- ``acceptance``: of a greedy trace, one entry a drafter, the target verifying: ``drafter``, ``starts``,
  ``empty_share``, ``mean_accepted_run`` (tokens), ``uncut_share``, ``confidence_auroc`` and
  ``positions``, a list of ``position`` (from 1), ``drafts``, ``survival``, ``chances`` and
  ``conditional``; the two shares are objects of ``value``, ``low``, ``high`` (95%, Wilson).
- ``drafters``: of a greedy trace, one entry a drafter and category (``all`` first): ``drafter``,
  ``category``, ``starts``; ``survival`` and ``ece`` by depth, ``emitted`` (tokens a pass of the target) by
  draft length; null where the record does not tell.
- ``pairs``: ``model_a``, ``model_b``, ``simscore``, ``argmax_agreement``, ``recorded``, ``positions``.
- ``latency``: ``grid`` (``rows``, ``cells``, ``batches``, ``new_tokens``, ``contexts``,
  ``repetitions_least``, ``repetitions_most``), ``batch_1`` (``model``, ``device``, ``dtype``,
  ``context``, ``step_seconds``, ``ratios`` by new tokens), ``cost_ratios`` (``drafter``, ``dtype``,
  ``batch``, ``context``, ``new_tokens``, ``ratio`` to the target's single-token forward) and
  ``leave_one_out`` (``model``, ``dtype``, relative errors ``median`` and ``p90``).
- ``doubts``: list of ``kind`` and ``text``.
- ``provenance``: the command that prints the document again, hashes of inputs, versions.

The terms are those of :mod:`simspec.compare.inspection`, :mod:`simspec.compare.drafter_figures` and
:mod:`simspec.compare.doubts`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table


def inspect(trace: Path, *, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False) -> None:
    """Show what is in a trace, and what in it gives reason to doubt.

    Parameters
    ----------
    trace
        The folder of the trace.
    as_json
        Print one JSON document instead of tables.
    """
    from simspec.compare.inspect_trace import inspect_tables
    from simspec.provenance import provenance
    from simspec.traces.index import outline
    from simspec.traces.reader import read_tables

    read = read_tables(trace)
    found = inspect_tables(read)
    if as_json:
        command = ["inspect", trace.as_posix(), "--json"]
        found["provenance"] = provenance(command, outline(read).inputs)
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        # Names come from the trace: nothing in them is markup.
        _show(found, Console(file=sys.stdout, markup=False, emoji=False, highlight=False))


def _show(found: dict[str, Any], out: Console) -> None:
    synthetic = found["origin"] == "synthetic"
    origin = "SYNTHETIC: made up, no model ran" if synthetic else found["origin"]
    prompts, ties = found["prompts"], found["near_ties"]
    facts = [
        ("trace", found["name"]),
        ("origin", origin),
        ("created", found["created"]),
        ("machine", _pairs(found["machine"])),
        ("device, dtype", f"{found['device']}, {found['dtype']}"),
        ("versions", _pairs(found["versions"])),
        ("prompts", f"{prompts['count']}: {_pairs(prompts['by_category'])}"),
        ("texts ended by", _pairs(prompts["ended_by"])),
        ("positions in all", str(prompts["positions"])),
        ("block length", str(found["block_length"])),
        ("near ties", _pairs({k: f"{v:g}" for k, v in ties.items()}) or "not stated"),
    ]
    if found["sampling"]:
        facts.append(("sampled at", _pairs(found["sampling"]) + ": not for exact replay"))
    if synthetic:
        out.rule("SYNTHETIC TRACE", style="bold red")
    _table(out, "", ("", ""), facts, header=False)
    _table(
        out,
        "Models",
        ("model", "kind", "layers", "parameters"),
        [
            (
                m["name"] + (" (target)" if m["name"] == found["target"] else ""),
                m["kind"],
                _or_dash(m["layers"]),
                _or_dash(m["parameters"]),
            )
            for m in found["models"]
        ],
    )
    for each in found["acceptance"]:
        _acceptance(out, each)
    _drafters(out, found["drafters"])
    if found["overlap"]:
        _overlap(out, found["overlap"])
    _table(
        out,
        "Similarity along the texts",
        ("pair", "1 - mean TV", "argmax agrees", "recorded at"),
        [
            (
                f"{p['model_a']}, {p['model_b']}",
                f"{p['simscore']:.3f}",
                f"{p['argmax_agreement']:.3f}",
                f"{p['recorded']} of {p['positions']}",
            )
            for p in found["pairs"]
        ],
    )
    _latency(out, found["latency"])
    out.print(f"Doubts: {len(found['doubts'])}", style="bold")
    for doubt in found["doubts"]:
        out.print(f"- {doubt['text']}", soft_wrap=True)


def _acceptance(out: Console, each: dict[str, Any]) -> None:
    _table(
        out,
        f"Drafter {each['drafter']}: acceptance by the target (95% Wilson)",
        ("position", "chances", "given all before", "drafts", "with all before"),
        [
            (
                str(p["position"]),
                str(p["chances"]),
                _share(p["conditional"]),
                str(p["drafts"]),
                _share(p["survival"]),
            )
            for p in each["positions"]
        ],
    )
    area = each["confidence_auroc"]
    out.print(
        f"mean accepted run {each['mean_accepted_run']:.2f} tokens over {each['starts']} starts; "
        f"empty blocks {each['empty_share']:.1%}; not cut {each['uncut_share']:.1%}; "
        f"confidence AUROC {'-' if area is None else f'{area:.3f}'}\n",
        soft_wrap=True,
    )


def _drafters(out: Console, figures: list[dict[str, Any]]) -> None:
    if not figures:
        return
    shown = ("survival", "emitted", "ece")
    _table(
        out,
        "Starts accepted to a depth (survival), tokens a target's pass at a length (emitted), ECE at a depth",
        ("drafter", "texts", *(f"{name}: {_words(figures[0][name])}" for name in shown)),
        [
            (
                d["drafter"],
                d["category"],
                *("  ".join("-" if v is None else f"{v:.2f}" for v in d[name].values()) for name in shown),
            )
            for d in figures
        ],
    )


def _overlap(out: Console, pairs: list[dict[str, Any]]) -> None:
    _table(
        out,
        "Mean chance that a drawn token is accepted (overlap), by place in the block from 1",
        ("drafter", "verifier", "overlap"),
        [
            (p["drafter"], p["verifier"], "  ".join(f"{at['overlap']:.3f}" for at in p["positions"]))
            for p in pairs
        ],
    )


def _latency(out: Console, latency: dict[str, Any]) -> None:
    grid = latency["grid"]
    if not grid["rows"]:
        out.print("Latency: none recorded\n")
        return
    few, many = grid["repetitions_least"], grid["repetitions_most"]
    _table(
        out,
        "Latency grid",
        ("", ""),
        [
            *((name.replace("_", " "), _words(grid[name])) for name in ("batches", "new_tokens", "contexts")),
            ("cells", str(grid["cells"])),
            ("repetitions a cell", str(few) if few == many else f"{few} to {many}"),
        ],
        header=False,
    )
    _table(
        out,
        "Batch 1: median single-token forward, and n-token forwards relative to it",
        ("model", "device", "dtype", "context", "ms", "n: ratio"),
        [
            (
                c["model"],
                c["device"],
                c["dtype"],
                str(c["context"]),
                "-" if c["step_seconds"] is None else f"{1e3 * c['step_seconds']:.3f}",
                "  ".join(f"{n}: {'-' if r is None else f'{r:.2f}'}" for n, r in c["ratios"].items()) or "-",
            )
            for c in latency["batch_1"]
        ],
    )
    _table(
        out,
        "A drafter's forward over the target's single-token forward",
        ("drafter", "dtype", "new tokens", "batch, context: ratio"),
        [
            (
                name,
                dtype,
                str(width),
                "  ".join(f"{r['batch']}, {r['context']}: {r['ratio']:.3f}" for r in own),
            )
            for (name, dtype, width), own in _grouped(latency["cost_ratios"])
        ],
    )
    _table(
        out,
        "Leave-one-out error of the latency table",
        ("model", "dtype", "median", "p90"),
        [
            (e["model"], e["dtype"], _percent(e["median"]), _percent(e["p90"]))
            for e in latency["leave_one_out"]
        ],
    )


def _grouped(ratios: list[dict[str, Any]]) -> list[tuple[tuple[str, str, int], list[dict[str, Any]]]]:
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for r in ratios:
        found.setdefault((r["drafter"], r["dtype"], r["new_tokens"]), []).append(r)
    return list(found.items())


def _table(
    out: Console, title: str, columns: Iterable[str], rows: Iterable[tuple[str, ...]], header: bool = True
) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_header=header, pad_edge=False)
    for column in columns:
        # A cell too wide goes on in the next line; nothing is cut off.
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    if title:
        out.print(title, style="bold")
    out.print(table)


def _share(estimate: dict[str, float | None]) -> str:
    if estimate["value"] is None:
        return "-"
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in values.items())


def _words(values: Iterable[object]) -> str:
    return ", ".join(str(v) for v in values)


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)
