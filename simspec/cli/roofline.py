"""``simspec roofline``: what data sheets say of a forward, and how far off that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simspec.cli.output import print_json, print_table

Table = tuple[list[str], list[list[object]]]


def roofline(
    reports: Path | None = None,
    *,
    measured: Path | None = None,
    architecture: str | None = None,
    device: str | None = None,
    json: bool = False,
) -> None:
    """Compare roofline predictions with published and with measured times of forwards.

    A roofline has the device's arithmetic and memory in it, and no framework, sampling or
    scheduling: a ratio far below 1 says that a published time is mostly such overhead. Efficiencies
    are assumptions, not fitted to any of these times. Memory that a model needs is not checked.

    With --json, keys: ``framework`` (that sentence), ``devices.<name>`` = {source, peaks,
    efficiencies, overheads}; ``single_token_ms.<device>.<architecture>`` (batch 1, context 1,024);
    ``published[]`` = {case {id, source, kind (time, or fit: a value of a published fit), device,
    architecture, dtype, rows, width, context, published_ms, assumed, weight_bytes}, predicted_ms,
    ratio (predicted over published)}; ``published_errors.<kind or all>`` = {median, p90, points};
    ``not_compared[]`` = {id, source, reason}; ``measured`` = {name, origin, where, affine[],
    roofline[] as in ``simspec calibrate``, preset {device, source, ``errors.<format>.<model>``}}, null
    without --measured; ``provenance``.

    Parameters
    ----------
    reports
        A CSV of public reports to compare with, beside the figures of papers that come with
        simspec: columns id, url, hardware, target, draft, batch_or_concurrency, k, t_draft_ms,
        t_target1_ms, t_verify_ms. Rows that cannot be read without guessing are counted by reason.
    measured
        The folder of a trace or of a latency profile to compare with.
    architecture
        The target's sizes, for a trace: a preset's name or a config.json.
    device
        The preset that --measured is compared with, besides the fits to it.
    json
        Print JSON.
    """
    import msgspec

    from simspec.compare.rooflines import measured_study, read_measured
    from simspec.cost import presets
    from simspec.cost.published import FRAMEWORK, compare, papers, published_errors
    from simspec.cost.reports import read_reports
    from simspec.errors import BadInput
    from simspec.provenance import provenance, sha256_file

    if measured is None and (architecture or device):
        raise BadInput("--architecture and --device", allowed="with --measured")
    if device is not None:
        presets.device(device)
    found = papers()
    inputs: dict[str, str] = {}
    command = ["roofline"]
    cases, not_compared = found.cases, found.not_compared
    if reports is not None:
        more = read_reports(reports)
        cases, not_compared = cases + more.cases, not_compared + more.not_compared
        inputs[reports.name] = sha256_file(reports)
        command.append(reports.as_posix())
    compared = compare(cases)
    errors = published_errors(compared)
    study = None
    if measured is not None:
        read = read_measured(measured, architecture)
        study = measured_study(read, device)
        inputs.update(read.inputs)
        command += ["--measured", measured.as_posix()]
        command += ["--architecture", architecture] if architecture else []
        command += ["--device", device] if device else []
    single = _single_token_ms()
    if json:
        print_json(
            {
                "framework": FRAMEWORK,
                "devices": msgspec.to_builtins(presets.devices()),
                "single_token_ms": single,
                "published": msgspec.to_builtins(compared),
                "published_errors": msgspec.to_builtins(errors),
                "not_compared": msgspec.to_builtins(not_compared),
                "measured": study,
                "provenance": provenance([*command, "--json"], inputs),
            }
        )
        return
    print(FRAMEWORK)
    _print_presets(single)
    print_table(
        "predicted beside published, ms",
        ["case", "device", "model", "rows x new @ context", "predicted", "published", "ratio"],
        [
            [
                c.case.id,
                c.case.device,
                c.case.architecture,
                f"{c.case.rows} x {c.case.width} @ {c.case.context}",
                f"{c.predicted_ms:.2f}",
                f"{c.case.published_ms:.2f}",
                f"{c.ratio:.2f}",
            ]
            for c in compared
        ],
    )
    kinds = {"time": "stated times", "fit": "values of a published fit", "all": "all of them"}
    print_table(
        "relative error of the prediction",
        ["kind", "cases", "median", "p90"],
        [
            [words, errors[k].points, f"{errors[k].median:.1%}", f"{errors[k].p90:.1%}"]
            for k, words in kinds.items()
            if k in errors
        ],
    )
    print_table(
        "published times that are not compared",
        ["reason", "times"],
        [[reason, n] for reason, n in Counter(n.reason for n in not_compared).most_common()],
    )
    if study is not None:
        _print_measured(study)


def affine_table(fits: Sequence[dict[str, Any]]) -> Table:
    """Header and rows of affine fits, as plain values."""
    header = [
        "model",
        "format",
        "ms a forward",
        "us a token",
        "us a cached token",
        "in sample",
        "left out",
    ]
    return header, [
        [
            f["model"],
            f["dtype"],
            f"{1e3 * f['base_seconds']:.3f}",
            f"{1e6 * f['token_seconds']:.2f}",
            f"{1e6 * f['context_token_seconds']:.3f}",
            _errors(f["in_sample"]),
            _errors(f["left_out"]),
        ]
        for f in fits
    ]


def remarks(fits: Sequence[dict[str, Any]]) -> str:
    """A line a fit: whether it is to be trusted."""
    return "\n".join(f"{f.get('model', 'roofline')} ({f['dtype']}): {f['remark']}" for f in fits)


def roofline_table(fits: Sequence[dict[str, Any]]) -> Table:
    """Header and rows of fitted rooflines, as plain values."""
    header = [
        "format",
        "GFLOP/s",
        "GB/s",
        "us a layer",
        "ms a forward",
        "cache passes",
        "in sample",
        "left out",
    ]
    return header, [
        [
            f["dtype"],
            f"{f['rates']['flops_per_second'] / 1e9:.1f}",
            f"{f['rates']['bytes_per_second'] / 1e9:.1f}",
            f"{1e6 * f['rates']['layer_overhead_seconds']:.1f}",
            f"{1e3 * f['rates']['forward_overhead_seconds']:.3f}",
            f"{f['rates']['cache_passes']:.1f}",
            _errors(f["in_sample"]),
            _errors(f["left_out"]),
        ]
        for f in fits
    ]


def _errors(errors: dict[str, float] | None) -> str:
    return "-" if errors is None else f"{errors['median']:.1%}, {errors['p90']:.1%}"


def _single_token_ms() -> dict[str, dict[str, float]]:
    import numpy as np

    from simspec.cost import presets
    from simspec.cost.architecture import FORMATS
    from simspec.cost.roofline import roofline_seconds
    from simspec.cost.shape import uniform

    shape = uniform(np.array([1]), np.array([1]), np.array([1024]))
    found: dict[str, dict[str, float]] = {}
    for name, device in presets.devices().items():
        dtype = next(d for d in ("bfloat16", "float16", "float32") if d in device.flops_per_second)
        found[name] = {
            called: 1000
            * float(roofline_seconds(device.rates(dtype), made, FORMATS[dtype], shape, packed=True)[0])
            for called, made in presets.architectures().items()
        }
    return found


def _print_presets(single: dict[str, dict[str, float]]) -> None:
    names = list(single)
    models = list(single[names[0]])
    print_table(
        "single-token forward, batch 1, context 1,024, ms (16-bit where the device has it)",
        ["device", *models],
        [[name, *(f"{single[name][m]:.2f}" for m in models)] for name in names],
    )


def _print_measured(study: dict[str, Any]) -> None:
    print(f"\n{study['name']}: {study['origin']} on {study['where']}; errors are median, p90")
    print_table("affine fits: relative errors", *affine_table(study["affine"]))
    print(remarks(study["affine"]))
    if study["roofline"]:
        print_table("roofline fits: relative errors", *roofline_table(study["roofline"]))
        print(remarks(study["roofline"]))
    else:
        print("no roofline: the models' sizes are not known; a trace needs --architecture")
    if study["preset"] is not None:
        rows = [
            [dtype, model, _errors(errors)]
            for dtype, models in study["preset"]["errors"].items()
            for model, errors in models.items()
        ]
        print(f"{study['preset']['device']}: {study['preset']['source']}")
        print("its relative errors, having seen none of these times:")
        print_table("", ["format", "model", "error"], rows)
