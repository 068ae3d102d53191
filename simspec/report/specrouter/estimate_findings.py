"""What the study of acceptance estimates says, in sentences made from its numbers."""

from __future__ import annotations

from typing import Any

from simspec.report.words import listed, with_span

# Weights that sentences name.
MIDDLE = "0.1"
NAMED = ("0.02", MIDDLE, "0.5")


def findings(found: dict[str, Any]) -> list[str]:
    said = [_overall(found), _places(found), _moved(found)]
    if found["task_changes"]["measures"]:
        said += [_task_change(found), _best_weights(found)]
    loads = {name: load for name, load in found["load_changes"].items() if load["measures"]}
    return [*said, _load_changes(loads)] if loads else said


def _cell(found: dict[str, Any], source: str, by: str = "all", cell: str = "all") -> dict[str, Any]:
    key = {"source": source, "by": by, "cell": cell}
    return next(e for e in found["errors"] if all(e[k] == v for k, v in key.items()))


def _cells(found: dict[str, Any], by: str) -> list[str]:
    return list(dict.fromkeys(e["cell"] for e in found["errors"] if e["by"] == by))


def _signed(cell: dict[str, Any]) -> str:
    low, high = cell["bias_interval"]
    return f"{cell['bias']:+.3f}" + ("" if low is None else f" ({low:+.3f} to {high:+.3f})")


def _overall(found: dict[str, Any]) -> str:
    named = {s: _cell(found, s) for s in dict.fromkeys(e["source"] for e in found["errors"])}
    guessed = {s: c for s, c in named.items() if s != "realised"}
    best = min(guessed, key=lambda s: float(guessed[s]["absolute"]))

    def off(source: str) -> str:
        return with_span(named[source]["absolute"], named[source]["absolute_interval"], 3)

    pairs = {(p["drafter"], p["verifier"]) for p in found["by_pair"]}
    return (
        f"Fitted on one half of {sum(found['prompts'].values())} prompts and scored on the other, over "
        f"{len(pairs)} pairs of models: SimScore itself is off by {off('simscore')} a pair (bias "
        f"{_signed(named['simscore'])}), through the logistic map by {off('logistic')}, the isotonic map by "
        f"{off('isotonic')}; the nearest is {best}, {off(best)}. One "
        f"constant for all pairs is off by {off('constant')}, the acceptance that the other half realised by "
        f"{off('realised')}."
    )


def _places(found: dict[str, Any]) -> str:
    places = _cells(found, "position")
    first, last = places[0], places[-1]
    tasks = _cells(found, "task")
    worst = max(tasks, key=lambda t: abs(float(_cell(found, "simscore", "task", t)["bias"])))
    ends = {
        s: [_signed(_cell(found, s, "position", p)) for p in (first, last)] for s in ("realised", "simscore")
    }
    shares = [_cell(found, "realised", "position", p)["accepted_share"] for p in (first, last)]
    return (
        f"One rate for a whole block is the wrong shape: the share accepted goes from {shares[0]:.2f} at the "
        f"first place to {shares[1]:.2f} at place {last} of a block that was accepted so far, so that even "
        f"realised acceptance has a bias of {ends['realised'][0]} at the first place and "
        f"{ends['realised'][1]} at place {last}, and SimScore of {ends['simscore'][0]} and "
        f"{ends['simscore'][1]}. By task SimScore's bias is the greatest on {worst}, "
        f"{_signed(_cell(found, 'simscore', 'task', worst))}."
    )


def _moved(found: dict[str, Any]) -> str:
    gains = {
        (order, source, weight): told
        for order, sources in found["moving"].items()
        for source, weights in sources.items()
        for weight, told in weights.items()
        if weight != "0"
    }
    sure = [key for key, told in gains.items() if (told["gain_interval"][0] or 0.0) > 0]
    order, source, weight = max(gains, key=lambda key: float(gains[key]["gain"]))
    most = gains[order, source, weight]
    fixed = found["moving"][order][source]["0"]["rms"]
    lost = [key for key, told in gains.items() if (told["gain_interval"][1] or 0.0) < 0]
    return (
        f"Of {len(gains)} moving averages by request (sources, weights, orders of requests) {len(sure)} are "
        f"better than the other half's rates left as they are by more than their interval, {len(lost)} "
        f"worse. The best ({source}, weight {weight}, requests {order}) lowers the error of a request from "
        f"{fixed:.4f} by {with_span(most['gain'], most['gain_interval'], 4)}."
    )


def _task_change(found: dict[str, Any]) -> str:
    changes = found["task_changes"]
    parts = []
    for name, clocks in changes["measures"].items():
        told = clocks["text"]
        parts.append(
            f"{name} (tasks are {told['apart']:.3f} apart) {_named(told, 'tokens')}, and at weight {MIDDLE} "
            f"it goes on shaking by {told['weights'][MIDDLE]['shake']:.3f}"
        )
    return (
        f"After a change of task in mid-stream ({changes['changes']} changes x {changes['pairs']} drafters) "
        f"an average along the text is half and 90% there after, for {'; for '.join(parts)}."
    )


def _named(told: dict[str, Any], unit: str) -> str:
    return listed(
        f"{reached(f['steps_to_half'])} and {reached(f['steps_to_90'])} {unit} at weight {w} (a clean step: "
        f"{f['expected_half']} and {f['expected_90']})"
        for w, f in told["weights"].items()
        if w in NAMED
    )


def _best_weights(found: dict[str, Any]) -> str:
    parts = []
    for name, clocks in found["task_changes"]["measures"].items():
        for clock, unit in (("text", "tokens"), ("request", "requests")):
            stretches = clocks[clock]["stretches"]
            ends = [
                f"{s['best']} over {n} (error {s['weights'][s['best']]['error']:.3f}"
                + (
                    f", least in {100 * s['best_share']:.0f}% of draws)"
                    if s["best_share"] is not None
                    else ")"
                )
                for n, s in (list(stretches.items())[i] for i in sorted({0, len(stretches) - 1}))
            ]
            if ends:
                still = f"not moving: {clocks[clock]['apart']:.3f}"
                parts.append(f"{name} by {unit}: {listed(ends)}, {still}")
    return (
        "The weight of least total error (bias and variance together, of those tried) over a stretch after a "
        f"change of task: {'; '.join(parts)}."
    )


def _load_changes(loads: dict[str, dict[str, Any]]) -> str:
    parts = []
    for name, load in loads.items():
        told = load["measures"]["seconds"]["forward"]
        few, many = load["loads"]
        best = [f"{s['best']} over {n}" for n, s in told["stretches"].items()]
        parts.append(
            f"under {name}, {few} to {many} rows and back, after {_named(told, 'forwards')}; forwards of one "
            f"shape vary by {100 * told['noise']:.1f}%, and the weight of least error is {best[0]} and "
            f"{best[-1]} forwards"
        )
    return (
        "After a change of load in mid-stream a forward's learned seconds are half and 90% there "
        f"{'; '.join(parts)}."
    )


def reached(steps: int | None) -> str:
    """Observations, or that they never suffice."""
    return "never" if steps is None else str(steps)
