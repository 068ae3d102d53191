"""What a scheduler can and cannot gain by choosing anew each cycle (S10, L17, and S47 to S49).

Two worlds. A text whose agreements are given: schedules are walked through and all of them enumerated. And
cycles of several kinds, drawn afresh: every policy that sees the kind is enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations_with_replacement, product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine, rising_costs
from simspec.strategies.survivals import (
    Conditional,
    chances,
    conditionals,
    expected_accepted,
    grid,
    survival,
)
from simspec.theory import renewal

ONE = Fraction(1)

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
    first = [
        f"{drafts} drafts: {text.end(0, drafts)} tokens in {seconds}" for drafts, seconds in text.schemes
    ]
    return against(
        f"the drafter agrees with the target at {shown(text.agreed)}",
        "from the start, " + "; ".join(first),
        f"best ratio in each cycle: {shown(its)} drafts, {number(looked)} seconds",
        f"best schedule: {shown(best)} drafts, {number(least)} seconds",
    )


def _texts(level: int, schemes: tuple[tuple[int, ...], ...], prices: range) -> Iterator[Text]:
    for size in range(1, 4 + level):
        for drafts, agreed in product(schemes, product((1, 0), repeat=size)):
            for seconds in product(prices, repeat=len(drafts)):
                if list(seconds) == sorted(set(seconds)):
                    yield Text(agreed, tuple(zip(drafts, map(Fraction, seconds), strict=True)))


@st.composite
def _random_texts(draw: st.DrawFn, plain_and_one: bool = False) -> Text:
    # A short stretch, repeated: what is lost then is not lost at the text's end alone.
    stretch = draw(st.lists(st.sampled_from([1, 1, 0]), min_size=1, max_size=7))
    agreed = tuple(stretch) * draw(st.integers(1, 3))
    most = 2 if plain_and_one else 4
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=most - 1, unique=True).map(sorted))
    seconds = draw(
        st.lists(st.integers(1, 40), min_size=len(lengths) + 1, max_size=len(lengths) + 1).map(sorted)
    )
    return Text(agreed, tuple(zip((0, *lengths), map(Fraction, seconds), strict=True)))


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
        domain=_random_texts(plain_and_one=True),
        every=lambda level: _texts(level, ((0, 1), (0, 2), (0, 3)), range(1, 7)),
    ),
    broken=(
        S10_STATEMENT.but(
            "With two speculative schemes as the only choices, no schedule is faster than the hindsight "
            "oracle",
            _hindsight_bounds,
            every=lambda level: _texts(level, ((1, 2),), range(1, 7)),
        ),
    ),
    first_look=(
        "The first look's example (5 agreed, 1 disagreed, repeated; plain 1, 2 drafts 1.5, 4 drafts 2.4) is "
        "right: 34 against 30 for 60 tokens. Three tokens are enough."
    ),
    plot=_schedules,
)

# S10b: several drafters, caches that lag, switches that cost


@dataclass(frozen=True)
class Scene:
    """A text, drafters with caches of their own, and a price for changing scheme.

    Attributes:
        agreed: for each drafter, at each place, whether it says what the target says.
        schemes: (drafter, drafts); 0 drafts is plain decoding.
        draft, target: (seconds of a forward, seconds of each token that it reads).
        switch: seconds of a cycle whose scheme is not the last one's.
    """

    agreed: tuple[tuple[int, ...], ...]
    schemes: tuple[tuple[int, int], ...]
    draft: tuple[int, int]
    target: tuple[int, int]
    switch: int

    @property
    def size(self) -> int:
        return len(self.agreed[0])


def all_schedules(scene: Scene) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(seconds, schemes taken) of every schedule, walked with real caches: how much of the text each
    drafter has read correctly, the prompt's last token counted as unread at first."""
    todo: list[tuple[int, tuple[int, ...], int, tuple[int, ...]]] = [
        (0, tuple(0 for _ in scene.agreed), 0, ())
    ]
    while todo:
        at, read, seconds, taken = todo.pop()
        if at == scene.size:
            yield seconds, taken
            continue
        for i, (drafter, most) in enumerate(scene.schemes):
            drafts = min(most, scene.size - at - 1)
            spent = scene.target[0] + scene.target[1] * (drafts + 1)
            spent += scene.switch if taken and taken[-1] != i else 0
            kept, now_read = 0, list(read)
            if drafts:
                while kept < drafts and scene.agreed[drafter][at + kept]:
                    kept += 1
                unread = at + 1 - read[drafter]
                widths = [unread] + [1] * (drafts - 1)
                spent += sum(scene.draft[0] + scene.draft[1] * width for width in widths)
                # The last draft is never read by the model that drafted it.
                now_read[drafter] = at + 1 + min(kept, drafts - 1)
            todo.append((at + kept + 1, tuple(now_read), seconds + spent, (*taken, i)))


