"""The synthetic traces of :mod:`simspec.strategies.traces` and models under the names that tests use."""

from __future__ import annotations

from simspec.strategies.made_up_models import (
    EOS,
    LOOKUP,
    MIDDLE,
    MODELS,
    SMALL,
    TARGET,
    VOCABULARY,
    Setting,
    settings_of,
)
from simspec.strategies.traces import BATCHES, CONTEXTS, WIDTHS, table_of
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
