"""How many examples a law gets that is slower, or quicker, than most."""

from __future__ import annotations

from hypothesis import settings


def examples(factor: float) -> settings:
    """``factor`` times the profile's examples, at least one; every profile then means what it says."""
    return settings(max_examples=max(1, round(factor * settings.default.max_examples)))
