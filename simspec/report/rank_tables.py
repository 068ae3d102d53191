"""Tables of ranked chains, and of what predicts them."""

from __future__ import annotations

from simspec.compare.rankings import summary
from simspec.report.scores import scores_table
from simspec.report.study import PICKED_BY, CostStudy
from simspec.report.words import NONE, chain_name, span

TOP = 15


def picks_table(cost: CostStudy) -> tuple[list[str], list[list[str]]]:
    """Header and rows: what is fastest and what Eq. 7 picks, by batch size."""
    rows = []
    for batch in cost.batches:
        best, score = cost.best(batch), cost.score(batch)
        assert best is not None
        rows.append(
            [
                str(batch),
                chain_name(best),
                f"{best['speedup']:.3f}",
                span(best["speedup_interval"], 3),
                chain_name(cost.pick(batch)),
                f"{score['regret']:.1f}",
                span(score["regret_interval"], 1),
                f"{cost.bound_speedup:.3f}" if batch == 1 else NONE,
            ]
        )
    header = ["batch", "fastest by replay", "speedup", "95%", "Eq. 7's pick", "regret %", "95%", "bound"]
    return header, rows


def variants_table(cost: CostStudy) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every prediction over all batch sizes, the least regret first."""
    return scores_table(summary([cost.ranking]))


def readings_table(cost: CostStudy) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every prediction at every batch size."""
    rows = []
    for batch in cost.batches:
        for name in cost.found["batches"][str(batch)]["scores"]:
            score = cost.score(batch, name)
            share, tau = score["top1_share_of_draws"], score["kendall_tau"]
            rows.append(
                [
                    str(batch),
                    name,
                    NONE if tau is None else f"{tau:.2f}",
                    span(score["kendall_tau_interval"], 2),
                    "yes" if score["top1"] else "no",
                    NONE if share is None else f"{100 * share:.0f}",
                    f"{score['regret']:.1f}",
                    span(score["regret_interval"], 1),
                    chain_name(cost.pick(batch, name)),
                ]
            )
    header = ["batch", "variant/alpha", "tau", "95%", "top-1", "top-1, % of draws", "regret %", "95%", "pick"]
    return header, rows


def chains_table(cost: CostStudy, batch: int) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the fastest chains at one batch size."""
    found = cost.found["batches"][str(batch)]
    both = zip(found["chains"], found["predicted"][PICKED_BY], strict=True)
    rows = [
        [
            chain_name(c),
            f"{1000 * c['replay_seconds_per_token']:.3f}",
            f"{c['speedup']:.3f}",
            span(c["speedup_interval"], 3),
            f"{1000 * predicted:.3f}",
        ]
        for c, predicted in sorted(both, key=lambda b: float(b[0]["replay_seconds_per_token"]))[:TOP]
    ]
    return ["chain", "replayed ms/token", "speedup", "95%", "predicted ms/token"], rows
