"""Made-up models in a trace: their verdicts follow from where they are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.specrouter.newcomers import Extended, Synthetic, _with_model, made_up, with_models
from simspec.cost.shape import uniform
from simspec.replay.candidates import tabulate
from simspec.speculation.chains import Chain
from simspec.traces.index import Trace
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.toy import EOS, LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

NEW = "newcomer"
MADE = settings_of(prompts=3, output_tokens=(2, 20), block_length=(3, 6))


def synthetic(right: float, overlap: float = 0.5) -> Synthetic:
    return Synthetic(NEW, right, overlap, SMALL, 0.5, None, "made up")


@dataclass(frozen=True)
class Twin:
    """The newcomer, token by token: the text's own word where it is right, else -1, which nobody says."""

    toy: Toy
    trace: Trace
    right: np.ndarray

    def block(self, p: int, t: int) -> list[int]:
        text, begin = self.toy.texts[p], int(self.trace.offsets[p])
        block: list[int] = []
        for j in range(self.trace.manifest.block_length):
            if t + j >= len(text):  # what a text may still have had is not recorded
                block.append(-1)
            else:
                block.append(text[t + j] if self.right[begin + t + j] else -1)
            if block[-1] in (-1, EOS):
                return block
        return block

    def says(self, p: int, t: int, before: list[int]) -> int:
        """Its next token after the text up to t and ``before``."""
        text, begin = self.toy.texts[p], int(self.trace.offsets[p])
        on_text = t + len(before) < len(text) and before == text[t : t + len(before)]
        return text[t + len(before)] if on_text and self.right[begin + t + len(before)] else -1


@given(MADE, st.integers(0, 9))
@examples(0.5)
def test_verdicts_are_those_of_the_model_run_token_by_token(setting: Setting, seed: int) -> None:
    toy = Toy(setting)
    bare = toy.trace()
    right = np.random.default_rng(seed).random(len(bare.tokens)) < 0.7
    trace = _with_model(bare, synthetic(0.7), right)
    twin = Twin(toy, trace, right)
    index = trace.drafters[NEW]
    for p, (prompt, text) in enumerate(zip(toy.prompts, toy.texts, strict=True)):
        for t in range(len(text)):
            at = int(trace.offsets[p]) + t
            block = twin.block(p, t)
            rest = text[t:]
            matched = next((j for j, w in enumerate(block) if j >= len(rest) or w != rest[j]), len(block))
            assert index.matched[at] == matched
            for verifier in (SMALL, MIDDLE):
                said = [toy.next_token(verifier, [*prompt, *text[:t], *block[:j]]) for j in range(matched)]
                agreed = next((j for j, w in enumerate(said) if w != block[j]), matched)
                assert index.agreed[verifier][at] == agreed
            for drafter in (LOOKUP, SMALL, MIDDLE):
                other = trace.drafters[drafter]
                words = rest[: int(other.matched[at])]
                own = [twin.says(p, t, words[:j]) for j in range(len(words))]
                agreed = next((j for j, w in enumerate(own) if w != words[j]), len(words))
                assert other.agreed[NEW][at] == agreed


@given(MADE)
@examples(0.3)
def test_one_that_is_right_where_a_recorded_model_is_matches_the_text_as_far(setting: Setting) -> None:
    trace = Toy(setting).trace()
    found = _with_model(trace, synthetic(0.5), trace.owns[SMALL])
    assert (found.drafters[NEW].matched == trace.drafters[SMALL].matched).all()


@given(MADE)
@examples(0.3)
def test_the_target_again_accepts_what_the_target_does_and_one_never_right_nothing(setting: Setting) -> None:
    trace = Toy(setting).trace()
    for right, name in ((1.0, "double"), (0.0, "shifted")):
        found = with_models(trace, (Synthetic(name, right, right, SMALL, 1.0, False, ""),), 0)
        table = tabulate(
            found,
            [(Chain((SMALL, TARGET)), 3), (Chain((SMALL, name, TARGET)), 3), (Chain((name, TARGET)), 3)],
        )
        if right:
            assert (table.emitted[1] == table.emitted[0]).all()
            assert (table.accepted[1] == table.offered[1]).all()  # it left nothing to refuse
            room = np.minimum(table.drafted[2] + 1, found.remaining)
            assert (table.emitted[2] == room).all()
        else:
            assert (table.emitted[1:] == 1).all()


def test_it_is_as_near_to_others_as_said_and_priced_as_a_share() -> None:
    trace = Toy(Setting(seed=1, prompts=2, output_tokens=12, block_length=4)).trace()
    made = synthetic(0.5, overlap=0.25)
    found = with_models(trace, (made,), 0)
    rows = found.pairs[(found.pairs["model_a"] == TARGET) & (found.pairs["model_b"] == NEW)]
    assert len(rows) == len(trace.tokens)
    assert (rows["tv"] == 0.75).all()
    cost = Extended(AFFINE, (made,))
    one = np.ones(1, dtype=np.int64)
    shape = uniform(one, 3 * one, 50 * one)
    assert cost.forward_seconds(NEW, shape) == 0.5 * AFFINE.forward_seconds(SMALL, shape)
    assert cost.forward_seconds(TARGET, shape) == AFFINE.forward_seconds(TARGET, shape)
    assert cost.models == AFFINE.models | {NEW}
    # What is like nothing else costs what the smallest network that is priced costs.
    assert {m.like for m in made_up(trace, AFFINE)} == {SMALL, TARGET}
    assert set(MODELS) <= set(found.manifest.models)
