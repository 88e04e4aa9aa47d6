"""Stage Identify: three choices, the error before and after per joint, and all runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from dynident.errors import DynidentError
from dynident.pages import percent
from dynident_lab.workbench.gates import (
    OUT,
    chosen_run,
    headline,
    identify_commands,
    identify_files,
    identify_status,
    verdict_of,
)
from dynident_lab.workbench.layout import (
    JobBox,
    banner,
    bound,
    button,
    card,
    choice,
    command,
    controls,
    entry,
    fold,
    frame,
    light,
    text,
)
from dynident_lab.workbench.project import Project

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page

ESTIMATORS = {
    "map": "data and description (map)",
    "wls": "data alone (weighted least squares)",
    "huber": "data alone, robust against outliers (huber)",
}
FRICTION = {
    "": "Coulomb and viscous, as described",
    "auto": "chosen by held-out blocks (auto)",
    "stribeck + viscous": "Stribeck and viscous",
    "tanh": "smooth Coulomb (tanh)",
}


def build(page: Page) -> None:
    """Draw the stage."""
    p = page.project
    next_run = _next(p)
    with ui.element("div").classes("wb-columns"):
        with card("Choices"):
            _choices(page)
            bound(page, lambda: _commands(p, next_run))
            with controls(page):
                button("Identify", lambda: page.attempt(lambda: identify(p)), main=True)
            JobBox(page, p.jobs.latest("identify"), "identifying")
        with card("Result"):
            bound(page, lambda: _result(page))
    with ui.element("div").style("margin-top:1.1rem"), card("Runs"):
        _runs(page)


def _commands(p: Project, run: str) -> None:
    for words in identify_commands(p, run):
        command(words)


def _next(p: Project) -> str:
    runs = [int(path.name) for path in (p.folder / "runs").glob("[0-9]*")] if (p.folder / "runs").exists() else []
    return f"runs/{max(runs, default=0) + 1}"


def identify(p: Project) -> None:
    """Start the commands of this stage."""
    if identify_commands(p, OUT)[-1][2].startswith("-"):
        raise DynidentError("no log is used for training; choose one in the stage Check")
    output = p.new_folder("runs")
    words = [word for each in identify_commands(p, OUT) for word in each]
    checksum = p.checksum(words, identify_files(p))
    p.jobs.start("identify", identify_commands(p, output), output=output, checksum=checksum)
    p.settings.run = output
    p.save()


def _choices(page: Page) -> None:
    """Show the three choices; further ones are collapsed."""
    p = page.project

    def choose(name: str, value: Any) -> None:
        if value != p.choice("identify", name, None):
            page.attempt(lambda: p.choose("identify", name, value or "", field=True))

    with controls(page):
        choice("1  Estimator", ESTIMATORS, p.choice("identify", "estimator", "map"), lambda value: choose("estimator", value))
        choice("2  Friction", FRICTION, p.choice("identify", "friction", ""), lambda value: choose("friction", value))
        entry(
            "3  Total mass of the moving bodies, if known [kg]",
            p.choice("identify", "total_mass", ""),
            lambda value: choose("total_mass", value),
            "such as 16 or 16+-0.5; enter weighed masses of single bodies in the stage Robot",
        )
        with fold(page, "More"):
            entry(
                "Share to hold out",
                p.choice("identify", "hold_out", ""),
                lambda value: choose("hold_out", value),
                "1/3 when empty; used if no log or window is held out",
            )
            entry(
                "Low-pass [Hz]",
                p.choice("identify", "cutoff", ""),
                lambda value: choose("cutoff", value),
                "automatic when empty",
            )
            entry(
                "Leave out standstill below",
                p.choice("identify", "standstill", ""),
                lambda value: choose("standstill", value),
                "share of the RMS speed, 0.1 is usual",
            )


def _result(page: Page) -> None:
    """Show the chosen run: error before and after per joint."""
    p = page.project
    run = chosen_run(p)
    verdict = verdict_of(p, run)
    status = identify_status(p)
    if verdict is None:
        text("Before and after per joint appear here.")
        return
    if status.state == "stale":
        with banner(f"{status.text}; identify again" + (" (waived)" if status.waived else ""), "mid"):
            if page.writes and not status.waived:
                button("Use it anyway", lambda: page.attempt(lambda: p.waive("identify", f"{run}:{status.checksum}")))
    text(f"{run}: {headline(verdict)}", "").style("font-weight:620")
    score = next((s for s in verdict["scores"] if not s["training"]), None)
    if score is None:
        text("No data were held out, so the error on unseen data is unknown.")
        return
    text(
        f"Relative error on held-out data ({score['log']}): description {percent(score['description_relative'], 1)}, "
        f"identified {percent(score['relative'], 2)}"
    )
    before, after = score.get("description_relative_per_joint"), score["relative_per_joint"]
    top = max([x for x in (*(before or []), *after) if x is not None], default=1.0) or 1.0
    with ui.element("div").classes("wb-bars"):
        for i, joint in enumerate(score["joints"]):
            text(joint, "").style("overflow-wrap:anywhere")
            with ui.element("div").classes("wb-pair"):
                for value, colour, word in (
                    (before[i] if before else None, "--orange", "before"),
                    (after[i], "--blue", "after"),
                ):
                    if value is None:
                        continue
                    with ui.element("div"):
                        width = 70.0 * min(float(value) / min(top, 1.5), 1.0)
                        ui.element("div").classes("wb-bar").style(f"width:{max(width, 0.4):.1f}%; background:var({colour})")
                        ui.label(f"{percent(value, 1)} {word}")


def _runs(page: Page) -> None:
    """Show all runs, including those from a shell, and compare two of them."""
    p = page.project
    runs = p.numbered("runs", "verdict.json")
    if not runs:
        text("No run yet. Runs written to runs/ from a shell also appear here.")
        return
    chosen = chosen_run(p)
    picked: set[str] = set(p.choice("identify", "compared", []))

    def use(run: str) -> None:
        p.settings.run = run
        page.attempt(p.save)

    def pick(run: str, on: bool) -> None:
        picked.add(run) if on else picked.discard(run)
        page.attempt(lambda: p.choose("identify", "compared", sorted(picked)))

    with controls(page), ui.element("div").classes("wb-table"), ui.element("table"):
        with ui.element("thead"), ui.element("tr"):
            for title in ("run", "held-out error", "of the description", "verdict", "estimator and friction", "compare", "use"):
                with ui.element("th").props("scope=col"):
                    ui.label(title)
        with ui.element("tbody"):
            for i, run in enumerate(reversed(runs), 1):
                verdict = verdict_of(p, run)
                if verdict is None:
                    continue
                score: dict[str, Any] = next((s for s in verdict["scores"] if not s["training"]), {})
                job = p.jobs.of_output(run)
                with ui.element("tr"):
                    with ui.element("th").props("scope=row"):
                        ui.label(run)
                    for key in ("relative", "description_relative"):
                        with ui.element("td"):
                            ui.label(percent(score.get(key), 2))
                    with ui.element("td"):
                        light(headline(verdict), "ok" if verdict.get("ok") else "bad")
                    with ui.element("td"):
                        ui.label("from a shell" if job is None else _options(job.facts["commands"][-1]))
                    with ui.element("td"):
                        box = ui.checkbox(value=run in picked, on_change=lambda event, run=run: pick(run, bool(event.value)))
                        box.props(f'dense aria-label="Compare run {len(runs) + 1 - i}"')
                    with ui.element("td"):
                        if run == chosen:
                            ui.label("in use")
                        else:
                            button("Use", lambda run=run: use(run), name=f"Use run {len(runs) + 1 - i}")
    pair = sorted(picked & set(runs), key=runs.index)
    if len(pair) == 2:
        words = [
            "report",
            *(f"{run}/fit.json" for run in pair),
            "-o",
            f"comparisons/{'_'.join(r.split('/')[1] for r in pair)}.html",
        ]
        command(words)
        with controls(page):
            button(
                "Compare",
                lambda: page.attempt(lambda: p.jobs.start("compare", [[*words, "--json"]], output=words[-1])),
                main=True,
            )
        JobBox(page, p.jobs.latest("compare"), "comparing")
        if (p.folder / words[-1]).exists():
            frame(words[-1], "Comparison of two runs")
    elif len(pair) > 2:
        text("Tick two runs to compare them.")


def _options(words: list[str]) -> str:
    """Return the choices of a run in a few words."""
    found = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("--estimator", "--friction", "--total-mass")]
    return ", ".join(found) or "map"
