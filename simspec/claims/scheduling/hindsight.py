"""Whether the best scheme in each cycle makes the best schedule (S10).

A text whose agreements are given, the same for every scheme: schedules are walked through and all of them
enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown

# S10: one text, the same agreements for every scheme


@dataclass(frozen=True)
class Text:
    """A text to decode, and the schemes that a scheduler may take in each cycle.

    Attributes:
        agreed: at each place, whether the drafter says what the target says.
        schemes: (drafts, seconds of a cycle); 0 drafts is plain decoding.
    """

    agreed: tuple[int, ...]
    schemes: tuple[tuple[int, Fraction], ...]

    def end(self, at: int, drafts: int) -> int:
        """Where a cycle ends that begins at ``at``: after the accepted drafts and the target's own token."""
        last = at
        while last < len(self.agreed) - 1 and last - at < drafts and self.agreed[last]:
            last += 1
        return last + 1


Allowed = Callable[[Text, int], tuple[int, ...]]


def any_scheme(text: Text, at: int) -> tuple[int, ...]:
    return tuple(range(len(text.schemes)))


def hindsight(text: Text, at: int) -> tuple[int, ...]:
    """The schemes whose cycle from here makes most tokens per second, knowing what will be accepted."""
    speeds = [(text.end(at, drafts) - at) / seconds for drafts, seconds in text.schemes]
    return tuple(i for i, speed in enumerate(speeds) if speed == max(speeds))


def only(scheme: int) -> Allowed:
    """Always the same one."""
    return lambda text, at: (scheme,)


def least_seconds(text: Text, allowed: Allowed) -> tuple[Fraction, tuple[int, ...]]:
    """The least time of all schedules that take an allowed scheme in each cycle, and its drafts.

    Among equals hindsight is given the luckiest choice.
    """
    best: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(0), ())]
    for at in reversed(range(len(text.agreed))):
        ways = []
        for i in allowed(text, at):
            drafts, seconds = text.schemes[i]
            # best[j] is for the place that lies j before the end.
            then, rest = best[len(text.agreed) - text.end(at, drafts)]
            ways.append((seconds + then, (drafts, *rest)))
        best.append(min(ways))
    return best[-1]


def _hindsight_bounds(text: Text) -> Outcome:
    (looked, its), (least, best) = least_seconds(text, hindsight), least_seconds(text, any_scheme)
    if looked <= least:
        return None
    taken = dict(text.schemes)
    first = [
        f"{drafts} drafts make {text.end(0, drafts)} tokens in {seconds} s, "
        f"{number(text.end(0, drafts) / seconds)} a second"
        for drafts, seconds in text.schemes
    ]
    return against(
        f"the drafter is right (1) or wrong (0) at {shown(text.agreed)}; 0 drafts is plain decoding",
        "from the start, " + "; ".join(first),
        f"best ratio in each cycle: {shown(its)} drafts in turn, {' + '.join(str(taken[d]) for d in its)} = "
        f"{number(looked)} s",
        f"best schedule: {shown(best)} drafts in turn, {' + '.join(str(taken[d]) for d in best)} = "
        f"{number(least)} s",
    )


def _texts(level: int, schemes: tuple[tuple[int, ...], ...], prices: range) -> Iterator[Text]:
    for size in range(1, 4 + level):
        for drafts, agreed in product(schemes, product((1, 0), repeat=size)):
            for seconds in product(prices, repeat=len(drafts)):
                if list(seconds) == sorted(set(seconds)):
                    yield Text(agreed, tuple(zip(drafts, map(Fraction, seconds), strict=True)))


@st.composite
def _random_texts(draw: st.DrawFn, plain: bool = True, fewest: int = 1, most: int = 3) -> Text:
    """Texts with ``fewest`` to ``most`` speculative schemes, and plain decoding if ``plain``."""
    # A short stretch, repeated: what is lost then is not lost at the text's end alone.
    stretch = draw(st.lists(st.sampled_from([1, 1, 0]), min_size=1, max_size=7))
    agreed = tuple(stretch) * draw(st.integers(1, 3))
    some = st.lists(st.integers(1, 6), min_size=fewest, max_size=most, unique=True).map(sorted)
    lengths = [0] * plain + draw(some)
    seconds = draw(st.lists(st.integers(1, 40), min_size=len(lengths), max_size=len(lengths)).map(sorted))
    return Text(agreed, tuple(zip(lengths, map(Fraction, seconds), strict=True)))


