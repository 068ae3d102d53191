"""``simspec validate``: how far simulated time is from the clock."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from simspec.errors import BadInput


def validate(
    trace: Path,
    recipe: Path,
    *,
    out: Path | None = None,
    rounds: int = 4,
    shares: str = "1:3,2:6,4:8,8:16",
    decoded: int = 16,
    lengths: str = "1-6",
    near: int = 8,
    output_tokens: int = 32,
    engines: bool = True,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Decode chains for real, simulate the same on the record, and compare.

    At every batch size: plain decoding, the chains and lengths that replay finds fastest, what each
    variant of Eq. 7 picks, every pair and the triples at their best length. All are chosen on recorded
    prompts that are not decoded, under forwards timed first; they take turns on each batch of prompts.
    Accepted counts must be the replayed ones. Forwards are timed between rounds, in the chain's pattern,
    at every count of rows. Then transformers' assisted generation, prompt lookup and early exit,
    measured and predicted. Run it on a quiet machine. A run that was stopped goes on where it was
    (beside --out). Needs the extra ``record``. Exit code 1 when an accepted count differs.

    The document: ``same_prompts`` (simulated on the prompts that were decoded) and ``disjoint_prompts``
    (on the others) = {``configurations``, ``median_abs_error``, ``p90_abs_error``, ``kendall_tau``,
    ``kendall_tau_by_batch``, ``accepted_counts_equal``, shares and errors of forwards and of overhead,
    ``all[]`` (each with ``unit_seconds`` of the batches in ``decoded.<B>``)}; ``forwards[]`` (median
    seconds by context, rows and width); ``engines[]``; the five figures of ``same_prompts`` are also at
    the top.

    Parameters
    ----------
    trace
        The trace's folder.
    recipe
        The recipe that it was recorded with: models and prompt files are taken from there.
    out
        Also write the document to this JSON file.
    rounds
        How often forwards are timed and every chain decodes its share of prompts. A run that was stopped
        may go on with more.
    shares
        How many prompts each batch size decodes in a round, such as 1:4,8:16.
    decoded
        Prompts of the record that are decoded, in turn; the others are fitted on.
    lengths
        Draft lengths that are considered.
    near
        How many of the fastest chains and lengths are decoded at each batch size.
    output_tokens
        Tokens of each text.
    engines
        Whether transformers' own engines are measured.
    seed
        Seed of orders and of random contexts.
    json
        Print JSON.
    """
    from simspec.cli.checks import batch_shares, draws_and_seed
    from simspec.cli.output import print_json, print_table, whole_numbers
    from simspec.traces.index import load_trace

    draws_and_seed(0, seed)
    if not 1 <= rounds <= 100:
        raise BadInput(f"--rounds {rounds}", allowed="1 to 100")
    if not 1 <= near <= 100:
        raise BadInput(f"--near {near}", allowed="1 to 100")
    pairs = batch_shares(shares)
    uneven = [f"{batch}:{count}" for batch, count in pairs if count % batch]
    if uneven:
        raise BadInput(f"--shares {shares!r} holds {uneven[0]!r}", allowed="whole batches")
    if decoded < 1 or any(decoded % batch for batch, _ in pairs):
        raise BadInput(f"--decoded {decoded}", allowed="a multiple of every batch size")
    loaded = load_trace(trace)
    drafted = whole_numbers(lengths, "--lengths", 1, loaded.manifest.block_length)
    if not 8 <= output_tokens <= loaded.manifest.output_tokens:
        raise BadInput(
            f"--output-tokens {output_tokens}", allowed=f"8 to {loaded.manifest.output_tokens}, the record's"
        )
    if out is not None and out.exists():
        raise BadInput("exists", where=out, hint="move it away")
    try:
        from simspec.experiments.measuring import ValidateSettings
        from simspec.experiments.validate import validate as carry_out
    except ImportError as error:
        raise BadInput(f"decoding needs {error.name}", hint="pip install 'simspec[record]'") from error
    settings = ValidateSettings(
        shares=pairs,
        decoded=decoded,
        rounds=rounds,
        lengths=drafted,
        near=near,
        output_tokens=output_tokens,
        engines=engines,
        seed=seed,
    )

    def say(line: str) -> None:
        print(f"validate: {line}", file=sys.stderr, flush=True)

    with TemporaryDirectory() as scratch:
        pieces = Path(scratch) / "pieces" if out is None else out.with_name(out.name + ".partial")
        found = carry_out(loaded, recipe, pieces, settings, say)
    same = found["same_prompts"]
    keys = (
        "configurations",
        "median_abs_error",
        "p90_abs_error",
        "kendall_tau",
        "accepted_counts_equal",
    )
    command = ["simspec", "validate", trace.as_posix(), recipe.as_posix(), "--rounds", str(rounds)]
    command += ["--shares", shares, "--decoded", str(decoded), "--lengths", lengths, "--near", str(near)]
    command += ["--output-tokens", str(output_tokens), "--seed", str(seed)]
    command += [] if engines else ["--no-engines"]
    document = {
        "format": "simspec validation 1",
        **{k: same[k] for k in keys},
        "command": command,
        **found,
    }
    if out is not None:
        from simspec.experiments.files import remove_pieces, write_json

        write_json(out, document)
        remove_pieces(pieces)
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
        print_table(f"{found['dtype']} on {found['device']}, {rounds} rounds", header, rows)
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
