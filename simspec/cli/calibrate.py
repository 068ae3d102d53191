"""``simspec calibrate``: how long the forwards of a recipe's models take on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

from simspec.cli.output import print_json, print_table
from simspec.errors import BadInput


def calibrate(recipe: Path, out: Path, *, json: bool = False) -> None:
    """Time the models of a recipe over batch, new tokens and context, and fit cost models.

    Only the part [latency] of the recipe and its models are used. A run that was stopped goes on
    where it was. The profile can be given to --cost. Needs the extra ``record`` (torch). Time on a
    machine that does nothing else.

    With --json, keys: ``profile``, ``device``, ``device_name``, ``dtype``, ``threads``, ``rows``,
    ``missing`` (forwards for which memory ran out), ``spread`` (range of repetitions over their
    median, by model), ``peaks`` (FLOP/s, bytes/s), ``fits.affine[]`` = {model, device, dtype,
    base_seconds, token_seconds, context_token_seconds, in_sample, left_out (errors {median, p90,
    points}), steps, worst_step, remark}; ``fits.roofline[]`` = {device, dtype, rates, in_sample,
    left_out, by_model, remark}; ``fits.roofline_of_peaks.<model>`` = errors.

    Parameters
    ----------
    recipe
        The TOML recipe, such as calibrate/smollm2-cpu.toml.
    out
        The folder to write; it must not exist yet.
    json
        Print JSON.
    """
    from simspec.record.recipe import read_recipe

    read_recipe(recipe)  # before torch is loaded, which takes a while
    try:
        from simspec.calibration.session import calibrate as carry_out
    except ImportError as error:
        raise BadInput(f"calibrating needs {error.name}", hint="pip install 'simspec[record]'") from error
    import msgspec

    profile = carry_out(
        recipe,
        out,
        ["simspec", "calibrate", recipe.as_posix(), out.as_posix()],
        progress=lambda line: print(line, file=sys.stderr),
    )
    print(f"{out}: {profile.table.rows} rows, {len(profile.missing)} forwards missing", file=sys.stderr)
    if json:
        print_json(
            {
                "profile": profile.name,
                "device": profile.device,
                "device_name": profile.device_name,
                "dtype": profile.dtype,
                "threads": profile.threads,
                "rows": profile.table.rows,
                "missing": msgspec.to_builtins(profile.missing),
                "spread": msgspec.to_builtins(profile.spread),
                "peaks": profile.peaks,
                "fits": profile.fits,
            }
        )
        return
    from simspec.cli.roofline import affine_table, remarks, roofline_table

    print(f"{profile.device_name}, {profile.device}, {profile.threads} threads; {profile.clock}")
    print_table(
        "repetitions: range over median",
        ["model", "format", "cells", "median", "p90", "worst"],
        [
            [s.model, s.dtype, s.cells, f"{s.median:.1%}", f"{s.p90:.1%}", f"{s.worst:.1%}"]
            for s in profile.spread
        ],
    )
    print_table("affine fits: relative errors", *affine_table(profile.fits["affine"]))
    print(remarks(profile.fits["affine"]))
    print_table("roofline fits: relative errors", *roofline_table(profile.fits["roofline"]))
    print(remarks(profile.fits["roofline"]))
    for missing in profile.missing:
        print(
            f"missing: {missing.model} ({missing.dtype}), batch {missing.batch}, {missing.new_tokens} new "
            f"tokens, context {missing.context}: {missing.reason}"
        )
