"""``simspec critic``: what an intermediate verifier throws away, on real models."""

from __future__ import annotations

import sys
from pathlib import Path

from simspec.errors import BadInput


def critic(
    recipe: Path,
    out: Path,
    *,
    chain: str = "skip-10,skip-2,target",
    length: int = 3,
    shares: str = "1:2,2:4,4:8,8:16,16:32,32:256",
    draws: int = 1000,
    seed: int = 0,
) -> None:
    """Decode prompts for real under every semantics of a chain and without its middle.

    For every token that an intermediate rejects: is it the target's own? How many are, what they
    cost in accepted tokens a target pass and in time, and whether the output is the target's own
    under each semantics. A run that was stopped goes on where it was. Needs the extra ``record``.

    The document: ``configurations.<name>`` (target, pair, funnel-truncate, funnel-replace, nested,
    early-emit) = {``totals``, ``identical_share``, ``emitted_per_pass``, ``accepted_per_pass``,
    ``lost_tokens_per_pass``, ``wrong_share_of_rejections``, ``wrong_share_of_decided_rejections``,
    ``batches.<B>`` = {``groups``, ``requests``, ``seconds_per_token``, ``time_over_pair``,
    ``time_over_target``}}, each figure with its 95% interval.

    Parameters
    ----------
    recipe
        The models and prompts, such as calibrate/critic-gsm8k.toml.
    out
        The JSON file to write; it must not exist yet.
    chain
        Drafter, intermediates and target, by the recipe's names.
    length
        Drafted tokens a cycle; a nested chain collects as many.
    shares
        How many prompts to decode at each batch size, such as 1:12,8:96.
    draws
        Bootstrap draws.
    seed
        Seed of the draws.
    """
    from simspec.cli.checks import batch_shares, draws_and_seed
    from simspec.cli.output import interval, print_table

    draws_and_seed(draws, seed)
    levels = tuple(part.strip() for part in chain.split(","))
    if len(levels) < 3 or not all(levels) or len(set(levels)) < len(levels):
        raise BadInput(f"--chain {chain!r}", allowed="a drafter, one or more intermediates and the target")
    if not 1 <= length <= 64:
        raise BadInput(f"--length {length}", allowed="1 to 64")
    pairs = batch_shares(shares)
    try:
        from simspec.experiments.critic import CriticSettings, run_critic
    except ImportError as error:
        raise BadInput(f"decoding needs {error.name}", hint="pip install 'simspec[record]'") from error
    settings = CriticSettings(levels, length, pairs, draws, seed)
    command = ["simspec", "critic", recipe.as_posix(), out.as_posix(), "--chain", chain]
    command += ["--length", str(length), "--shares", shares, "--draws", str(draws), "--seed", str(seed)]
    found = run_critic(recipe, out, settings, command, lambda line: print(f"critic: {line}", file=sys.stderr))
    rows = []
    for name, entry in found["configurations"].items():
        totals, wrong = entry["totals"], entry["wrong_share_of_decided_rejections"]
        rows.append(
            [
                name,
                f"{totals['identical']} of {found['requests']}",
                f"{entry['emitted_per_pass']['value']:.3f}",
                totals["rejected"],
                totals["wrongly"],
                "-" if wrong["value"] is None else interval((wrong["low"], wrong["high"]), 3),
                totals["lost_tokens"],
                " ".join(f"{b}: {t['time_over_pair']['value']:.2f}" for b, t in entry["batches"].items()),
            ]
        )
    print_table(
        f"{chain}, {length} drafted ({found['dtype']} on {found['device']}, measured)",
        [
            "semantics",
            "own text",
            "tokens/pass",
            "rejected",
            "wrongly",
            "95% of decided",
            "lost tokens",
            "time over pair by batch",
        ],
        rows,
    )
    print(f"wrote {out}")
