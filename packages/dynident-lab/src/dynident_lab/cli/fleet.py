"""The commands of fleets."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dynident.cli.consoles import note, out, print_json
from dynident.cli.groups import OPTIONS
from dynident.cli.options import NOT_OK, AsJson, Folder, Quiet, Strict, check_output
from dynident.cli.progress import shown
from dynident.errors import DynidentError
from dynident_lab.fleet import identify as identify_fleet
from dynident_lab.fleet.catalog import read_fleet
from dynident_lab.fleet.engine import connect
from dynident_lab.fleet.report import write_fleet_report
from dynident_lab.fleet.results import FleetResult

fleet = App(
    name="fleet",
    help="Many robots and logs: identify, report.\n\nExample: dynident fleet identify fleet.toml -o out/",
    group_parameters=OPTIONS,
)


@fleet.command
def identify(
    file: Path,
    /,
    *,
    output: Folder = Path("fleet_out"),
    scheduler: str | None = None,
    workers: int | None = None,
    memory: str = "auto",
    strict: Strict = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Identify all robots of a fleet; logs of earlier runs are not read again. Writes fleet.json, report.html, robots/.

    Example: dynident fleet identify fleet.toml -o out/ --scheduler tcp://host:8786

    Parameters
    ----------
    file
        fleet.toml with robots, logs and options.
    output
        Folder of factors and results; kept for later runs.
    scheduler
        Address of a Dask scheduler; local processes if none.
    workers
        Local processes; one per core if not given.
    memory
        Memory limit of each local process, as 2GB; an equal share if auto.
    """
    check_output(output, folder=True)
    plan = read_fleet(file)
    asked = dict(plan.questions)
    unknown = [key for key in asked if key not in ("false_alarms", "periods", "piece")]
    if unknown:
        raise DynidentError(f"fleet '{file}': [questions] has an unknown key '{unknown[0]}'; use false_alarms, periods, piece")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with connect(scheduler, workers, memory) as client, shown((*columns, TimeRemainingColumn()), quiet) as bar:
        if not quiet:
            note(f"Dask dashboard: {client.dashboard_link}")
        tasks: dict[str, object] = {}
        tenths: dict[str, int] = {}

        def progress(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=of)
            bar.update(tasks[what], completed=done, total=of)  # type: ignore[arg-type]
            if bar.disable and not quiet and 10 * done // of > tenths.get(what, -1):  # no terminal: one line per tenth
                tenths[what] = 10 * done // of
                note(f"{what}: {done} of {of}")

        try:
            result = identify_fleet(
                plan.robots,
                plan.entries,
                output,
                client=client,
                reading=plan.reading,
                progress=progress,
                **asked,
                **plan.options,
            )
        except KeyboardInterrupt:
            note(f"partial results are in '{output}'; repeat the command to continue")
            raise
    page = write_fleet_report(output, result)
    if as_json:
        told = {"robots": result.to_table(), "counters": dict(result.counters), "refused": len(result.refused)}
        smallest = {t.robot: dict(zip(t.parameters, t.detectable.tolist(), strict=False)) for t in result.types}
        print_json({**told, "detectable": smallest})
    elif not quiet:
        out.print(result.summary())
        out.print(f"\nwritten: {output / 'fleet.json'}, {page}, {output / 'robots'}")
    good = bool(result.robots) and (not strict or all(robot.verdict.ok for robot in result.robots))
    return 0 if good else NOT_OK


@fleet.command
def report(
    folder: Path,
    /,
) -> int:
    """Write the report of a fleet again, from its fleet.json.

    Example: dynident fleet report out/
    """
    out.print(f"written: {write_fleet_report(folder, FleetResult.load(folder / 'fleet.json'))}")
    return 0
