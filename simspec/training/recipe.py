"""The TOML recipes of training: which texts a target writes, and what is trained on them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from simspec.record.recipe import Count, Name, Natural, PromptRecipe, Recipe, TargetRecipe

# TOML knows inf, which no rate is.
Positive = Annotated[float, Meta(gt=0, le=1e6)]
Part = Annotated[float, Meta(ge=0, lt=1)]
# Of a folder beside others: no path, and nothing that is fetched.
Maybe = Annotated[str, Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$")]


class CollectionRecipe(PromptRecipe, frozen=True, forbid_unknown_fields=True):
    """Prompts to train on: at most ``count`` of those that are neither kept nor held out.

    Attributes:
        texts: continuations of each; the first is greedy, the others are drawn.
        words: the target is given only so many first words of a prompt, goes on with it in the user's
            place, and then answers: prompts of its own, of a kind that the file shows. All such texts are
            drawn. 0 for whole prompts.
        held_out: further prompts, one greedy text of each, that progress is measured on.
    """

    texts: Count = 1
    words: Natural = 0
    held_out: Natural = 0


class TextsRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts of a target. Lengths are in tokens.

    Attributes:
        kept: prompts that recordings may use, drawn by ``kept_seed`` as a recording draws them;
            none of them is trained on or measured on.
        top: how many of the most probable tokens are stored at each place, with log probabilities.
        batch: texts written at once; what each adds up to depends on it, in the last bits.
        temperature: of the texts that are drawn.
        states: layers of the target whose states are stored, for drafters that read them
            (:mod:`simspec.record.reads_target`).
    """

    name: Name
    target: TargetRecipe
    kept: tuple[PromptRecipe, ...]
    collections: tuple[CollectionRecipe, ...]
    seed: Natural = 0
    kept_seed: Natural = 0
    output_tokens: Count = 128
    context_limit: Count = 512
    top: Count = 32
    batch: Count = 32
    temperature: Positive = 1.0
    states: tuple[Natural, ...] = ()
    dtype: Literal["float32", "bfloat16"] = "float32"

    def recording(self, threads: int = 0) -> Recipe:
        """What :mod:`simspec.record` needs to know: the target, the kept prompts, the lengths."""
        return Recipe(
            name=self.name,
            target=self.target,
            drafters=(),
            prompts=self.kept,
            seed=self.kept_seed,
            output_tokens=self.output_tokens,
            context_limit=self.context_limit,
            dtype=self.dtype,
            threads=threads,
        )


class StudentRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="student"):
    """A drafter of one token after another.

    Attributes:
        layers: the target's layers that it begins as.
        output_ids: size of its output vocabulary, the most frequent ids of the texts; 0 for all.
    """

    layers: tuple[Natural, ...]
    output_ids: Natural = 0


class BlockRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="block"):
    """A drafter that fills in masked places; ``layers`` and ``output_ids`` as of a student.

    Attributes:
        mask_token: a token that no text holds, as the tokenizer writes it.
        block: tokens that one forward drafts: the one after the text, the others at masks.
        within: whether a mask sees the masks before it, or all of them.
        blocks: masked blocks beside each text in training, at places drawn anew each time.
        fading: tokens after which the chance that a block in training goes on has fallen to 1/e: a block
            of n tokens is the beginning of a longer one, and early places matter most.
        reads_target: layers of the target whose states it sees, among the ``states`` of its texts
            (:mod:`simspec.record.reads_target`); none for a drafter that sees tokens only.
    """

    layers: tuple[Natural, ...]
    mask_token: str
    block: Annotated[int, Meta(ge=2)]
    output_ids: Natural = 0
    within: Literal["causal", "full"] = "causal"
    blocks: Count = 8
    fading: Positive = 7.0
    reads_target: tuple[Natural, ...] = ()


class TrainRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One drafter to train.

    Attributes:
        texts: the recipe of its texts, beside this one.
        batch_tokens: places of a batch that are read, padding included.
        warm: share of the steps over which the rate rises; it then falls along a half cosine to a
            tenth of ``rate``.
        begin: the name of a drafter trained in the same folder, whose layers and output layer this one
            begins as; empty for the target's.
        hard: share of the loss that is on the text's own token; the rest is on the target's
            distribution.
        dtype: of multiplications; weights and the optimiser's state are float32.
        save_minutes: between checkpoints, of wall time.
    """

    name: Name
    texts: str
    drafter: StudentRecipe | BlockRecipe
    steps: Count
    begin: Maybe = ""
    seed: Natural = 0
    rate: Positive = 5e-4
    warm: Part = 0.05
    weight_decay: Annotated[float, Meta(ge=0, le=1e6)] = 0.01
    batch_tokens: Count = 2048
    hard: Annotated[float, Meta(ge=0, le=1)] = 0.0
    dtype: Literal["float32", "bfloat16"] = "float32"
    measure_every: Count = 100
    save_minutes: Annotated[float, Meta(ge=0)] = 5.0
    threads: Natural = 0
