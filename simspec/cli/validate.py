"""``simspec validate``: how far simulated time is from the clock."""

from __future__ import annotations

import sys
from pathlib import Path

from simspec.errors import BadInput


def validate(
    trace: Path,
    recipe: Path,
    *,
    out: Path | None = None,
    rounds: int = 2,
    output_tokens: int = 32,
    engines: bool = True,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Decode chains for real, simulate the same on the record, and compare.

    Plain decoding, every pair at two lengths and chains of three, at batch 1, 2, 4 and 8: recorded
    prompts, where accepted counts must be the replayed ones, and at batch 8 prompts that the record
    does not hold. Forwards are timed in between, in the chain's pattern. Then transformers' assisted
    generation, prompt lookup and early exit, measured and predicted. Run it on a quiet machine.
    Needs the extra ``record``. Exit code 1 when an accepted count differs.

    The document: ``same_prompts`` and ``disjoint_prompts`` = {``configurations``,
    ``median_abs_error``, ``p90_abs_error``, ``kendall_tau``, ``kendall_tau_by_batch``,
    ``accepted_counts_equal``, shares and errors of forwards and of overhead, ``all[]``}; ``engines[]``;
    the five figures of ``same_prompts`` are also at the top.

    Parameters
    ----------
    trace
        The trace's folder.
    recipe
        The recipe that it was recorded with: models and prompt files are taken from there.
    out
        Also write the document to this JSON file.
    rounds
        How often everything is decoded and timed; medians are kept.
    output_tokens
        Tokens of each text.
    engines
        Whether transformers' own engines are measured.
    seed
        Seed of orders and of random contexts.
    json
        Print JSON.
    """
    from simspec.cli.checks import draws_and_seed
    from simspec.cli.output import print_json, print_table
    from simspec.traces.index import load_trace

    draws_and_seed(0, seed)
    if not 1 <= rounds <= 100:
        raise BadInput(f"--rounds {rounds}", allowed="1 to 100")
    loaded = load_trace(trace)
    if not 8 <= output_tokens <= loaded.manifest.output_tokens:
        raise BadInput(
            f"--output-tokens {output_tokens}", allowed=f"8 to {loaded.manifest.output_tokens}, the record's"
        )
    if out is not None and out.exists():
        raise BadInput("exists", where=out, hint="move it away")
    try:
        from simspec.experiments.validate import ValidateSettings
        from simspec.experiments.validate import validate as carry_out
    except ImportError as error:
        raise BadInput(f"decoding needs {error.name}", hint="pip install 'simspec[record]'") from error
    settings = ValidateSettings(rounds=rounds, output_tokens=output_tokens, engines=engines, seed=seed)
    found = carry_out(loaded, recipe, settings, lambda line: print(f"validate: {line}", file=sys.stderr))
    same = found["same_prompts"]
    keys = (
        "configurations",
        "median_abs_error",
        "p90_abs_error",
        "kendall_tau",
        "accepted_counts_equal",
    )
    command = ["simspec", "validate", trace.as_posix(), recipe.as_posix()]
    command += ["--rounds", str(rounds), "--output-tokens", str(output_tokens), "--seed", str(seed)]
    command += [] if engines else ["--no-engines"]
    document = {
        "format": "simspec validation 1",
        **{k: same[k] for k in keys},
        "command": command,
        **found,
    }
    if out is not None:
        from simspec.experiments.files import write_json

        write_json(out, document)
    if json:
        print_json(document)
    else:
        rows = [
            [
                " > ".join(c["chain"]) + (f" x {c['draft_length']}" if c["draft_length"] else ""),
                c["semantics"],
                c["batch"],
                f"{1e3 * c['measured']:.1f}",
                f"{1e3 * c['predicted']:.1f}",
                f"{100 * c['error']:+.1f}",
                f"{100 * c['spread']:.0f}",
                {True: "yes", False: "NO", None: "-"}[c["counts_equal"]],
            ]
            for part in ("same_prompts", "disjoint_prompts")
            for c in found[part]["all"]
        ]
        header = ["chain", "semantics", "batch", "ms/token", "simulated", "error %", "spread %", "counts"]
        print_table(f"{found['dtype']} on {found['device']}, {rounds} rounds, medians", header, rows)
        for part in ("same_prompts", "disjoint_prompts"):
            s = found[part]
            print(
                f"{part}: {s['configurations']} configurations, "
                f"median error {100 * s['median_abs_error']:.1f}%, "
                f"p90 {100 * s['p90_abs_error']:.1f}%, tau {s['kendall_tau']:.3f}"
            )
        for e in found["engines"]:
            ratio = e["our_time_over_theirs"]
            beside = "" if ratio is None else f", ours takes {ratio:.2f} of its time"
            print(f"transformers, {e['engine']}: error {100 * e['error']:+.1f}%{beside}")
    if not same["accepted_counts_equal"]:
        sys.exit(1)
