"""The synthetic traces of :mod:`simspec.strategies.traces` under the names that tests use."""

from __future__ import annotations

from simspec.strategies.traces import (
    BATCHES,
    CONTEXTS,
    EOS,
    LOOKUP,
    MIDDLE,
    MODELS,
    SMALL,
    TARGET,
    VOCABULARY,
    WIDTHS,
    Setting,
    settings_of,
    table_of,
)
from simspec.strategies.traces import Synthetic as Toy

__all__ = [
    "BATCHES",
    "CONTEXTS",
    "EOS",
    "LOOKUP",
    "MIDDLE",
    "MODELS",
    "SMALL",
    "TARGET",
    "VOCABULARY",
    "WIDTHS",
    "Setting",
    "Toy",
    "settings_of",
    "table_of",
]