def _cycle(scene: Scene, at: int, lags: tuple[int, ...], scheme: int) -> tuple[int, int, tuple[int, ...]]:
    """(seconds, place after it, lags after it) of a cycle.

    A lag is what a drafter has yet to read, its first forward's width: at least 1.
    """
    drafter, most = scene.schemes[scheme]
    drafts = min(most, scene.size - at - 1)
    run = 0
    while run < drafts and scene.agreed[drafter][at + run]:
        run += 1
    after = [lag + run + 1 for lag in lags]
    seconds = scene.target[0] + scene.target[1] * (drafts + 1)
    if drafts:
        seconds += scene.draft[0] * drafts + scene.draft[1] * (lags[drafter] + drafts - 1)
        after[drafter] = run + 1 - min(run, drafts - 1)
    return seconds, at + run + 1, tuple(after)


def dynamic_program(scene: Scene, lags_cost: bool = True, switch_seen: bool = True) -> int:
    """The least time, backward over (place, lag of each drafter, last scheme).

    Args:
        lags_cost: False charges every first draft as one token wide.
        switch_seen: False leaves the last scheme out of the state, and switches uncharged.
    """
    fresh = tuple(1 for _ in scene.agreed)
    best: dict[tuple[int, tuple[int, ...], int], int] = {}
    for at in range(scene.size, -1, -1):
        for lags in product(range(1, at + 2), repeat=len(scene.agreed)):
            for last in range(-1, len(scene.schemes)):
                ways = [] if at < scene.size else [0]
                for i in range(len(scene.schemes) if at < scene.size else 0):
                    seconds, end, after = _cycle(scene, at, lags, i)
                    if not lags_cost:
                        seconds = _cycle(scene, at, fresh, i)[0]
                    switch = scene.switch if switch_seen and last not in (-1, i) else 0
                    ways.append(seconds + switch + best[end, after, i])
                best[at, lags, last] = min(ways)
    return best[0, fresh, -1]


def cheapest_way_to_each_place(scene: Scene) -> int:
    """A program whose state is the place alone: it keeps the cheapest way there, with its caches."""
    held = {0: (0, tuple(1 for _ in scene.agreed), -1)}
    for at in range(scene.size):
        if at not in held:
            continue
        so_far, lags, last = held[at]
        for i in range(len(scene.schemes)):
            seconds, end, after = _cycle(scene, at, lags, i)
            total = so_far + seconds + (scene.switch if last not in (-1, i) else 0)
            if end not in held or total < held[end][0]:
                held[end] = (total, after, i)
    return held[scene.size][0]


def _program_is_exact(scene: Scene, program: Callable[[Scene], int] = dynamic_program) -> Outcome:
    said = program(scene)
    least, taken = min(all_schedules(scene))
    if said == least:
        return None
    word = "a schedule beats it" if said > least else "no schedule attains it"
    return against(
        f"{shown(scene)}",
        f"program: {said} seconds; the fastest of all schedules takes {least}, with schemes {shown(taken)}: "
        f"{word}",
    )


