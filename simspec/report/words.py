"""Numbers and names as a reader sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simspec.compare.calibration import Calibration

NONE = "–"


def chain_name(chain: Mapping[str, Any]) -> str:
    """``drafter > target x length (semantics)``."""
    text = " > ".join(chain["chain"])
    if len(chain["chain"]) > 1:
        text += f" x {chain['draft_length']}"
    return f"{text} ({chain['semantics'].removeprefix('funnel-')})" if chain["semantics"] else text


def span(interval: Sequence[float | None], digits: int) -> str:
    """``low to high``, or a dash where no interval was drawn."""
    low, high = interval
    return NONE if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"


def with_span(value: float, interval: Sequence[float | None], digits: int, unit: str = "") -> str:
    """``value unit (95% low to high)``."""
    text = f"{value:.{digits}f}{unit}"
    return text if interval[0] is None else f"{text} (95% {span(interval, digits)})"


def listed(items: Iterable[object]) -> str:
    """``1, 2 and 4``."""
    words = [str(i) for i in items]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def counts_of_bins(calibration: Calibration) -> str:
    """``n 120 to 124 in each of 10 bins``."""
    sizes = [b.tokens for b in calibration.bins]
    many = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    return f"n {many} in each of {len(sizes)} bins" if len(sizes) > 1 else f"n {many} in one bin"
