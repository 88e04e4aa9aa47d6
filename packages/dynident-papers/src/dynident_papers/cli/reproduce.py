"""The command that computes published tables and figures again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dynident.cli.consoles import note, out, print_json
from dynident.cli.options import AsJson, OptionalFolder, check_output
from dynident.cli.progress import progress
from dynident.errors import DynidentError
from dynident.outputs import output_set
from dynident_lab.fleet import connect
from dynident_papers.reproduce import Reproduction, entry_of, write_page
from dynident_papers.reproduce import entries as all_entries
from dynident_papers.reproduce import names as all_names

PAGE = "reproduce.html"
LOST = "the connection to the scheduler was lost; run the missing reproductions again"


def reproduce(
    names: list[str] | None = None,
    /,
    *,
    listed: Annotated[bool, Parameter(name="--list")] = False,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    output: OptionalFolder = None,
    workers: int | None = None,
    scheduler: str | None = None,
    as_json: AsJson = False,
) -> int:
    """Compute published tables and figures again: ours, the published numbers, the difference and the reason.

    Example: dynident reproduce --all -o out/ (one alone: dynident reproduce cft-table-6)

    Parameters
    ----------
    names
        Reproductions to compute, such as cft-table-6; see --list.
    listed
        Show all names, and about how long each takes.
    everything
        Compute all of them.
    output
        Folder for one page with everything, and a JSON file of each.
    workers
        Number of local Dask processes.
    scheduler
        Compute them on the workers of this Dask scheduler.
    """
    if listed:
        return _list(as_json)
    wanted = list(all_names()) if everything else list(dict.fromkeys(names or []))
    if not wanted:
        raise DynidentError("nothing to reproduce: give a name, or --all; --list shows the names")
    if output is not None:
        check_output(output, folder=True)
    with ExitStack() as stack:
        client = None
        if workers is not None or scheduler is not None:
            client = stack.enter_context(connect(scheduler, workers))
        results, failed = _run(wanted, output, None if as_json else out.print, client)
    if as_json:
        print_json([found.to_dict() for found in results])
    elif output is not None:
        out.print(f"written: {output / PAGE}")
    return 1 if failed else 0


def _list(as_json: bool) -> int:
    """Print the available reproductions."""
    entries = all_entries()
    if as_json:
        print_json([{"name": e.name, "title": e.title, "source": e.source, "seconds": e.seconds} for e in entries])
    else:
        width = max(len(e.name) for e in entries)
        out.print("\n".join(f"{e.name:<{width}}  {e.seconds:4.0f} s  {e.title} ({e.source})" for e in entries))
    return 0


def _computed(name: str) -> Reproduction:
    """Compute one reproduction on a worker."""
    return entry_of(name).run()


def _why(error: Exception) -> str:
    """Return the reason of a failure."""
    if type(error).__name__ in ("FutureCancelledError", "CancelledError"):
        return LOST
    return str(error) if isinstance(error, DynidentError) else f"{type(error).__name__}: {error}"


def _run(
    wanted: list[str], output: Path | None, tell: Callable[[str], None] | None, client: Any
) -> tuple[list[Reproduction], dict[str, str]]:
    """Compute, print and write reproductions; a failure among several is reported and does not stop the others."""
    named = {name: entry_of(name) for name in wanted}
    for name, entry in named.items():
        if name != entry.name:
            note(f"{name} is made by {entry.name}")
    entries = list(dict.fromkeys(named.values()))
    results, failed = [], {}
    with progress(len(entries) + 1) as step:
        under_way = [None if client is None else client.submit(_computed, entry.name) for entry in entries]
        for entry, future in zip(entries, under_way, strict=True):
            step(f"{entry.name}, about {entry.seconds:.0f} s")
            try:
                results.append(entry.run() if future is None else future.result())
            except Exception as error:
                if len(entries) == 1:
                    raise
                failed[entry.name] = _why(error)
                if LOST not in list(failed.values())[:-1]:  # a lost scheduler ends all remaining entries: one note suffices
                    note(f"{entry.name} could not be made: {failed[entry.name]}")
                continue
            if tell is not None:
                tell(f"{results[-1].summary()}\n")
        if output is not None:
            step("drawing the page")
            mine = tuple(f"{name}.json" for name in all_names())  # a folder may hold JSON of other origin
            with output_set(output, (PAGE, *mine)) as folder:
                for found in results:
                    found.save(folder / f"{found.name}.json")
                write_page(folder / PAGE, results, failed)
    return results, failed