def _scenes(level: int) -> Iterator[Scene]:
    schemes = ((0, 0), (0, 1), (1, 2))
    for size in range(1, 4 + level // 2):
        for bits in product(product((1, 0), repeat=size), repeat=2):
            for draft, target, switch in (((0, 1), (4, 1), 1), ((1, 1), (6, 0), 2)):
                yield Scene(bits, schemes, draft, target, switch)


@st.composite
def _random_scenes(draw: st.DrawFn) -> Scene:
    size, small = draw(st.integers(1, 5)), st.integers(0, 4)
    bits = st.lists(st.sampled_from([1, 1, 0]), min_size=size, max_size=size).map(tuple)
    agreed = (draw(bits), draw(bits))
    more = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=2))
    target = (draw(st.integers(1, 9)), draw(small))
    return Scene(agreed, ((0, 0), *more), (draw(small), draw(small)), target, draw(small))


S10B_STATEMENT = Statement(
    words=(
        "No schedule is faster than the dynamic program whose state is the place, each drafter's lag and "
        "the last scheme; and one is as fast"
    ),
    formula="DP(0, lags = 1, none) = min over all schedules of sum T",
    rule=_program_is_exact,
    over=(
        "all agreements of two drafters on texts of up to 3 tokens, 3 schemes, 2 sets of costs, ALL "
        "schedules of each; random ones of up to 5 tokens"
    ),
    domain=_random_scenes(),
    every=_scenes,
    examples=60,
)
S10B = Claim(
    id="S10b",
    source="the bound of simspec.oracle for adaptive schedulers such as SpecRouter's (2505.07680)",
    statement=S10B_STATEMENT,
    expected="holds",
    because=(
        "A cycle's time and where it leaves text and caches depend on the past only through place, lags and "
        "last scheme, so the best continuation does too (Bellman). A scheduler that draws lots is a mixture "
        "of schedules and no faster than the fastest of them."
    ),
    broken=(
        S10B_STATEMENT.but(
            "... whose state is the place alone, keeping the cheapest way to each",
            partial(_program_is_exact, program=cheapest_way_to_each_place),
        ),
        S10B_STATEMENT.but(
            "... which takes every first draft for one token wide",
            partial(_program_is_exact, program=partial(dynamic_program, lags_cost=False)),
        ),
        S10B_STATEMENT.but(
            "... which does not know the last scheme",
            partial(_program_is_exact, program=partial(dynamic_program, switch_seen=False)),
        ),
    ),
)

# L17, L17b: kinds of cycles, drawn afresh


@dataclass(frozen=True)
class Kinds:
    """Kinds of cycles, equally likely unless weighted.

    Attributes:
        weights: how often each comes.
        accepted: p_1 .. p_D of each kind, each given that all before were accepted.
        seconds: T(0) .. T(D), one curve for all kinds or one for each.
    """

    weights: tuple[Fraction, ...]
    accepted: tuple[Conditional, ...]
    seconds: tuple[Curve, ...]

    @cached_property
    def tokens(self) -> list[list[Fraction]]:
        """Expected tokens, shape (kinds, D + 1)."""
        return [[1 + x for x in expected_accepted(p)] for p in self.accepted]

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        return self.seconds * (len(self.weights) if len(self.seconds) == 1 else 1)

    def rate(self, lengths: tuple[int, ...]) -> Fraction:
        """Long-run tokens per second if each kind gets its length."""
        tokens = [x[d] for x, d in zip(self.tokens, lengths, strict=True)]
        return renewal.rate(self.weights, tokens, [t[d] for t, d in zip(self.curves, lengths, strict=True)])

    @property
    def policies(self) -> Iterator[tuple[int, ...]]:
        """Every way of giving each kind a length."""
        return product(range(len(self.accepted[0]) + 1), repeat=len(self.weights))

    def best(self) -> tuple[Fraction, tuple[int, ...]]:
        """The greatest rate of all policies, by trying them all."""
        return max((self.rate(lengths), lengths) for lengths in self.policies)

    def best_static(self) -> tuple[Fraction, int]:
        lengths = range(len(self.accepted[0]) + 1)
        return max((self.rate((d,) * len(self.weights)), d) for d in lengths)


def _chosen(worth: list[list[Fraction]]) -> Iterator[tuple[int, ...]]:
    """Every policy that takes one of each kind's best lengths."""
    return product(*([d for d, w in enumerate(row) if w == max(row)] for row in worth))


