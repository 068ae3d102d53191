"""The report: figures, tables and sentences on one page, beside the numbers as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from simspec.provenance import versions
from simspec.report import chain_figures, draft_figures, findings, length_figures
from simspec.report.experiments import critic_parts, validation_parts
from simspec.report.folder import FIGURES, PAGE, REPORT, replacing
from simspec.report.parts import Grid, Picture, template, write_json
from simspec.report.rank_tables import TOP, chains_table, picks_table, readings_table, variants_table
from simspec.report.study import (
    PICKED_BY,
    CostStudy,
    Progress,
    Study,
    bound_over_static,
    lengths_document,
    rank_document,
    two_of,
)
from simspec.report.style import drawing, save
from simspec.report.words import NONE, counts_of_bins, listed, span


def write_report(
    study: Study,
    folder: Path,
    provenance: dict[str, object],
    say: Progress,
    *,
    critic: dict[str, Any] | None = None,
    validation: dict[str, Any] | None = None,
) -> None:
    """Write index.html, rank.json, lengths.json and figures/ into ``folder``, whole or not at all.

    Args:
        critic, validation: documents of those experiments, to be shown as well.

    Raises:
        BadInput: when ``folder`` holds something else, or cannot be written.
    """
    with replacing(folder, REPORT) as partial, drawing():
        (partial / FIGURES).mkdir()
        write_json(partial / "rank.json", rank_document(study, provenance))
        write_json(partial / "lengths.json", lengths_document(study, provenance))
        say("drawing")
        measured = []
        if critic is not None:
            measured += list(critic_parts(critic))
        if validation is not None:
            measured += list(validation_parts(validation, partial / FIGURES))
        text = _render(study, provenance, partial / FIGURES, measured)
        (partial / PAGE).write_text(text, encoding="utf-8", newline="\n")


def slug(name: str) -> str:
    """A cost's name as part of a file's."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)


def _render(
    study: Study, provenance: dict[str, object], figures: Path, measured: list[Picture | Grid]
) -> str:
    drawn = {**versions(("matplotlib", "jinja2")), **_versions(provenance)}
    return template("page.html").render(
        manifest=study.trace.manifest,
        categories=study.trace.prompts["category"].value_counts(sort=False).to_dict(),
        behaviour=study.behaviour,
        settings=study.settings,
        listed=listed,
        costs=[(c, findings.of_cost(c), list(_cost_parts(study, c, figures))) for c in study.costs],
        drafters=(findings.of_drafters(study), list(_drafter_parts(study, figures))),
        errors=_left_out(study),
        measured=measured,
        picked_by=PICKED_BY,
        provenance=msgspec.json.format(
            msgspec.json.encode({**provenance, "versions": dict(sorted(drawn.items()))}), indent=1
        ).decode(),
    )


def _versions(provenance: dict[str, object]) -> dict[str, str]:
    found = provenance["versions"]
    assert isinstance(found, dict)
    return found


def _cost_parts(study: Study, cost: CostStudy, figures: Path) -> Iterator[Picture | Grid]:
    """Figures and tables of one cost, in the page's order; draws as it goes."""
    name = slug(cost.cost.name)
    said = f"Cost {cost.cost.name}; {study.behaviour}."
    panels = listed(two_of(tuple(cost.batches)))
    yield Grid(f"Fastest chain and Eq. 7's pick ({PICKED_BY}). {said}", *picks_table(cost))

    save(chain_figures.speedup(cost, study.behaviour), figures / f"speedup-{name}.png")
    yield Picture(
        f"speedup-{name}.png",
        "Speedup over plain decoding against batch size, points moved apart sideways for sight. The "
        "fastest chain, pair and triple are chosen on the prompts that they are scored on, which "
        "flatters them; the star is a bound, not a schedule, and has no interval. " + said,
    )
    save(chain_figures.predicted(cost, study.behaviour), figures / f"predicted-{name}.png")
    yield Picture(
        f"predicted-{name}.png",
        f"Predicted ({PICKED_BY}) against replayed time per token at batch {panels}; each chain at each "
        "draft length is a point; grey bars are 95% over draws of prompts. Both are per emitted token of the "
        "whole batch. " + said,
    )
    yield Grid(
        "Every variant of Eq. 7 with every source of acceptance over batch sizes, predicted from the prompts "
        f"that it is scored on. {said}",
        *variants_table(cost),
        folded=True,
    )
    yield Grid(f"Every reading of Eq. 7 at every batch size. {said}", *readings_table(cost), folded=True)
    for batch in two_of(tuple(cost.batches)):
        yield Grid(
            f"The {TOP} fastest chains at batch {batch}. {said}", *chains_table(cost, batch), folded=True
        )
    yield Grid(
        "Length rules; tuned-static is the static length tuned on the other half of the prompts, long-run is "
        f"ours, and oracles choose for each request alone. {said}",
        *rules_table(cost),
    )
    save(length_figures.rules(cost, study.behaviour), figures / f"rules-{name}.png")
    yield Picture(
        f"rules-{name}.png",
        f"Length rules and oracles at batch {panels}: time per token over that of the best "
        "static length (log axis), which is tuned on the same prompts. The dashed line is the dynamic "
        "program's bound at batch 1. " + said,
    )
    save(length_figures.along_text(study, cost), figures / f"along-{name}.png")
    shown = [study.prompt_name(next(iter(text.values())).prompt) for text in cost.along]
    yield Picture(
        f"along-{name}.png",
        f"Submitted draft length cycle by cycle with {cost.along_drafter}, and what the myopic "
        f"hindsight oracle would have submitted at the same places. Texts: the first prompt of each "
        f"category ({'; '.join(shown)}). {said}",
    )


