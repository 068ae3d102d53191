"""The command line: one file a verb. The only room that prints results or exits.

Exit codes: 0 fine, 1 a validation failed, 2 bad input.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError
from rich.console import Console

import simspec
from simspec.errors import SimspecError

app = App(
    name="simspec",
    help="The laboratory for speculative decoding.",
    version=simspec.__version__,
)

# Verbs are named, not imported: help needs neither pandas nor matplotlib.
app.command("simspec.cli.record:record")
app.command("simspec.cli.critic:critic")
app.command("simspec.cli.masks:masks")
app.command("simspec.cli.validate:validate")
app.command("simspec.cli.train:train")
app.command("simspec.cli.calibrate:calibrate")
app.command("simspec.cli.inspect:inspect")
app.command("simspec.cli.rank:rank")
app.command("simspec.cli.route:route")
app.command("simspec.cli.specrouter:specrouter")
app.command("simspec.cli.lengths:lengths")
app.command("simspec.cli.libraspec:libraspec")
app.command("simspec.cli.simulate:simulate")
app.command("simspec.cli.sweep:sweep")
app.command("simspec.cli.roofline:roofline")
app.command("simspec.cli.check:check")
app.command("simspec.cli.report:report")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; never returns, exits with the code above."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(words, exit_on_error=False, print_error=False)
    except SimspecError as error:
        print(f"simspec: {error}", file=sys.stderr)
        sys.exit(2)
    except CycloptsError as error:
        Console(stderr=True).print(f"simspec: {error}", highlight=False, markup=False)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        print("simspec: interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)
