"""``simspec check``: the claims ledger."""

from __future__ import annotations

import sys
from pathlib import Path


def check(
    *claims: str,
    budget: str = "1m",
    seed: int = 0,
    jobs: int = 0,
    pinned: bool = True,
    trace: Path | None = None,
    decoded: Path | None = None,
    draws: int = 2000,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Decide every claim of the ledger, or the ones named; with --trace, the claims on recorded data.

    A verdict is ``holds`` (no counterexample among all cases that were enumerated and drawn),
    ``refuted`` (with the smallest counterexample) or ``vacuous`` (the claim's premise is never met, or it
    holds where the theory's suppositions fail just as well). Beside each refuted claim stands a repaired
    statement that the same kind of rule lets pass, beside each holding one broken variants that it must
    catch. Exit code 1 if a verdict is not the expected one, a repaired statement fails or a broken variant
    is not caught.

    With --json, keys: ``budget``, ``seed``, ``versions``, ``as_expected``, ``mutants`` = {total, caught},
    ``claims[]`` = {id, verdict, examples (random cases), exhaustive (whether all of a finite domain was
    enumerated), exact (fractions and whole numbers only), counterexample, seconds, cases (enumerated),
    unmet (premise not met), expected, as_expected, words, formula, source, over, because, working[],
    repaired{}, broken[], figure}.

    With --trace, verdicts are ``rejected``, ``not rejected`` (which is not "holds": see ``detectable``),
    ``not decidable here``, and ``holds`` or ``refuted`` for statements about the recorded numbers
    themselves. All tests are one family with one budget of false alarms (Holm). Exit code 0 whatever the
    verdicts. With --json, keys: ``trace``, ``origin``, ``prompts``, ``seed``, ``draws``, ``family`` = {tests,
    level, method, power, words}, ``summary[]`` and ``claims[]`` = {id, subject, verdict, words, null,
    statistic, value, interval, n (prompts), trials, p_value, p_adjusted, family, detectable, exact,
    seconds, source, because, note, numbers}.

    Parameters
    ----------
    claims
        Ids, such as S5b L4. Default: all.
    budget
        How much to try: seconds, minutes or hours, such as 5s, 1m, 1h. It sets the number of random cases
        and the sizes of what is enumerated; the same budget and seed try the same cases everywhere.
    seed
        Seed of the random cases.
    jobs
        Processes; 0 for one a core. The verdicts do not depend on it.
    pinned
        Try the counterexamples that are known first. Without, each is searched for and shrunk afresh.
    trace
        A trace's folder: decide the claims on its data instead of the ledger.
    decoded
        With --trace: a file that ``simspec validate`` wrote, whose real decoding at several batch sizes
        tells whether acceptance depends on the batch.
    draws
        With --trace: bootstrap draws of prompts.
    out
        A folder for a page (index.html, ledger.json, figures/), which a reader without the papers can
        follow. An earlier one is replaced; any other folder that is not empty is refused.
    json
        Print JSON.
    """
    from simspec.claims.ledger import check as decide_all
    from simspec.claims.ledger import chosen, document, effort_of
    from simspec.cli.checks import processes
    from simspec.cli.output import print_json, print_table
    from simspec.errors import BadInput
    from simspec.report.folder import LEDGER, check_free

    if trace is not None:
        from simspec.cli.check_data import check_data

        if claims:
            raise BadInput(f"claim {claims[0]!r} beside --trace", allowed="one or the other")
        check_data(trace, decoded, draws, seed, out, json)
        return
    if decoded is not None:
        raise BadInput("--decoded without --trace", hint="name the trace that was decoded")
    if out is not None:
        check_free(out, LEDGER)
    picked = chosen(claims)
    effort = effort_of(budget, seed)
    workers = min(processes(jobs), len(picked))
    entries = decide_all(picked, effort, workers, _say, pinned)
    found = document(entries, budget, seed)
    if out is not None:
        from simspec.report.claims import write_ledger

        command = ["simspec", "check", *claims, "--budget", budget, "--seed", str(seed), "--out", "DIR"]
        write_ledger(found, out, command if pinned else [*command, "--no-pinned"])
        _say(f"wrote {out / 'index.html'}")
    if json:
        print_json(found)
    else:
        print_table(
            f"the ledger (budget {budget}, seed {seed})",
            ["claim", "verdict", "enumerated", "random", "exact", "repaired", "broken caught", "s"],
            [
                [
                    e.claim.id,
                    e.found.verdict + ("" if not e.complaints else " (!)"),
                    f"all {e.found.cases}" if e.found.exhaustive else e.found.cases or "-",
                    e.found.examples or "-",
                    "yes" if e.claim.exact else "no",
                    e.repaired.verdict if e.repaired is not None else "-",
                    f"{sum(b.verdict == 'refuted' for b in e.broken)} of {len(e.broken)}"
                    if e.broken
                    else "-",
                    f"{e.seconds:.2f}",
                ]
                for e in entries
            ],
        )
        for e in entries:
            print(f"\n{e.claim.id} {e.found.verdict}: {e.claim.statement.words}.")
            for line in e.found.working:
                print(f"    {line}")
    failed = [e for e in entries if e.complaints]
    for e in failed:
        again = f"simspec check {e.claim.id} --budget {budget} --seed {seed}"
        print(f"simspec: {e.claim.id}: {'; '.join(e.complaints)} (again: {again})", file=sys.stderr)
    if failed:
        sys.exit(1)


def _say(what: str) -> None:
    print(f"check: {what}", file=sys.stderr, flush=True)
