"""What each model says along the target's text, and the blocks it drafts there.

Everything for one prompt shares one row of cache a model; what leaves the text is told apart by
the mask (see :mod:`simspec.record.branches`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from simspec.record.models import forward
from simspec.record.reads_target import shifted, states_of
from simspec.record.words import adjusted
from simspec.speculation.sampling import Sampling
from simspec.speculation.verify import draw

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Read:
    """A model's distributions at n places.

    Attributes:
        log_probs: shape (n, vocabulary); of the plain softmax under greedy decoding, of what
            tokens are drawn from (temperature, top-p) under sampling.
        margin: logit of the first minus logit of the second, before either, shape (n,).
    """

    log_probs: torch.Tensor
    margin: torch.Tensor

    def part(self, begin: int, end: int) -> Read:
        """Places ``begin .. end - 1``."""
        return Read(self.log_probs[begin:end], self.margin[begin:end])

    def then(self, other: Read) -> Read:
        """These places and then those of ``other``."""
        return Read(torch.cat([self.log_probs, other.log_probs]), torch.cat([self.margin, other.margin]))


@dataclass(frozen=True)
class Along:
    """One model along the text: its words at positions 0..L, and the cache that made them.

    ``log_probs`` has shape (L + 1, vocabulary); row t is the model's distribution of
    token t given the prompt and tokens 0..t-1, as :class:`Read` says; ``margin`` likewise.
    ``states`` are those of some layers, of prompt and text, shape (1, slots, layers * hidden), if kept.
    """

    network: Any
    log_probs: torch.Tensor
    margin: torch.Tensor
    cache: DynamicCache
    prompt_tokens: int
    slots: int
    sampling: Sampling | None = None
    states: torch.Tensor | None = None

    def forget(self) -> None:
        """Drop from the cache what was read since, also when a forward broke off between two layers."""
        layers: list[Any] = list(self.cache.layers)
        for layer in layers:
            surplus = layer.get_seq_length() - self.slots
            if surplus > 0:
                layer.crop(-surplus)

    def part(self, begin: int, end: int) -> Read:
        """Its words at positions ``begin .. end - 1`` of the text."""
        return Read(self.log_probs[begin:end], self.margin[begin:end])


@dataclass(frozen=True)
class Summary:
    """Figures of distributions, one entry a row: what the trace keeps of them."""

    greedy_token: Ints
    top1_prob: NDArray[np.float32]
    top2_margin: NDArray[np.float32]
    entropy: NDArray[np.float32]


def words_after(logits: torch.Tensor, sampling: Sampling | None) -> Read:
    """Words from logits of shape (n, vocabulary)."""
    top = logits.topk(2, dim=-1).values
    if sampling is None:
        log_probs = logits.log_softmax(-1)
    else:
        log_probs = adjusted(logits, sampling).log().float()
    return Read(log_probs, top[..., 0] - top[..., 1])


def decode_greedy(network: Any, prompt: torch.Tensor, length: int) -> Ints:
    """The target's own greedy text, by transformers' own ``generate``, one row.

    One prompt at a time: a batched forward adds in another order than a single row, which can
    turn an argmax near a tie, and a shard must not depend on what was recorded beside it.

    Args:
        prompt: token ids, shape (1, prompt tokens).
        length: the most tokens to produce; fewer when it ends itself.
    """
    with torch.inference_mode():
        out = network.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=length,
            do_sample=False,
        )
    return np.asarray(out[0, prompt.shape[1] :].cpu().numpy(), dtype=np.int32)


def decode_sampled(
    network: Any,
    prompt: torch.Tensor,
    length: int,
    eos_tokens: tuple[int, ...],
    sampling: Sampling,
    generator: np.random.Generator,
) -> Ints:
    """A text drawn from the target, token by token; arguments as for :func:`decode_greedy`."""
    cache, text, tokens = DynamicCache(), list[int](), prompt
    while len(text) < length and (not text or text[-1] not in eos_tokens):
        first = cache.get_seq_length()
        places = torch.arange(first, first + tokens.shape[1], device=prompt.device)[None]
        logits = forward(network, tokens, places, cache, last=1)[0]
        text.append(draw(adjusted(logits, sampling)[0].cpu().numpy(), generator.random()))
        tokens = torch.tensor([text[-1:]], device=prompt.device)
    return np.array(text, dtype=np.int32)


def read_along(
    network: Any,
    prompt: torch.Tensor,
    text: Ints,
    sampling: Sampling | None = None,
    *,
    target: Along | None = None,
    keep_states: tuple[int, ...] = (),
) -> Along:
    """One forward over prompt and text.

    Args:
        target: whose states are read beside each token, for a network that reads those.
        keep_states: layers of the network whose own are kept.
    """
    device = prompt.device
    tokens = torch.cat([prompt, torch.as_tensor(text, device=device)[None].long()], dim=1)
    slots = tokens.shape[1]
    cache = DynamicCache()
    places = torch.arange(slots, device=device)[None]
    fed = None if target is None or target.states is None else shifted(target.states)
    with states_of(network, keep_states) as states:
        logits = forward(network, tokens, places, cache, states=fed)
    words = words_after(logits[0, prompt.shape[1] - 1 :], sampling)
    return Along(
        network=network,
        log_probs=words.log_probs,
        margin=words.margin,
        cache=cache,
        prompt_tokens=prompt.shape[1],
        slots=slots,
        sampling=sampling,
        states=states[0] if keep_states else None,
    )


def summarise(log_probs: torch.Tensor, margin: torch.Tensor) -> Summary:
    """The kept figures of distributions given as log probabilities, shape (rows, vocabulary)."""
    top, token = log_probs.max(-1)
    probs = log_probs.exp()
    # 0 * -inf is not a number; a token of probability zero adds nothing.
    entropy = -(probs * log_probs.clamp_min(-1e4)).sum(-1)
    return Summary(
        greedy_token=token.cpu().numpy().astype(np.int32),
        top1_prob=top.exp().clamp(0, 1).cpu().numpy(),
        top2_margin=margin.cpu().numpy(),
        entropy=entropy.clamp_min(0).cpu().numpy(),
    )


def choose(log_probs: torch.Tensor, luck: Floats | None) -> Ints:
    """One token of each distribution: the most probable one, or the one drawn by ``luck``, shape (n,).

    Args:
        log_probs: shape (n, vocabulary); where nothing is drawn, logits will do.
        luck: uniform numbers, shape (n,); None for greedy.
    """
    if luck is None:
        greedy: Ints = log_probs.argmax(-1).cpu().numpy().astype(np.int32)
        return greedy
    probs = log_probs.double().exp().cpu().numpy()
    return np.array([draw(row, u) for row, u in zip(probs, luck, strict=True)], dtype=np.int32)


@dataclass(frozen=True)
class Rollouts:
    """Blocks drafted by one model; row r starts at ``starts[r]``.

    ``tokens`` has shape (R, D); ``log_probs`` (R, D, vocabulary) are the distributions
    that they were chosen from; ``margin`` is (R, D).
    """

    starts: NDArray[np.int64]
    tokens: Ints
    log_probs: torch.Tensor
    margin: torch.Tensor

    def row(self, r: int) -> Read:
        """The drafter's words at each place of block ``r``."""
        return Read(self.log_probs[r], self.margin[r])


