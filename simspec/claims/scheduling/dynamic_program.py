"""The dynamic program that bounds every schedule, against all of them (S10b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.plain import shown

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
        "schedules of each; random ones of up to 5 tokens and 3 schemes"
    ),
    domain=_random_scenes(),
    every=_scenes,
    examples=60,
)
S10B = Claim(
    id="S10b",
    source=(
        "what bounds adaptive schedulers such as SpecRouter's (2505.07680); the program stands here, and "
        "what is reported on traces is a relaxation of it (S10c)"
    ),
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

CLAIMS = (S10B,)
