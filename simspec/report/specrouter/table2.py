"""Table 2's shape, shown: speedups by batch size with their bound, and where the published ones come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simspec.report.parts import Grid, Picture
from simspec.report.specrouter.table2_figures import NAMES, alphas, speedups, sweeps
from simspec.report.style import save
from simspec.report.words import NONE, listed, span, with_span

_KNOWN = (
    "published at batch 16 (arXiv 2505.07680, Table 2; the only row public to us, read at second hand, "
    "without error bars, code or hardware)"
)
_NEEDS = {
    "small": "68m > 7b: alpha(68m, 7b)",
    "middle": "1.1B > 7b: alpha(1.1B, 7b)",
    "triple": "68m > 1.1B > 7b, independent: both adjacent alphas",
    "favourable": "the same, agreeing as often as can be",
    "middle_sure": "the same, alpha(68m, 1.1B) = 1: alpha(1.1B, 7b)",
}
_SWEEPS = {
    "draft": "the drafter's forward times",
    "forward_ms": "ms more a forward",
    "layer_us": "us more a layer",
}


def findings(found: dict[str, Any]) -> list[str]:
    theory = found["theory"]
    return [*_replayed(found), _reached(theory), _adapting(theory), _verdict(found)]


def _shown(found: dict[str, Any], cost: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The batch size nearest to the published one, and its schemes."""
    batch = found["theory"]["batch"]
    near = min(cost["batches"], key=lambda b: (abs(int(b) - batch), int(b)))
    return near, cost["batches"][near]


def _replayed(found: dict[str, Any]) -> Iterator[str]:
    for derived in (False, True):
        told = []
        for name, cost in found["costs"].items():
            if cost["derived"] != derived:
                continue
            batch, schemes = _shown(found, cost)
            words = ", ".join(
                f"{NAMES[s]} {with_span(schemes[s]['speedup'], schemes[s]['interval'], 2)}"
                for s in ("second", "third", "reach", "ours")
                if s in schemes
            )
            bound = f"no scheme over these chains can pass {schemes['bound']['speedup']:.2f}"
            told.append(f"{name}, batch {batch}: {words}; {bound}")
        if told:
            roles = listed(f"{m} as {r}" for m, r in found["roles"].items())
            fits = "; ".join(
                "{} {:.2f} to {:.2f}".format(name, *device["published_ratios"])
                for name, device in found["theory"]["devices"].items()
            )
            of = (
                f" with roofline costs (derived; {roles}; acceptance from the trace; of other models' "
                f"published times the rooflines say {fits})"
            )
            yield f"Speedup over plain decoding{of if derived else ''}. {'. '.join(told)}."


def _by_device(theory: dict[str, Any], words: Callable[[dict[str, Any]], str]) -> str:
    """What is said of each device, once where it is the same."""
    said: dict[str, list[str]] = {}
    for name, device in theory["devices"].items():
        said.setdefault(words(device), []).append(name)
    return ". ".join(f"{' and '.join(names)}: {text}" for text, names in said.items())


def _reached(theory: dict[str, Any]) -> str:
    def said(device: dict[str, Any]) -> str:
        needs, sweeps = device["needs"]["adaptive"], device["sweeps"]
        return (
            f"the pair 68m > 7b {_from('alpha(68m, 7b)', needs['small'])}, the pair 1.1B > 7b "
            f"{_from('alpha(1.1B, 7b)', needs['middle'])}, the triple "
            f"{_from('both adjacent alphas', needs['triple'])}; "
            + "; ".join(
                f"with {told} for the framework {_row(sweeps[kind][value])}"
                for kind, value, told in (
                    ("layer_us", "500", "500 us a layer"),
                    ("forward_ms", "10", "10 ms a forward"),
                )
            )
        )

    return (
        f"What reaches {theory['published']['adaptive']} at batch {theory['batch']} with no adapting at all, "
        "on rooflines (derived; SYNTHETIC acceptance, independent, everywhere alike). "
        f"{_by_device(theory, said)}."
    )


def _from(what: str, least: float | None) -> str:
    return "at no acceptance" if least is None else f"from {what} = {least:.2f} on"


def _row(needs: dict[str, float | None]) -> str:
    told = {"small": "68m > 7b", "middle": "1.1B > 7b", "triple": "triple"}
    return ", ".join(f"{words} {_least(needs[k])}" for k, words in told.items())


def _least(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f}"


def _adapting(theory: dict[str, Any]) -> str:
    second, third, most = (theory["published"][k] for k in ("second", "third", "adaptive"))
    apart = 1 / second + 1 / third - 2 / most

    def where(device: dict[str, Any]) -> str:
        both = [p for p in device["at_once"] if p["possible"]]
        if not both:
            return "at no acceptance"
        low, high = ([f(p[k] for p in both) for k in ("lower", "upper", "outer")] for f in (min, max))
        return (
            f"alpha(68m, 1.1B) {low[0]:.2f} to {high[0]:.2f}, alpha(1.1B, 7b) {low[1]:.2f} to {high[1]:.2f}, "
            f"alpha(68m, 7b) {low[2]:.2f}"
        )

    def bands(device: dict[str, Any]) -> str:
        return ", ".join(
            ("none" if p["speedup"] is None else f"{p['speedup']:.2f}")
            + f" for alphas within {p['low']:g} to {p['high']:g}"
            for p in device["phases"]
        )

    return (
        f"{second} for the best pair and {third} for the best triple come out together at these alphas. "
        f"{_by_device(theory, where)}. There, acceptance being everywhere alike, no scheme that does not see "
        f"verdicts beforehand passes {second} in the long run. For {most} by choosing between the two, their "
        f"times must differ by {apart:.2f} of a plain token's on average, one fast where the other is slow. "
        "With phases of the text (laws of agreement in eighths) that the chooser knows at once, the most is: "
        f"{_by_device(theory, bands)}."
    )