def _own_ratio(case: Kinds) -> Outcome:
    ratios = [
        [x / t for x, t in zip(*row, strict=True)] for row in zip(case.tokens, case.curves, strict=True)
    ]
    # Where ratios tie, the rule may take the luckiest.
    found, lengths = max((case.rate(choice), choice) for choice in _chosen(ratios))
    best, policy = case.best()
    if found == best:
        return None
    rows = [
        f"kind {i + 1}: lengths 0.. make {shown(tuple(x))} tokens in {shown(t)}; best ratio at {d}, "
        f"{number(x[d] / t[d])} tokens a second"
        for i, (x, t, d) in enumerate(zip(case.tokens, case.curves, lengths, strict=True))
    ]
    return against(
        *rows,
        f"lengths {shown(lengths)}, each the best of its kind, make {number(found)} tokens a second in the "
        "long run",
        f"lengths {shown(policy)} make {number(best)}",
    )


def _priced(case: Kinds, at_static_rate: bool = False) -> Outcome:
    best, policy = case.best()
    price = case.best_static()[0] if at_static_rate else best
    worth = [
        [x - price * t for x, t in zip(*row, strict=True)]
        for row in zip(case.tokens, case.curves, strict=True)
    ]
    rates = {case.rate(choice) for choice in _chosen(worth)}
    if rates == {best} and renewal.best_rate(case.weights, case.tokens, case.curves) == best:
        return None
    return against(f"best {number(best)} at {shown(policy)}; priced at {number(price)}: {shown(rates)}")


def _unseen(case: Kinds, mean_of_ratios: bool = False) -> Outcome:
    """One length for all kinds, against every mixture of lengths over up to four cycles."""
    kinds = range(len(case.weights))
    lengths = range(len(case.accepted[0]) + 1)
    total = sum(case.weights)

    def mean(values: list[Fraction]) -> Fraction:
        return sum((w * v for w, v in zip(case.weights, values, strict=True)), Fraction(0)) / total

    tokens = [mean([case.tokens[i][d] for i in kinds]) for d in lengths]
    seconds = [mean([case.curves[i][d] for i in kinds]) for d in lengths]
    if mean_of_ratios:
        judged = [mean([case.tokens[i][d] / case.curves[i][d] for i in kinds]) for d in lengths]
    else:
        judged = [x / t for x, t in zip(tokens, seconds, strict=True)]
    chosen = judged.index(max(judged))
    best, mixture = max(
        (sum(tokens[d] for d in cycles) / sum(seconds[d] for d in cycles), cycles)
        for n in range(1, 5)
        for cycles in combinations_with_replacement(lengths, n)
    )
    if tokens[chosen] / seconds[chosen] == best:
        return None
    return against(
        f"mean tokens {shown(tuple(tokens))}, mean seconds {shown(tuple(seconds))}",
        f"chosen length {chosen}: {number(tokens[chosen] / seconds[chosen])} tokens a second",
        f"lengths {shown(mixture)} in turn: {number(best)}",
    )


def _kinds(level: int, curves: int = 1) -> Iterator[Kinds]:
    for depth in (1, 2):
        prices = [affine(Fraction(t), ONE, depth) for t in range(1, 4 + level)]
        for first, second in product(product(grid(5), repeat=depth), repeat=2):
            # Past a certain refusal nothing counts.
            if any(0 in p[:-1] for p in (first, second)) or (
                depth == 2 and level < 2 and first != (ONE, ONE)
            ):
                continue
            for seconds in product(prices, repeat=curves):
                yield Kinds((ONE, ONE), (first, second), seconds)


@st.composite
def _random_kinds(draw: st.DrawFn, own_costs: bool = False) -> Kinds:
    count, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    one = conditionals(longest=depth, shortest=depth)
    accepted = draw(st.lists(one, min_size=count, max_size=count))
    curves = count if own_costs else 1
    seconds = draw(st.lists(rising_costs(depth), min_size=curves, max_size=curves))
    return Kinds(tuple(map(Fraction, weights)), tuple(accepted), tuple(seconds))


