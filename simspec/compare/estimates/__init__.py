"""Acceptance between models, as Eq. 7 is given it: from similarity, mapped or not, or as realised."""

from simspec.compare.estimates.similarity import similarity

__all__ = ["similarity"]
