"""Time: of steps, of their parts, and of requests in the system."""

from __future__ import annotations

from simspec.claims.serving.laws import PARTS, instants_are_in_order, time_is_accounted_for
from simspec.serving.clock import nanoseconds
from simspec.serving.config import Serving
from tests.invariants.life import Life


def causes_come_first(life: Life) -> list[str]:
    """Arrived <= admitted <= first token <= ended."""
    return instants_are_in_order(life.lived)


def littles_law_is_exact(life: Life) -> list[str]:
    """M6: requests in the system, summed over time, = their times in it, summed, to the nanosecond."""
    return time_is_accounted_for(life.lived)


def steps_are_numbered_as_they_end(life: Life) -> list[str]:
    """Each engine numbers its steps from 0, in the order of their ends."""
    return [
        f"step {place} of engine {number} is told as its {step['step']}"
        for number, steps in life.by_replica.items()
        for place, step in enumerate(steps)
        if step["step"] != place
    ]


def steps_take_time_and_do_not_overlap(life: Life) -> list[str]:
    """An engine does one step at a time, and every step takes some."""
    found = []
    for number, steps in life.by_replica.items():
        ends = [life.ends[step["row"]] for step in steps]
        found += [
            f"step {s['row']} takes no time"
            for s, e in zip(steps, ends, strict=True)
            if e <= s["started_at_ns"]
        ]
        found += [
            f"step {step['row']} of engine {number} begins at {step['started_at_ns']}, one ends at {end}"
            for step, end in zip(steps[1:], ends, strict=False)
            if step["started_at_ns"] < end
        ]
    return found


def parts_belong_to_what_is_done(life: Life) -> list[str]:
    """A step's duration is the sum of parts each of which something in it accounts for."""
    device = life.cluster.drafter_device
    link = 0 if device is None else 2 * nanoseconds(device.link_seconds)
    found = []
    for step in life.steps:
        serving = life.engine(step)
        rows, prompts, drafted = (
            step[n] for n in ("decoding_requests", "prefilling_requests", "drafted_tokens")
        )
        draft, middle, verify, prefill, swap, wait, overhead = (step[part] for part in PARTS)
        looks = serving.costs.lookup and step["draft_length_tokens"] > 0
        spec = serving.speculation
        looks = looks or bool(spec and rows and getattr(spec.policy, "weighs_confidence", False))
        block = nanoseconds(serving.memory.block_swap_seconds)
        wrong = {
            "nothing is done": not rows and not prompts,
            "verify": (verify > 0) != (rows > 0),
            "prefill": (prefill > 0 and not prompts) or (prefill == 0 and prompts > 0 and not rows),
            "draft": draft > 0 and (spec is None or not (drafted or prompts or looks or spec.others)),
            "middle": middle > 0 and not any(chain.middles for chain in serving.chains),
            "swap": swap > 0 and (serving.memory.preemption != "swap" or not block or swap % block > 0),
            "wait": (wait > 0 and (device is None or draft == 0)) or (0 < wait < link),
            "overhead": overhead != _overhead(serving, rows, drafted),
        }
        found += [f"step {step['row']}: {what} of {step}" for what, broken in wrong.items() if broken]
    return found


def _overhead(serving: Serving, rows: int, drafted: int) -> int:
    costs = serving.costs
    own = costs.overhead_seconds
    idle = serving.speculation is not None and rows > 0 and not drafted
    fixed = nanoseconds(costs.cost.step_overhead_seconds if own is None else own)
    return fixed + idle * nanoseconds(costs.idle_seconds)


def no_engine_is_idle_while_somebody_is_there(life: Life) -> list[str]:
    """M6b: between two steps, and before the first and after the last, nobody is in an engine that is up."""
    found = []
    for number, stays in life.stays.items():
        own = [out for out in life.outages if out["replica"] == number]
        busy = [(s["started_at_ns"], life.ends[s["row"]]) for s in life.by_replica[number]]
        busy += [(o["failed_at_ns"], o["back_at_ns"]) for o in own]
        busy += [(o["step_began_at_ns"], o["failed_at_ns"]) for o in own if o["step_began_at_ns"] is not None]
        busy.sort()
        # The step that the end cut off is in no table.
        if not any(r["outcome"] == "unfinished" and r["replica"] == number for r in life.requests):
            busy.append((life.ended_at, life.ended_at))
        idle_since = 0
        for begin, end in busy:
            found += [
                f"request {stay.request['request_id']} is in engine {number}, idle {idle_since} to {begin}"
                for stay in stays
                if max(stay.since, idle_since) < min(stay.until, begin)
            ]
            idle_since = max(idle_since, end)
    return found


def it_ends_with_the_last_request(life: Life) -> list[str]:
    """The end is when the last request ended; at the horizon who is there is cut off, no more."""
    until = life.case.until
    last = max((row["ended_at_ns"] for row in life.requests), default=0)
    found = [f"it ends at {life.ended_at}, its last request at {last}"] if life.ended_at != last else []
    if until is not None:
        late = [end for end in life.ends if end >= until]
        late += [row["arrived_at_ns"] for row in life.requests if row["arrived_at_ns"] >= until]
        late += [row["ended_at_ns"] for row in life.requests if row["ended_at_ns"] > until]
        found += [f"at {at} something happens, after the end at {until}" for at in late]
    cut = [row for row in life.requests if row["outcome"] == "unfinished"]
    return found + [f"request {row['request_id']} is cut off at another time" for row in cut if last != until]


LAWS = (
    causes_come_first,
    littles_law_is_exact,
    steps_are_numbered_as_they_end,
    steps_take_time_and_do_not_overlap,
    parts_belong_to_what_is_done,
    no_engine_is_idle_while_somebody_is_there,
    it_ends_with_the_last_request,
)