def _rates_by_length(case: Kinds) -> Plot:
    lengths = range(len(case.accepted[0]) + 1)
    series = {
        f"kind {i + 1} alone": tuple(float(x[d] / t[d]) for d in lengths)
        for i, (x, t) in enumerate(zip(case.tokens, case.curves, strict=True))
    }
    series["best long-run rate"] = tuple(float(case.best()[0]) for _ in lengths)
    return Plot(
        "Tokens per second of a cycle by its length",
        "line",
        "drafts",
        "tokens per second",
        tuple(lengths),
        series,
    )


OVER_KINDS = (
    "two equally likely kinds, acceptance in fifths, up to 2 drafts, affine cost; random ones: up to 3 "
    "kinds, 3 drafts, any weights and rising costs; all policies of each"
)
L17_STATEMENT = Statement(
    words=(
        "Choosing in each cycle the length of best expected tokens per second in it maximises long-run "
        "tokens per second"
    ),
    formula="d_i = argmax_d X_i(d) / T(d) maximises sum w_i X_i(d_i) / sum w_i T(d_i)",
    rule=_own_ratio,
    over=OVER_KINDS,
    domain=_random_kinds(),
    every=_kinds,
    examples=100,
)
L17 = Claim(
    id="L17",
    source="the objective of LibraSpec (2608.08721) Eq. 2 and of its oracle, taken cycle by cycle",
    statement=L17_STATEMENT,
    expected="refuted",
    because=(
        "A second is worth what it would make elsewhere: the long-run rate. In a poor cycle the best own "
        "ratio is below that, so its drafts cost more than they bring; in a rich one above it, so it stops "
        "too early."
    ),
    pinned=Kinds((ONE, ONE), ((ONE,), (Fraction(2, 5),)), (affine(Fraction(3), ONE, 1),)),
    repaired=L17_STATEMENT.but(
        "Choosing in each cycle the length that maximises E[tokens] - lambda T, lambda the best long-run "
        "rate, does",
        _priced,
        formula="d_i = argmax_d X_i(d) - lambda T(d); Dinkelbach's iteration finds lambda",
    ),
    broken=(
        L17_STATEMENT.but(
            "... with lambda the best rate of one length for all", partial(_priced, at_static_rate=True)
        ),
    ),
    plot=_rates_by_length,
)
L17B_STATEMENT = Statement(
    words=(
        "Where cycles cannot be told apart, one length for all, of best mean tokens over mean time, is as "
        "fast as any mixture of lengths"
    ),
    formula="max_d E[X(d)] / E[T(d)] >= sum_c E[X(d_c)] / sum_c E[T(d_c)] for all d_1 .. d_n",
    rule=_unseen,
    over=f"{OVER_KINDS}, each with its own costs; mixtures over up to 4 cycles",
    domain=_random_kinds(own_costs=True),
    every=lambda level: _kinds(min(level, 1) - 1, curves=2),
    examples=60,
)
L17B = Claim(
    id="L17b",
    source="L17 for cycles that are i.i.d. and indistinguishable",
    statement=L17B_STATEMENT,
    expected="holds",
    because=(
        "A mixture's rate is a mediant of the single lengths' rates, so it lies between the least and the "
        "greatest."
    ),
    broken=(
        L17B_STATEMENT.but(
            "... of best mean of tokens over time, E[X/T]", partial(_unseen, mean_of_ratios=True)
        ),
    ),
)

# S47, S48, S49: what adapting can gain


@dataclass(frozen=True)
class Schemes:
    """Schemes of any sort (chains, lengths) in kinds of cycles.

    Attributes:
        weights: how often each kind comes.
        tokens: expected tokens, shape (kinds, schemes); the first scheme is plain decoding, 1 token.
        seconds: of a cycle, for each scheme; none is shorter than plain decoding's.
    """

    weights: tuple[Fraction, ...]
    tokens: tuple[tuple[Fraction, ...], ...]
    seconds: tuple[Fraction, ...]