def _drafter_parts(study: Study, figures: Path) -> Iterator[Picture | Grid]:
    save(draft_figures.survival(study), figures / "survival.png")
    starts = next(iter(study.survival.values())).starts
    yield Picture(
        "survival.png",
        f"Share of starts whose first j drafts are all accepted by the target; {starts[0]} starts at "
        f"j = 1, {starts[-1]} with text left for j = {len(starts)}. Intervals take starts as independent, "
        f"which overlapping drafts are not. No cost enters; {study.behaviour}.",
    )
    if not study.calibration:
        return
    save(draft_figures.reliability(study), figures / "reliability.png")
    bins = "; ".join(f"{name}: {counts_of_bins(c)}" for name, c in study.calibration.items())
    yield Picture(
        "reliability.png",
        "Confidence (the drafter's probability of its token) against the share accepted, over drafted "
        "tokens whose predecessors were all accepted, each distinct token once. Bins of equal counts "
        f"({bins}). "
        f"Intervals take tokens as independent. No cost enters; {study.behaviour}.",
    )
    rows = [
        [
            name,
            str(c.tokens),
            f"{c.mean_confidence:.3f}",
            f"{c.accepted_share:.3f}",
            f"{c.expected_error:.3f}",
            f"{c.brier:.3f}",
            NONE if c.auroc is None else f"{c.auroc:.3f}",
        ]
        for name, c in study.calibration.items()
    ]
    header = ["drafter", "tokens", "mean confidence", "accepted share", "ECE", "Brier", "AUROC"]
    yield Grid(f"Calibration. No cost enters; {study.behaviour}.", header, rows)


def rules_table(cost: CostStudy) -> tuple[list[str], list[list[str]]]:
    """Header and rows: length rules and oracles, by batch size."""
    rows = []
    for batch, study in cost.lengths.items():
        found = study.as_json()
        for kind in ("rules", "oracles"):
            for name, r in found[kind].items():
                bound = r["regret_lower_bound"]
                rows.append(
                    [
                        str(batch),
                        study.drafter,
                        name if kind == "rules" else f"{name} (oracle)",
                        f"{1000 * r['seconds_per_token']:.3f}",
                        f"{r['regret_best_static']:+.1f}",
                        span(r["regret_best_static_interval"], 1),
                        f"{r['regret_expected']:+.1f}",
                        f"{r['regret_hindsight']:+.1f}",
                        NONE if bound is None else f"{bound:+.1f}",
                        f"{r['mean_length']:.2f}",
                        f"{r['mad_hindsight']:.2f}",
                    ]
                )
        over = bound_over_static(study)
        if over is not None:
            time = 1000 * found["lower_bound_seconds_per_token"]
            rows.append(
                [
                    str(batch),
                    study.drafter,
                    "bound (dynamic program)",
                    f"{time:.3f}",
                    f"{over[0]:+.1f}",
                    span(over[1:], 1),
                    NONE,
                    NONE,
                    NONE,
                    NONE,
                    NONE,
                ]
            )
    header = ["batch", "drafter", "rule", "ms/token", "v. best static %", "95%", "v. expected %"]
    header += ["v. hindsight %", "v. bound %", "mean length", "|length - hindsight|"]
    return header, rows


def _left_out(study: Study) -> Grid | None:
    """How far the latency tables are off at points that they were not given."""
    rows = []
    for c in study.costs:
        for model, e in (c.left_out or {}).items():
            # A grid without an inner point has none to leave out, and says so as a single zero.
            none = len(e.relative_error) == 1 and e.relative_error[0] == 0.0
            shown = [NONE, NONE] if none else [f"{100 * e.median:.1f}", f"{100 * e.p90:.1f}"]
            rows.append([c.cost.name, model, *shown])
    if not rows:
        return None
    return Grid(
        "Leave-one-out error of the latency tables: each inner batch and each inner count of new tokens "
        f"predicted from its neighbours ({NONE}: the grid has no inner point).",
        ["cost", "model", "median %", "90th percentile %"],
        rows,
    )
