"""Drafted blocks and verdicts on them, as rows of the trace's tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from simspec.record.observe import Ints, Read, summarise
from simspec.record.rows import Rows
from simspec.tables import BLOCKS, CHOICES, VERDICTS


@dataclass(frozen=True)
class BlockRows:
    """Rows of one prompt, as they are gathered.

    ``alternatives`` is how many tokens' probabilities are kept of each drafted place, 0 for none.
    """

    prompt_id: int
    text: Ints
    alternatives: int = 0
    blocks: Rows = field(default_factory=lambda: Rows(BLOCKS))
    verdicts: Rows = field(default_factory=lambda: Rows(VERDICTS))
    choices: Rows = field(default_factory=lambda: Rows(CHOICES))

    def add_block(self, drafter: str, start: int, tokens: Ints, words: Read | None) -> None:
        """A block of n tokens, and what each was chosen from; None for a look-up, which is certain."""
        if words is None:
            confidence = top = np.ones(len(tokens), dtype=np.float32)
            margin = entropy = np.zeros(len(tokens), dtype=np.float32)
        else:
            kept = summarise(words.log_probs, words.margin)
            confidence = unit(_prob_of(tokens, words.log_probs))
            top, margin, entropy = kept.top1_prob, kept.top2_margin, kept.entropy
        self.blocks.add(
            prompt_id=self.prompt_id,
            start=start,
            drafter=drafter,
            tokens=tokens,
            confidence=confidence,
            top1_prob=top,
            top2_margin=margin,
            entropy=entropy,
        )
        if words is not None:
            self.add_choices(drafter, start, tokens, words)

    def add_choices(self, drafter: str, start: int, tokens: Ints, words: Read) -> None:
        """What was chosen among at each of n places, the drafted ``tokens`` being most probable."""
        if not self.alternatives:
            return
        here = words.log_probs
        drafted = torch.as_tensor(tokens, device=here.device).long()[:, None]
        # First whatever rounding does: the drafted token's logit was the greatest.
        first = here.gather(1, drafted)
        most = here.scatter(1, drafted, float("inf")).topk(self.alternatives, dim=-1).values
        most[:, :1] = first
        rest = torch.as_tensor(self.text[start : start + len(tokens)], device=here.device).long()[:, None]
        there = here[: len(rest)]
        own = there.gather(1, rest)
        before = (there > own) | ((there == own) & (torch.arange(there.shape[1], device=here.device) < rest))
        before.scatter_(1, drafted[: len(rest)], True)
        rank = before.sum(-1).where((drafted[: len(rest)] != rest)[:, 0], 0)
        self.choices.add(
            prompt_id=self.prompt_id,
            start=start,
            drafter=drafter,
            confidence=unit(most.exp()).ravel(),
            text_rank=rank.cpu().numpy().astype(np.int32),
        )

    def add_verdict(
        self, drafter: str, start: int, verifier: str, tokens: Ints, said: Read, drafted_from: Read | None
    ) -> None:
        """What a verifier says along a block.

        Args:
            tokens: of the block, or of its beginning, shape (n,).
            said: the verifier's words at each of them, and at one place more where its word
                past their end is kept.
            drafted_from: what the tokens were chosen from; None for a point mass.
        """
        n = len(tokens)
        drafted_prob = _prob_of(tokens, said.log_probs[:n])
        overlap = drafted_prob
        if drafted_from is not None:
            overlap = torch.minimum(said.log_probs[:n], drafted_from.log_probs[:n]).exp().sum(-1)
        self.verdicts.add(
            prompt_id=self.prompt_id,
            start=start,
            drafter=drafter,
            verifier=verifier,
            greedy_token=said.log_probs.argmax(-1).cpu().numpy().astype(np.int32),
            top1_prob=unit(said.log_probs.max(-1).values.exp()),
            top2_margin=said.margin.cpu().numpy(),
            drafted_prob=unit(drafted_prob),
            overlap=unit(overlap),
        )

    def lengths(self) -> tuple[int, int, int]:
        """Rows so far, for :meth:`cut`."""
        return len(self.blocks), len(self.verdicts), len(self.choices)

    def cut(self, lengths: tuple[int, int, int]) -> None:
        """Forget the rows that were added since."""
        for rows, length in zip((self.blocks, self.verdicts, self.choices), lengths, strict=True):
            rows.cut(length)

    def finish(self) -> dict[str, pa.Table]:
        """The tables, by name."""
        done = {"blocks": self.blocks.finish(), "verdicts": self.verdicts.finish()}
        return done | ({"choices": self.choices.finish()} if self.alternatives else {})


def _prob_of(tokens: Ints, log_probs: torch.Tensor) -> torch.Tensor:
    index = torch.as_tensor(tokens, device=log_probs.device).long()
    return log_probs.gather(1, index[:, None])[:, 0].exp()


def unit(values: torch.Tensor) -> NDArray[np.float32]:
    """Clamped to [0, 1]: float32 sums of probabilities can end a rounding step outside."""
    clamped: NDArray[np.float32] = values.clamp(0, 1).cpu().numpy()
    return clamped
