"""What the numbers say, in sentences made from them."""

from __future__ import annotations

from typing import Any

from simspec.report.study import PICKED_BY, CostStudy, Study, bound_over_static
from simspec.report.words import chain_name, listed, span, with_span


def of_cost(study: CostStudy) -> list[str]:
    """Findings under one cost."""
    found = [_pays(study), _bound(study), _third_level(study), _picks(study), _readings(study)]
    found += [_rule(study, batch) for batch in study.lengths]
    return [sentence for sentence in found if sentence]


def of_drafters(study: Study) -> list[str]:
    """Findings about acceptance and confidence, which no cost enters."""
    sentences = []
    for name, found in study.survival.items():
        shares = found.estimates()
        shown = sorted({1, 4, len(shares)} & set(range(1, len(shares) + 1)))
        parts = [
            f"{with_span(100 * (s.value or 0.0), _hundred(s.low, s.high), 1, '%')} for {j} "
            f"{'token' if j == 1 else 'tokens'}"
            for j in shown
            for s in [shares[j - 1]]
        ]
        sentences.append(f"{name}: share of starts whose drafts are all accepted: {listed(parts)}.")
    for name, c in study.calibration.items():
        gap = c.mean_confidence - c.accepted_share
        side = "above" if gap > 0 else "below"
        rating = "" if c.auroc is None else f", AUROC {c.auroc:.3f}"
        sentences.append(
            f"{name}: mean confidence {c.mean_confidence:.3f} is {abs(gap):.3f} {side} the accepted share "
            f"{c.accepted_share:.3f} over {c.tokens} tokens; ECE {c.expected_error:.3f}, Brier score "
            f"{c.brier:.3f}{rating}."
        )
    return sentences


def _hundred(low: float | None, high: float | None) -> list[float | None]:
    return [None if x is None else 100 * x for x in (low, high)]


def _pays(study: CostStudy) -> str:
    pays: list[int] = []
    unsure: list[int] = []
    for batch in study.batches:
        best = _best(study, batch)
        if len(best["chain"]) == 1:
            continue
        low = best["speedup_interval"][0]
        (pays if low is not None and low > 1.0 else unsure).append(batch)
    plain = [b for b in study.batches if b not in pays and b not in unsure]
    parts = []
    if pays:
        most = max(pays, key=lambda b: float(_best(study, b)["speedup"]))
        best = _best(study, most)
        gain = with_span(best["speedup"], best["speedup_interval"], 2, "x")
        parts.append(
            f"Speculation pays at batch {listed(pays)}; the most at batch {most}, where "
            f"{chain_name(best)} is {gain} as fast as plain decoding."
        )
    if unsure:
        word = "Speculation is fastest" if not pays else "It is fastest too"
        parts.append(
            f"{word} at batch {listed(unsure)}, but no interval there says that it beats plain decoding."
        )
    if plain:
        parts.append(f"At batch {listed(plain)} plain decoding is fastest and no chain pays.")
    return " ".join(parts)


def _bound(study: CostStudy) -> str:
    best = _best(study, 1)
    return (
        f"At batch 1 no schedule over these chains and lengths can be more than "
        f"{study.bound_speedup:.2f}x as fast as plain decoding (dynamic program that knows the outcome); "
        f"the best fixed chain reaches {best['speedup']:.2f}x, "
        f"{100 * best['speedup'] / study.bound_speedup:.0f}% of that."
    )


def _third_level(study: CostStudy) -> str:
    ratios = {}
    for batch in study.batches:
        pair, triple = study.best(batch, 2), study.best(batch, 3)
        if pair is None or triple is None:
            return ""
        ratios[batch] = pair["replay_seconds_per_token"] / triple["replay_seconds_per_token"]
    wins = [b for b, r in ratios.items() if r > 1.0]
    top, low = max(ratios.values()), min(ratios.values())
    where = f"is faster at batch {listed(wins)}" if wins else "is faster at no batch size"
    return (
        f"A third level: the best triple {where}; from batch to batch it runs at {low:.2f} to {top:.2f} "
        "times the speed of the best pair."
    )


def _picks(study: CostStudy) -> str:
    right = [b for b in study.batches if study.score(b)["top1"]]
    wrong = [b for b in study.batches if b not in right]
    if not wrong:
        return f"Eq. 7 read as {PICKED_BY} picks the chain that replay finds fastest at every batch size."
    start = (
        f"Eq. 7 read as {PICKED_BY} picks the chain that replay finds fastest at batch {listed(right)}"
        if right
        else f"Eq. 7 read as {PICKED_BY} picks the chain that replay finds fastest at no batch size"
    )
    regrets = [
        f"{with_span(study.score(b)['regret'], study.score(b)['regret_interval'], 1, '%')} at batch {b}"
        for b in wrong
    ]
    return f"{start}; its pick takes more time per token than the fastest: {listed(regrets)}."


def _readings(study: CostStudy) -> str:
    scores: dict[str, list[dict[str, Any]]] = {}
    for batch in study.batches:
        for name, score in study.found["batches"][str(batch)]["scores"].items():
            scores.setdefault(name, []).append(score)
    mean = {n: sum(s["regret"] for s in many) / len(many) for n, many in scores.items()}
    least, most = min(mean, key=lambda n: mean[n]), max(mean, key=lambda n: mean[n])
    hits = sum(s["top1"] for s in scores[least])
    return (
        f"Of the {len(mean)} readings, {least} has the least mean regret over batch sizes, "
        f"{mean[least]:.1f}% (the fastest chain picked at {hits} of {len(study.batches)}); {most} the most, "
        f"{mean[most]:.1f}%."
    )


def _rule(study: CostStudy, batch: int) -> str:
    lengths = study.lengths[batch]
    found = lengths.as_json()
    rule = found["rules"]["libraspec"]
    low, high = rule["regret_best_static_interval"]
    if low is None or low <= 0.0 <= high:
        verdict = "cannot be told apart from"
    else:
        verdict = "is slower than" if low > 0 else "is faster than"
    if low is None:
        verdict = "stands beside"
    text = (
        f"Draft lengths at batch {batch} with {lengths.drafter}: LibraSpec (Algorithm 1, alpha 2.2) "
        f"{verdict} the best static length, {lengths.best_static}: "
        f"{rule['regret_best_static']:+.1f}% time per token"
        f"{'' if low is None else f' (95% {span([low, high], 1)})'}. Against the oracles: "
        f"{rule['regret_expected']:+.1f}% over myopic expected, "
        f"{rule['regret_hindsight']:+.1f}% over myopic hindsight"
    )
    bound = bound_over_static(lengths)
    if bound is None:
        return text + "."
    return (
        f"{text}, {rule['regret_lower_bound']:+.1f}% over the dynamic program, which itself is "
        f"{-bound[0]:.1f}% below the best static length."
    )


def _best(study: CostStudy, batch: int) -> dict[str, Any]:
    best = study.best(batch)
    assert best is not None
    return best
