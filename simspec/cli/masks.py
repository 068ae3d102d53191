"""``simspec masks``: what marking rejected cache entries saves over moving them away."""

from __future__ import annotations

import sys
from pathlib import Path

from simspec.errors import BadInput


def masks(
    recipe: Path,
    out: Path,
    *,
    chains: str = "ngram,target",
    length: int = 4,
    cells: str = "1:32:0,4:64:0,16:64:0,16:128:0,16:32:400",
    rounds: int = 3,
    seed: int = 0,
) -> None:
    """Decode prompts for real with caches kept in order in three ways, and time the parts.

    ``mask``: rejected entries are marked, and caches packed when a good part is waste; ``move``: packed in
    every cycle that leaves the longest row any waste; ``never``: marked and never packed. The same
    prompts under the same chain in all ways, one after another, in an order drawn anew. A run that was
    stopped goes on where it was. Run it on a quiet machine. Needs the extra ``record``.

    The document: ``cells[]`` = {``chain``, ``draft_length``, ``batch``, ``output_tokens``, ``context``,
    ``rounds[]`` = {``prompt_tokens[]``, ``equal``, ``ways.<way>`` = {``tokens``, ``seconds_per_token`` and,
    of it, ``forward``, ``choosing``, ``packing``, ``rest``; ``cycles``, ``packed`` (times),
    ``slots_over_tokens`` (of the target's cache, over the longest row's tokens)}}}.

    Parameters
    ----------
    recipe
        The models and prompts, such as calibrate/smollm2-cpu.toml.
    out
        The JSON file to write; it must not exist yet.
    chains
        Chains by the recipe's names, drafter first, such as ngram,target;skip-2,target.
    length
        Drafted tokens a cycle.
    cells
        batch:tokens of text:least tokens of prompt, which others before it make up.
    rounds
        Batches of prompts that each chain decodes in each cell.
    seed
        Seed of prompts and orders.
    """
    from simspec.cli.checks import draws_and_seed
    from simspec.cli.output import print_table

    draws_and_seed(0, seed)
    asked = tuple(tuple(name.strip() for name in chain.split(",")) for chain in chains.split(";"))
    if any(len(levels) < 2 or not all(levels) or len(set(levels)) < len(levels) for levels in asked):
        raise BadInput(f"--chains {chains!r}", allowed="at least a drafter and the target in each")
    if len(set(asked)) < len(asked):
        raise BadInput(f"--chains {chains!r} names a chain twice")
    for name, value, most in (("--length", length, 64), ("--rounds", rounds, 100)):
        if not 1 <= value <= most:
            raise BadInput(f"{name} {value}", allowed=f"1 to {most}")
    shapes = [_cell(part) for part in cells.split(",")]
    try:
        from simspec.experiments.masks import Cell, MasksSettings, run_masks
    except ImportError as error:
        raise BadInput(f"decoding needs {error.name}", hint="pip install 'simspec[record]'") from error
    settings = MasksSettings(asked, length, tuple(Cell(*shape) for shape in shapes), rounds, seed)
    command = ["simspec", "masks", recipe.as_posix(), out.as_posix(), "--chains", chains]
    command += ["--length", str(length), "--cells", cells, "--rounds", str(rounds), "--seed", str(seed)]
    found = run_masks(recipe, out, settings, command, _say)
    rows = []
    for cell in found["cells"]:
        equal = sum(r["equal"] for r in cell["rounds"])
        for way in found["ways"]:
            ratios = [
                r["ways"][way]["seconds_per_token"] / r["ways"]["mask"]["seconds_per_token"]
                for r in cell["rounds"]
            ]
            mine = [r["ways"][way] for r in cell["rounds"]]

            def mean(key: str, mine: list[dict[str, float]] = mine) -> float:
                return sum(m[key] for m in mine) / len(mine)

            rows.append(
                [
                    f"{' > '.join(cell['chain'])} x {length}",
                    cell["batch"],
                    cell["output_tokens"],
                    cell["context"],
                    way,
                    f"{1e3 * mean('seconds_per_token'):.2f}",
                    f"{1e3 * mean('packing'):.3f}",
                    f"{mean('packed'):.1f}",
                    f"{mean('slots_over_tokens'):.2f}",
                    f"{min(ratios):.3f}..{max(ratios):.3f}",
                    f"{equal} of {rounds}",
                ]
            )
    header = ["chain", "batch", "tokens", "context", "way", "ms/token", "packing", "packed", "slots/tokens"]
    header += ["time over mask", "texts equal"]
    print_table(
        f"caches kept in order in three ways ({found['dtype']} on {found['device']}, measured)",
        header,
        rows,
    )
    print(f"wrote {out}")


def _say(line: str) -> None:
    print(f"masks: {line}", file=sys.stderr, flush=True)


def _cell(text: str) -> tuple[int, int, int]:
    """``16:64:400`` as (batch, tokens of text, least tokens of prompt)."""
    parts = text.strip().split(":")
    if len(parts) == 3 and all(p.isdigit() for p in parts):
        batch, tokens, context = (int(p) for p in parts)
        if 1 <= batch <= 256 and 2 <= tokens <= 4096 and context <= 100_000:
            return batch, tokens, context
    raise BadInput(f"--cells holds {text!r}", allowed="batch:tokens:context, such as 16:64:0")