def gain(case: Schemes) -> tuple[Fraction, Fraction]:
    """Speedups over plain decoding: of the best policy that sees the kind (all are tried), and of the
    best single scheme."""
    kinds, schemes = len(case.weights), range(len(case.seconds))
    made = [[w * x for x in row] for w, row in zip(case.weights, case.tokens, strict=True)]
    taken = [[w * t for t in case.seconds] for w in case.weights]

    def speedup(choice: tuple[int, ...]) -> Fraction:
        tokens = sum((made[i][k] for i, k in enumerate(choice)), Fraction(0))
        return case.seconds[0] * tokens / sum(taken[i][k] for i, k in enumerate(choice))

    adaptive = max(speedup(choice) for choice in product(schemes, repeat=kinds))
    return adaptive, max(speedup((k,) * kinds) for k in schemes)


def _of_lengths(case: Kinds) -> Schemes:
    return Schemes(case.weights, tuple(map(tuple, case.tokens)), case.seconds[0])


def _within(case: Schemes, bound: Fraction, squared: bool = False) -> Outcome:
    adaptive, static = gain(case)
    more = adaptive - static
    if (more**2 if squared else more) <= bound:
        return None
    name = "square of the bound" if squared else "bound"
    return against(
        f"{shown(case)}",
        f"adaptive {number(adaptive)}, best static {number(static)}: {number(more)} more; {name} "
        f"{number(bound)}",
    )


def _excess_bounds(case: Schemes, share: Fraction = ONE) -> Outcome:
    return _within(case, share * renewal.excess(case.weights, case.tokens))


def _spread_bounds(case: Kinds, share: Fraction = ONE) -> Outcome:
    survivals = [survival(p) for p in case.accepted]
    return _within(_of_lengths(case), share * renewal.spread(case.weights, survivals))


def _variance_bounds(case: Kinds, share: Fraction = ONE, places: int | None = None) -> Outcome:
    rates = [p[0] for p in case.accepted]
    if any(set(p) != {p[0]} for p in case.accepted):
        return UNMET
    depth = len(case.accepted[0]) if places is None else places
    bound = renewal.spread_squared_at_most(case.weights, rates, depth)
    return _within(_of_lengths(case), share**2 * bound, squared=True)


def _constant_kinds(level: int) -> Iterator[Kinds]:
    """Two kinds with one rate each; verification costs what the mean kind just repays, or a third of it."""
    for depth, weight in product((1, 2, 3)[: 2 + level // 2], (1, 3)):
        for low, high in product(grid(10)[: 6 + 3 * level], repeat=2):
            if low >= high:
                continue
            mean = (weight * low + high) / (weight + 1)
            for slope in (mean, mean / 3):
                weights = (Fraction(weight), ONE)
                yield Kinds(weights, ((low,) * depth, (high,) * depth), (affine(ONE, slope, depth),))


@st.composite
def _random_schemes(draw: st.DrawFn) -> Schemes:
    kinds, schemes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 8), min_size=kinds, max_size=kinds))
    plain = draw(st.integers(1, 20))
    more = st.builds(Fraction, st.integers(10, 60), st.just(10))
    tokens = tuple((ONE, *(draw(more) for _ in range(schemes))) for _ in range(kinds))
    seconds = (plain, *(plain + draw(st.integers(0, 40)) for _ in range(schemes)))
    return Schemes(tuple(map(Fraction, weights)), tokens, tuple(map(Fraction, seconds)))


@st.composite
def _random_constant(draw: st.DrawFn) -> Kinds:
    count, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    rates = draw(st.lists(chances(), min_size=count, max_size=count))
    return Kinds(
        tuple(map(Fraction, weights)), tuple((a,) * depth for a in rates), (draw(rising_costs(depth)),)
    )


