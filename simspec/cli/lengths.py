"""``simspec lengths``: how long should a draft be?"""

from __future__ import annotations

from pathlib import Path

from simspec.cli.output import interval, print_json, print_table


def lengths(
    trace: Path,
    *,
    drafter: str | None = None,
    cost: str | None = None,
    batch: int = 1,
    draws: int = 100,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Replay length rules with one drafter, beside oracles.

    Rules: static lengths, G4-style, LibraSpec's Algorithm 1 as printed (block 16 and block 1, alpha
    2.2), the exact marginal rule. Oracles: myopic hindsight and myopic expected, which other
    schedules may beat (a negative regret), and at batch 1 the dynamic program, which none can.
    Intervals are 95%, over bootstrap draws of prompts, paired.

    With --json, keys: ``trace``, ``origin``, ``provenance``, ``cost``, ``drafter``, ``batch``,
    ``best_static``, ``lower_bound_seconds_per_token``; ``rules.<name>`` and ``oracles.<name>`` =
    {seconds_per_token, regret_expected, regret_hindsight, regret_lower_bound (% over each; null
    above batch 1), regret_best_static, each with ``_interval``; mad_hindsight, mean_length,
    mean_drafted (tokens)}.

    Parameters
    ----------
    trace
        The trace's folder.
    drafter
        The drafter; by default the one whose best static length is fastest.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile.
        Default: the format that the behaviour was recorded in.
    batch
        Requests in lock-step.
    draws
        Bootstrap draws of prompts.
    seed
        Seed of the draws.
    json
        Print JSON.
    """
    from simspec.cli.checks import draws_and_seed
    from simspec.compare.costs import cost_inputs, open_cost
    from simspec.compare.lengths import LengthSettings, best_drafter, study_lengths
    from simspec.errors import BadInput
    from simspec.provenance import provenance
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    if not 1 <= batch <= 4096:
        raise BadInput(f"--batch {batch}", allowed="1 to 4096")
    loaded = load_trace(trace)
    name = cost or loaded.manifest.dtype
    priced = open_cost(loaded, name)
    settings = LengthSettings(batch=batch, draws=draws, seed=seed)
    chosen = drafter or best_drafter(loaded, priced, settings)
    study = study_lengths(loaded, chosen, priced, settings)
    found = study.as_json()
    if json:
        command = ["lengths", trace.as_posix(), "--drafter", chosen, "--cost", name]
        command += ["--batch", str(batch), "--draws", str(draws), "--seed", str(seed), "--json"]
        inputs = {**loaded.inputs, **cost_inputs([name])}
        print_json(
            {
                "trace": loaded.manifest.name,
                "origin": loaded.manifest.origin,
                "provenance": provenance(command, inputs, seed),
                **found,
            }
        )
        return
    print(f"\ncost {priced.name}: {priced.label}")
    rows = []
    for kind in ("rules", "oracles"):
        for rule, result in found[kind].items():
            bound = result["regret_lower_bound"]
            rows.append(
                [
                    rule if kind == "rules" else f"{rule} (oracle)",
                    f"{1000 * result['seconds_per_token']:.3f}",
                    f"{result['regret_best_static']:+.1f}",
                    interval(result["regret_best_static_interval"], 1),
                    f"{result['regret_expected']:+.1f}",
                    f"{result['regret_hindsight']:+.1f}",
                    "-" if bound is None else f"{bound:+.1f}",
                    f"{result['mean_length']:.2f}",
                    f"{result['mad_hindsight']:.2f}",
                ]
            )
    print_table(
        f"drafter {chosen}, batch {batch} ({loaded.manifest.origin} behaviour); regrets in %; "
        f"best static: {study.best_static}",
        [
            "rule",
            "ms/token",
            "v. static",
            "95%",
            "v. expected",
            "v. hindsight",
            "v. bound",
            "length",
            "|d - hindsight|",
        ],
        rows,
    )
