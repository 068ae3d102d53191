"""What a linear layer of SmolLM2-135M costs in float32 and in both kinds of int8.

Layers take turns at every repetition, so that a slow stretch of the machine falls on all alike;
medians, in microseconds. Weights and activations are random: time does not depend on them.

    python calibrate/int8_cost.py --threads 2
"""

import argparse
import statistics
import time

import torch

from simspec.record.quantize import quantize_in_place, quantize_int8

LAYERS = ((576, 576), (576, 1536), (1536, 576), (576, 49152))
ROWS = (1, 4, 8, 32)
SECONDS = 1.5  # a layer and number of rows


def main(threads: int) -> None:
    torch.set_num_threads(threads)
    print(f"{threads} threads; microseconds, and the share of float32")
    for inputs, outputs in LAYERS:
        plain = torch.nn.Sequential(torch.nn.Linear(inputs, outputs, bias=False))
        by_token = torch.nn.Sequential(torch.nn.Linear(inputs, outputs, bias=False))
        quantize_in_place(by_token, "int8-per-token")
        layers = {"float32": plain, "int8-dynamic": quantize_int8(plain), "int8-per-token": by_token}
        for rows in ROWS:
            values = torch.randn(1, rows, inputs)
            times: dict[str, list[float]] = {name: [] for name in layers}
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end or len(times["float32"]) < 10:
                for name, layer in layers.items():
                    with torch.inference_mode():
                        begun = time.perf_counter()
                        layer(values)
                        times[name].append(time.perf_counter() - begun)
            median = {name: statistics.median(found) for name, found in times.items()}
            words = [f"{name} {t * 1e6:.0f} ({t / median['float32']:.2f})" for name, t in median.items()]
            print(f"{inputs} x {outputs}, {rows} rows: {', '.join(words)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    main(parser.parse_args().threads)
