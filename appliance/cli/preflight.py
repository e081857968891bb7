"""`appliance preflight`"""

import sys
from pathlib import Path

import click

from appliance.cli.options import state_option
from appliance.cli.recon_machine import host_option, models_option


@click.command()
@click.option(
    "--from",
    "from_files",
    metavar="FILE",
    multiple=True,
    help="Read a saved report (recon --json) or pasted text instead of looking; - is stdin. May be given again.",
)
@click.option("--plan", "plan_file", metavar="PLAN", type=click.Path(path_type=Path), help="The plan to check as well.")
@click.option("--model", metavar="REF", help="The model to look at.  [default: the plan's, if its folder is here]")
@host_option
@models_option
@click.option("--list", "listing", is_flag=True, help="List the rules.")
@click.option("--explain", metavar="RULE", help="Say what a rule looks for, why, and what to do.")
@click.option("--only", metavar="RULE", multiple=True, help="Check this rule only; may be given again.")
@click.option("--skip", metavar="RULE=REASON", multiple=True, help="Leave a rule out; the reason is recorded.")
@click.option("--probe", is_flag=True, help="Measure this machine as well: links, memory, disk, KV transfer, ports.")
@click.option("--only-probe", metavar="PROBE", multiple=True, help="Run this probe only; may be given again.")
@click.option(
    "--patience",
    metavar="FACTOR",
    type=click.FloatRange(min=0.1, max=100),
    default=1.0,
    show_default=True,
    help="Give each probe this many times its limit; for a busy machine.",
)
@click.option(
    "--against", type=click.Path(path_type=Path), help="An earlier run to compare with.  [default: the last one]"
)
@click.option("--format", "form", type=click.Choice(["table", "json", "sarif"]), default="table", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@state_option
def command(listing: bool, explain: str | None, as_json: bool, form: str, **wanted) -> None:
    """Check machine, engine, model and plan against what is known to go wrong.

    Looks at this machine, at one over ssh (--host) or at saved reports (--from). Exit code 1: something grave was
    found; 3: a probe could not complete; a rule whose facts are missing is "not checked", and never ok.
    """
    from appliance.cli import preflight_run, preflight_table
    from appliance.recon.children import end_all, ended_by_sigterm

    form = "json" if as_json else form
    if listing:
        preflight_table.show_list(form)
        return
    if explain:
        preflight_table.show_rule(explain, form)
        return
    with ended_by_sigterm():
        try:
            checked = preflight_run.run(preflight_run.Wanted(**wanted))
        except BaseException:
            end_all()
            raise
    preflight_table.show(checked.findings, checked.rules, checked.place, form)
    sys.exit(preflight_run.exit_code(checked.findings))
