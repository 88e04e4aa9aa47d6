"""State of every stage, and locking of stages whose inputs are missing, stale or bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynident.errors import DynidentError
from dynident.files import read_json
from dynident_lab.campaigns.log import is_campaign
from dynident_lab.workbench.jobs import Job
from dynident_lab.workbench.project import LogUse, Project, result_of

OUT = "OUT"  # replaces the folder of results in checksums
NOT_OK = 3  # exit code of a bad result


@dataclass(frozen=True)
class Status:
    """State of a stage.

    Parameters
    ----------
    state : str
        empty, running, ok, bad, stale, failed.
    text : str
        State in a few words.
    checksum : str
        Hash of the inputs of the result; a waiver refers to it.
    waived : bool
        Whether a stale or bad result was explicitly accepted.
    """

    state: str
    text: str = ""
    checksum: str = ""
    waived: bool = False

    @property
    def opens(self) -> bool:
        """Whether later stages may use the result."""
        return self.state == "ok" or self.waived


# ---------------------------------------------------------------------- commands
def describe_words(p: Project) -> list[str]:
    """Return the command of the stage Robot."""
    return ["describe", *p.robot_words(), "--json"]


def excite_words(p: Project, output: str) -> list[str]:
    """Return the command of the stage Excite."""
    words = ["excite", *p.robot_words()]
    words += ["--limits", p.settings.limits] if p.settings.limits else []
    words += ["--speed", f"{float(p.choice('excite', 'speed', 50)) / 100:g}"]
    floor = p.choice("excite", "floor", None)
    words += [] if floor is None else [f"--floor={floor:g}"]
    words += ["--frequency", f"{1.0 / float(p.choice('excite', 'duration', 10.0)):.6g}"]
    steps = p.choice("excite", "iterations", None)
    words += ["--iterations", str(int(steps))] if steps else ["--time-budget", f"{p.choice('excite', 'budget', 20.0):g}"]
    words += ["--starts", str(int(starts))] if (starts := p.choice("excite", "starts", None)) else []
    return [*words, "-o", output, "--json"]


def inspect_words(p: Project, log: str) -> list[str]:
    """Return the command of the stage Check for one log."""
    s = p.settings
    robot = ["--robot", s.robot, *(["--sidecar", s.sidecar] if s.sidecar else [])]
    return ["inspect", log, *robot, *reading(p, log), "--json"]


def reading(p: Project, log: str) -> list[str]:
    """Return the options for reading a log; a campaign needs none."""
    return [] if is_campaign(p.folder / log) else p.log_words()


def used_logs(p: Project) -> list[LogUse]:
    """Return the logs in use."""
    return [log for log in p.settings.logs if log.use != "unused" and (p.folder / log.path).exists()]


def identify_commands(p: Project, output: str) -> list[list[str]]:
    """Return the commands of the stage Identify: parts of logs are written first, then fitted."""
    parts: list[list[str]] = []
    training: list[str] = []
    validation: list[str] = []
    logs = used_logs(p)
    cut = any(log.training or log.validation for log in logs)
    for i, log in enumerate(logs, 1):
        windows = {"training": log.training, "validation": log.validation} if cut else {}
        whole = log.use if cut and not (log.training or log.validation) else None
        for use, window in windows.items():
            if window is None and use != whole:
                continue
            target = f"{output}/data/{use}_{i}.csv"
            ends = [] if window is None else [f"--start={window[0]:.6g}", f"--end={window[1]:.6g}"]
            parts.append(["convert", log.path, target, *reading(p, log.path), *ends, "--json"])
            (training if use == "training" else validation).append(target)
        if not cut:
            (training if log.use == "training" else validation).append(log.path)
    words = ["identify", *p.robot_words()[:1], *training, *p.robot_words()[1:]]
    for path in validation:
        words += ["--validate", path]
    # Parts are in SI units and describe their signals; so do campaigns.
    words += [] if cut or any(is_campaign(p.folder / log.path) for log in logs) else p.log_words()
    estimator, friction = p.choice("identify", "estimator", "map"), p.choice("identify", "friction", "")
    words += ["--estimator", estimator] if estimator != "map" else []
    words += ["--friction", friction] if friction else []
    total = p.choice("identify", "total_mass", "")
    words += ["--total-mass", total] if total and estimator == "map" else []
    for name in ("hold_out", "cutoff", "standstill"):
        value = p.choice("identify", name, "")
        words += [f"--{name.replace('_', '-')}", str(value)] if value else []
    return [*parts, [*words, "-o", output, "--json"]]


def identify_files(p: Project) -> list[str]:
    """Return the input files of the stage Identify."""
    return [*p.robot_files(), *(log.path for log in used_logs(p))]


# ---------------------------------------------------------------------- states
def robot_status(p: Project) -> Status:
    """Return the state of the stage Robot."""
    if not p.settings.robot:
        return Status("empty", "no robot yet")
    checksum = p.checksum(describe_words(p), p.robot_files())
    job = p.jobs.latest("robot")
    if job is not None and job.running:
        return Status("running", "reading the robot")
    if job is None or job.facts["checksum"] != checksum:
        return Status("stale", "the description has changed; read it again", checksum)
    data = result_of(job)
    if data is None:
        return Status("failed", problem(job), checksum)
    freedom = "degree" if data["dof"] == 1 else "degrees"
    return Status("ok", f"{data['name']}: {data['dof']} {freedom} of freedom", checksum)


def excite_status(p: Project) -> Status:
    """Return the state of the stage Excite, whose result is the chosen plan."""
    job = p.jobs.latest("excite")
    if job is not None and job.running:
        return Status("running", "searching for a motion")
    plan = p.settings.plan
    if not plan or not (p.folder / plan / "plan.json").exists():
        if job is not None and job.state == "failed":
            return Status("failed", problem(job))
        return Status("empty", "no plan yet")
    files = [*p.robot_files(), *filter(None, [p.settings.limits])]
    checksum = p.checksum(excite_words(p, OUT), files)
    if not p.fresh(plan, checksum, files):
        return Status("stale", f"{plan} was made for other inputs", checksum, p.waived("excite", checksum))
    return Status("ok", plan, checksum)


def record_status(p: Project) -> Status:
    """Return the state of the stage Record: logs that can be checked."""
    job = p.jobs.latest("record")
    if job is not None and job.running:
        return Status("running", "recording")
    logs = {*p.logs(), *(log.path for log in used_logs(p))}
    if not logs:
        return Status("failed", problem(job)) if job is not None and job.state == "failed" else Status("empty", "no log yet")
    return Status("ok", f"{len(logs)} {'log' if len(logs) == 1 else 'logs'}")


def check_digest(p: Project) -> str:
    """Return the hash of the inputs of the stage Check."""
    words = [word for log in used_logs(p) for word in inspect_words(p, log.path)]
    return p.checksum(words, [*p.robot_files(), *(log.path for log in used_logs(p))])


def check_status(p: Project) -> Status:
    """Return the state of the stage Check."""
    job = p.jobs.latest("check")
    if job is not None and job.running:
        return Status("running", "looking for faults")
    if not used_logs(p):
        return Status("empty", "no log chosen")
    if job is None:
        return Status("empty", "not checked yet")
    checksum = check_digest(p)
    if job.facts["checksum"] != checksum:
        return Status("stale", "robot, logs or their reading have changed; check again", checksum, p.waived("check", checksum))
    if job.state != "ok":
        return Status("failed", problem(job), checksum)
    found = [job.result(i) for i in range(len(job.facts["commands"]))]
    if any(not each["usable"] for each in found if each):
        return Status("bad", "a fit of these logs would be worthless", checksum, p.waived("check", checksum))
    count = sum(len(each["findings"]) for each in found if each)
    return Status("ok", f"{count} {'finding' if count == 1 else 'findings'}" if count else "no fault found", checksum)


def identify_status(p: Project) -> Status:
    """Return the state of the stage Identify, whose result is the chosen run."""
    job = p.jobs.latest("identify")
    if job is not None and job.running:
        return Status("running", "identifying")
    run = chosen_run(p)
    if not run:
        if job is not None and job.state == "failed":
            return Status("failed", problem(job))
        return Status("empty", "no run yet")
    if not used_logs(p):
        return Status("ok", run)
    words = [word for command in identify_commands(p, OUT) for word in command]
    checksum = p.checksum(words, identify_files(p))
    if not p.fresh(run, checksum, identify_files(p)):
        return Status("stale", f"{run} belongs to other inputs or choices", checksum, p.waived("identify", f"{run}:{checksum}"))
    return Status("ok", run, checksum)


def validate_status(p: Project) -> Status:
    """Return the state of the stage Validate: the verdict of the chosen run."""
    verdict = verdict_of(p, chosen_run(p))
    if verdict is None:
        return Status("empty", "no verdict yet")
    return Status("ok" if verdict.get("ok") else "bad", headline(verdict))


STATUS = {
    "robot": robot_status,
    "excite": excite_status,
    "record": record_status,
    "check": check_status,
    "identify": identify_status,
    "validate": validate_status,
}


def chosen_run(p: Project) -> str:
    """Return the run to show: the chosen one, otherwise the newest."""
    runs = p.numbered("runs", "verdict.json")
    return p.settings.run if p.settings.run in runs else runs[-1] if runs else ""


def verdict_of(p: Project, run: str) -> dict[str, Any] | None:
    """Return verdict.json of a run."""
    try:
        found = read_json(p.folder / run / "verdict.json", "a verdict") if run else None
    except (DynidentError, OSError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("checks"), list) else None


def headline(verdict: dict[str, Any]) -> str:
    """Return a verdict in a few words."""
    failed = [check["name"].replace("_", " ") for check in verdict["checks"] if not check["ok"]]
    if verdict.get("ok"):
        return f"validated ({len(verdict['checks'])} checks passed)"
    return f"not validated: {', '.join(failed)}" if failed else "not validated: no held-out data"


def lock_reason(p: Project, stage: str) -> str:
    """Return why a stage is locked; an empty string for an open one."""
    needs = {
        "excite": ("robot",),
        "record": ("robot",),
        "check": ("robot",),
        "identify": ("robot", "check"),
        "validate": ("identify",),
    }
    for name in needs.get(stage, ()):
        status = STATUS[name](p)
        if not status.opens:
            return f"{NAMES[name]}: {status.text}"
    return ""


NAMES = {
    "robot": "Robot",
    "excite": "Excite",
    "record": "Record",
    "check": "Check",
    "identify": "Identify",
    "validate": "Validate and export",
}


def problem(job: Job) -> str:
    """Return the error message of a failed job."""
    if job.state == "lost":
        return "the job's process ended; run it again"
    if job.state == "cancelled":
        return "cancelled" if job.stage != "record" else f"stopped; continue with dynident record --resume {job.output}"
    said = [line for line in job.messages() if not line.startswith("note: ")]
    return said[-1].removeprefix("error: ") if said else "the command failed without a message"