def roll_out(along: Along, starts: NDArray[np.int64], length: int, luck: Floats | None = None) -> Rollouts:
    """Draft ``length`` tokens one by one after the text's first t tokens, for every t in ``starts``.

    Args:
        luck: uniform numbers to draw by, shape (R, length); None to draft greedily.
    """
    rows = len(starts)
    device = along.log_probs.device
    log_probs = [along.log_probs[starts]]
    margin = [along.margin[starts]]
    tokens = [choose(log_probs[0], None if luck is None else luck[:, 0])]
    start = torch.as_tensor(starts, device=device) + along.prompt_tokens
    on_text = torch.arange(along.slots, device=device)[None] < start[:, None]
    own = torch.eye(rows, dtype=torch.bool, device=device)
    try:
        for depth in range(1, length):
            mask = torch.cat([on_text, *([own] * depth)], dim=1)
            last = torch.as_tensor(tokens[-1], device=device)[None].long()
            logits = forward(along.network, last, (start + depth - 1)[None], along.cache, mask[None, None])[0]
            words = words_after(logits, along.sampling)
            log_probs.append(words.log_probs)
            margin.append(words.margin)
            # The greatest logit: a logarithm of the softmax rounds once more and may make a tie.
            chosen_from = logits if luck is None else words.log_probs
            tokens.append(choose(chosen_from, None if luck is None else luck[:, depth]))
        stacked = torch.stack(log_probs, 1), torch.stack(margin, 1)
    finally:
        along.forget()
    return Rollouts(starts, np.stack(tokens, 1), *stacked)
