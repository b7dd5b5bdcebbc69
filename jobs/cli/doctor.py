"""mrnlab doctor: what is wrong, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from core.errors import MRNLabError
from jobs.cli.app import JSON_OPTION, Chosen, app
from jobs.cli.output import print_json, tell
from jobs.doctor import Examination, Finding, Severity, examine

__all__ = ["doctor"]


@app.command()
def doctor(
    ctx: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Do what can be done without asking.")] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Check the installation, the store, the disk and the workers. Exit code 1 where something is wrong."""
    chosen: Chosen = ctx.obj
    with examine(chosen.url) as found:
        done = {finding: _applied(finding) for finding in found.findings} if fix else {}
    if json_:
        print_json(_document(found, done))
    else:
        _print_facts(found.facts)
        for finding in found.findings:
            _print_finding(finding, done.get(finding))
        if not found.findings:
            tell("All is well.")
    if any(
        one.severity is Severity.PROBLEM and not (done.get(one) or ("", False))[1] for one in found.findings
    ):
        raise typer.Exit(1)


_Done = tuple[str, bool] | None
"""What a fix says, and whether it was done; None where there is none."""


def _applied(finding: Finding) -> _Done:
    if finding.fix is None:
        return None
    try:
        return finding.fix.apply(), True
    except (MRNLabError, OSError) as error:
        return f"It could not be done: {error}", False


def _document(found: Examination, done: Mapping[Finding, _Done]) -> dict[str, Any]:
    findings = [
        {
            "about": one.about,
            "severity": one.severity.value,
            "message": one.message,
            "fix": one.fix and one.fix.what,
            "done": (done.get(one) or (None, False))[0],
        }
        for one in found.findings
    ]
    problems = [one.message for one in found.findings if one.severity is Severity.PROBLEM]
    return {**found.facts, "problems": problems, "findings": findings}


def _print_facts(facts: Mapping[str, Any]) -> None:
    for what, value in facts.items():
        told = value
        if isinstance(value, dict):
            told = ", ".join(f"{key} {one}" for key, one in value.items()) or "none"
        elif isinstance(value, list):
            told = "; ".join(map(str, value)) or "none"
        tell(f"{what.replace('_', ' '):>14}  {told}")


def _print_finding(finding: Finding, done: _Done) -> None:
    tell(f"\n{finding.severity.value:>14}  {finding.message}")
    if done is not None:
        tell(f"{'fix':>14}  {finding.fix.what if finding.fix else ''} {done[0]}")
    elif finding.fix is not None:
        tell(f"{'fix':>14}  {finding.fix.what} (mrnlab doctor --fix)")