TIGHT = Fraction(19, 20)
ADAPTIVE = "any adaptive scheme over a fixed candidate set, such as SpecRouter's (2505.07680); new here"
S47_STATEMENT = Statement(
    words=(
        "However a scheduler chooses among schemes, its speedup over plain decoding exceeds the best single "
        "scheme's by at most the mean, over kinds of cycles, of how many tokens a kind is ahead of the "
        "average where it is most"
    ),
    formula="speedup_adaptive - speedup_static <= sum_i w_i max_k (X_ik - mean X_k)",
    rule=_excess_bounds,
    over=(
        "two kinds with rates in tenths, up to 3 drafts, cost at and below break-even; random ones with up "
        "to 3 kinds and 3 schemes besides plain decoding; all policies of each"
    ),
    domain=_random_schemes(),
    every=lambda level: map(_of_lengths, _constant_kinds(level)),
    examples=100,
)
S47 = Claim(
    id="S47",
    source=ADAPTIVE,
    statement=S47_STATEMENT,
    expected="holds",
    because=(
        "Let the policy take k(i) in kind i, at rate R; r is the best static rate. Then sum w_i (X_ik(i) - "
        "r T_k(i)) = (R - r) E[T]. As r is the best, mean X_k <= r T_k for every k, so the left side is at "
        "most sum w_i (X_ik(i) - mean X_k(i)). E[T] >= T_0, the plain step; speedup is rate times T_0. A "
        "policy that uses more than the kind gains nothing: kinds are drawn afresh. A published 1.91x over "
        "static schemes at 1.31x and 1.20x thus needs kinds of cycles that are ahead of the average by .60 "
        "tokens on average."
    ),
    broken=(
        S47_STATEMENT.but(
            "... at most 19/20 of that: the bound is sharp where acceptance is low and verification just "
            "breaks even",
            partial(_excess_bounds, share=TIGHT),
        ),
    ),
)
S48_STATEMENT = Statement(
    words=(
        "However draft lengths are chosen, the speedup exceeds the best static length's by at most half the "
        "mean absolute deviation of survival over kinds of cycles, summed over the places of the block"
    ),
    formula="speedup_adaptive - speedup_static <= 1/2 sum_{j<=D} E|S_j - E S_j| <= 1/2 sum_{j<=D} sd(S_j)",
    rule=_spread_bounds,
    over=f"{S47_STATEMENT.over}, any rising cost",
    domain=_random_kinds(),
    every=_constant_kinds,
    examples=100,
)
S48 = Claim(
    id="S48",
    source=ADAPTIVE,
    statement=S48_STATEMENT,
    expected="holds",
    because=(
        "S47 with X_i(d) = 1 + S_i1 + .. + S_id: X_i(d) - mean X(d) is at most the sum of the positive "
        "parts of S_ij - mean S_j, and the mean positive part of a deviation is half its mean absolute "
        "value. Sharp: one place, probability h or 0 equally often, cost 1 + d h/2: 1/(1 + h/4) of the "
        "bound is reached, all of it as h -> 0."
    ),
    broken=(
        S48_STATEMENT.but("... by at most 19/20 of that", partial(_spread_bounds, share=TIGHT)),
        S48_STATEMENT.but(
            "... of that at the first place only",
            lambda case: _within(
                _of_lengths(case), renewal.spread(case.weights, [p[:1] for p in case.accepted])
            ),
        ),
    ),
)
S49_STATEMENT = Statement(
    words=(
        "Where each kind of cycle has one acceptance rate, at most r, choosing lengths gains at most half "
        "the standard deviation of the rate times 1 + 2r + 3r^2 + ... + D r^(D-1), which is below 1/(1-r)^2"
    ),
    formula="speedup_adaptive - speedup_static <= 1/2 sd(a) sum_{j<=D} j r^(j-1) < sd(a) / (2 (1 - r)^2)",
    rule=_variance_bounds,
    over=S48_STATEMENT.over,
    domain=_random_constant(),
    every=_constant_kinds,
    examples=100,
)
S49 = Claim(
    id="S49",
    source=ADAPTIVE,
    statement=S49_STATEMENT,
    expected="holds",
    because=(
        "S48 with S_j = a^j. On [0, r] a^j has slope at most j r^(j-1), so sd(a^j) <= j r^(j-1) sd(a): Var "
        "f(a) is half the mean of (f(a) - f(a'))^2 over independent a, a'. Compared as squares, in "
        "fractions."
    ),
    broken=(
        S49_STATEMENT.but("... by at most 19/20 of that", partial(_variance_bounds, share=TIGHT)),
        S49_STATEMENT.but("... of that at the first place only", partial(_variance_bounds, places=1)),
    ),
)

CLAIMS = (S10, S10B, L17, L17B, S47, S48, S49)