def _verdict(found: dict[str, Any]) -> str:
    theory = found["theory"]
    second, most = theory["published"]["second"], theory["published"]["adaptive"]
    told, reached = [], []
    for name, cost in found["costs"].items():
        batch, schemes = _shown(found, cost)
        reached += [
            f"{NAMES[s]} under {name}, batch {batch}"
            for s in schemes
            if not s.startswith("bound") and schemes[s]["speedup"] >= most
        ]
        if "bound_of_two" in schemes:
            told.append(f"{name} {schemes['bound_of_two']['speedup'] / schemes['second']['speedup']:.2f}")
    words = (
        f"Replayed, at the batch size nearest to {theory['batch']}, {listed(reached) or 'nothing'} "
        f"reaches {most}."
    )
    if told:
        words += (
            f" It is {most / second:.2f} times {second}; choosing between plain decoding, the static pair "
            "and the static triple on this trace gains at most this factor over that pair, even if verdicts "
            f"are seen beforehand: {listed(told)} (bounds that need not be reached)."
        )
    return words


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    theory = found["theory"]
    roles = listed(f"{m} as {r}" for m, r in found["roles"].items())
    save(speedups(found, said), figures / "table2-speedups.png")
    yield Picture(
        "table2-speedups.png",
        f"Speedup over plain decoding by batch size; {said}, {found['prompts']} prompts; one chain for a "
        "whole batch, static ones and the choice of router tuned on the other half of the prompts; bars: 95% "
        f"over {found['draws']} draws of prompts. The bound holds for every scheme over these chains, one "
        "that sees verdicts beforehand and chooses for each request included; above batch 1 it need not be "
        "reached. "
        + (f"Panels named roofline are derived, not measured: {roles}. " if roles else "")
        + f"Crosses: {_KNOWN}.",
    )
    save(alphas(theory), figures / "table2-alphas.png")
    yield Picture(
        "table2-alphas.png",
        f"SYNTHETIC acceptance, roofline costs (derived), batch {theory['batch']}, context "
        f"{theory['context']}: speedup of the best triple (truncate, replace or nested rounds, best draft "
        "length; exact theory of independent places and rows, padded). Dots: where the best pair has "
        f"{theory['published']['second']} and the best triple {theory['published']['third']} at once.",
    )
    save(sweeps(theory), figures / "table2-sweeps.png")
    yield Picture(
        "table2-sweeps.png",
        f"The least acceptance at which each reaches {theory['published']['adaptive']} at batch "
        f"{theory['batch']}, as the drafter gets dearer and as a framework adds time to forwards or layers; "
        "where a line ends, no acceptance is enough. SYNTHETIC acceptance, roofline costs (derived); solid "
        f"and dashed: {listed(theory['devices'])}.",
    )
    yield Grid(f"Speedups; {said}. {_labels(found)}", *_speeds(found), folded=True)
    yield Grid(
        "The least acceptance that each speedup needs, by exact theory on rooflines (SYNTHETIC acceptance)",
        *_needs(theory),
        folded=True,
    )
    yield Grid(
        "Speedups under given alphas (SYNTHETIC), roofline costs, independent acceptance: adaptive is the "
        "best that a scheme which does not see verdicts beforehand can do in the long run",
        *_given(theory),
        folded=True,
    )


def _labels(found: dict[str, Any]) -> str:
    return " ".join(f"{name}: {cost['label']}." for name, cost in found["costs"].items())


def _speeds(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, cost in found["costs"].items():
        for batch, schemes in cost["batches"].items():
            cells = [
                f"{schemes[s]['speedup']:.3f} ({span(schemes[s]['interval'], 3)})" if s in schemes else NONE
                for s in NAMES
            ]
            rows.append([name, batch, *cells, listed(dict.fromkeys(cost["chosen"][batch]))])
    return ["cost", "batch", *NAMES.values(), "our router"], rows


def _needs(theory: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, device in theory["devices"].items():
        told = {f"{theory['published'][k]}": needs for k, needs in device["needs"].items()}
        for kind, words in _SWEEPS.items():
            told |= {
                f"{theory['published']['adaptive']}, {words} {value}": needs
                for value, needs in device["sweeps"][kind].items()
            }
        rows += [[name, goal, *(_least(needs[k]) for k in _NEEDS)] for goal, needs in told.items()]
    return ["device", "speedup", *_NEEDS.values()], rows


def _given(theory: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    kinds = ("small", "middle", "third", "adaptive")
    rows = [
        [
            name,
            f"{called}: " + ", ".join(f"{given['alphas'][k]:.2f}" for k in ("lower", "upper", "outer")),
            batch,
            *(f"{speeds[k]:.2f}" for k in kinds),
        ]
        for name, device in theory["devices"].items()
        for called, given in device["given"].items()
        for batch, speeds in given["batches"].items()
    ]
    header = ["device", "alphas (68m, 1.1B), (1.1B, 7b), (68m, 7b)", "batch"]
    return [*header, "pair 68m > 7b", "pair 1.1B > 7b", "best triple", "adaptive"], rows