def _schedules(text: Text) -> Plot:
    names, seconds = [], []
    for i, (drafts, _) in enumerate(text.schemes):
        names.append("plain" if not drafts else f"always {drafts} drafts")
        seconds.append(float(least_seconds(text, only(i))[0]))
    names += ["best ratio each cycle", "best schedule"]
    seconds += [float(least_seconds(text, rule)[0]) for rule in (hindsight, any_scheme)]
    return Plot("Time for the whole text", "bars", "", "seconds", tuple(names), {"seconds": tuple(seconds)})


S10_STATEMENT = Statement(
    words=(
        "No schedule over a fixed set of schemes is faster than taking, in each cycle, the one that will "
        "make most tokens per second in it (the hindsight oracle)"
    ),
    formula="min over schedules of sum T >= time of argmax_k emitted_k / T_k in every cycle",
    rule=_hindsight_bounds,
    over=(
        "all texts of up to 4 tokens, plain decoding and 1 and 2 drafts at whole seconds up to 8; random "
        "ones with up to 3 lengths, repeated up to 3 times. Where ratios tie, the oracle may take either"
    ),
    domain=_random_texts(),
    every=lambda level: _texts(level, ((0, 1, 2),), range(1, 9)),
    examples=150,
)
S10 = Claim(
    id="S10",
    source=(
        "readings of an oracle for SpecRouter (2505.07680) and LibraSpec (2608.08721): hindsight, cycle by "
        "cycle"
    ),
    statement=S10_STATEMENT,
    expected="refuted",
    because=(
        "A cycle is judged alone, not by where it leaves the text. A short cycle with a slightly better "
        "ratio may leave a remainder that costs a whole cycle: three tokens at 2/5 and then 1/4 a second "
        "take longer than one cycle at 3/8. Why the repaired statement holds: a schedule takes plain "
        "decoding's time less the savings s(t) = u (e(t) - t) - c of its speculative cycles, which are "
        "disjoint stretches [t, e(t)) of the text; hindsight takes each with s > 0 that it meets. Let t be "
        "the first place where a best schedule without cycles of s <= 0 decodes plainly and hindsight does "
        "not. If its next speculative cycle begins at or after e(t), adding [t, e(t)) makes it faster: a "
        "contradiction. Else it begins at some t' with t < t' < e(t), so t .. t'-1 are agreed, the run of "
        "agreed places ends in the same place seen from t and from t', and [t, e(t)) is no shorter and ends "
        "no later than [t', e(t')): putting it in its place costs nothing. Repeat."
    ),
    pinned=Text((1, 1, 1), ((0, Fraction(4)), (1, Fraction(5)), (2, Fraction(8)))),
    repaired=S10_STATEMENT.but(
        "With plain decoding and one speculative scheme as the only choices, no schedule is faster than "
        "the hindsight oracle",
        _hindsight_bounds,
        over=(
            "all texts of up to 4 tokens, plain decoding and 1, 2 or 3 drafts at whole seconds up to 6; "
            "random ones, up to 6 drafts"
        ),
        domain=_random_texts(most=1),
        every=lambda level: _texts(level, ((0, 1), (0, 2), (0, 3)), range(1, 7)),
    ),
    broken=(
        S10_STATEMENT.but(
            "With two speculative schemes as the only choices, no schedule is faster than the hindsight "
            "oracle",
            _hindsight_bounds,
            over=(
                "all texts of up to 4 tokens, 1 and 2 drafts at whole seconds up to 6; random ones, up to 6 "
                "drafts"
            ),
            domain=_random_texts(plain=False, fewest=2, most=2),
            every=lambda level: _texts(level, ((1, 2),), range(1, 7)),
        ),
    ),
    first_look=(
        "The first look's example (5 agreed, 1 disagreed, repeated; plain 1, 2 drafts 1.5, 4 drafts 2.4) is "
        "right: 34 against 30 for 60 tokens. Three tokens are enough."
    ),
    plot=_schedules,
)

CLAIMS = (S10,)
