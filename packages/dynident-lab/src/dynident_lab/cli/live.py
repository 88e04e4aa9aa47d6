"""The command live: identify a robot while it moves, until a goal is reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dynident.cli.consoles import note, out, print_json
from dynident.cli.groups import RARE
from dynident.cli.options import AS_WRITTEN, AsJson, OptionalFolder, Quiet, Robot, RobotOptions
from dynident.cli.published import published_limits
from dynident.cli.robots import find_robot, is_known
from dynident.errors import DynidentError, LinkError
from dynident.excitation import MotionLimits, Plan
from dynident.excitation.experiment import PAYLOAD, motion_limits
from dynident.mechanism import Mechanism
from dynident.signals import Log
from dynident_lab import link
from dynident_lab.campaigns.log import CampaignLog, read_campaign
from dynident_lab.cli.link import shared_key, watch_keys
from dynident_lab.link.campaign import check_confirmed
from dynident_lab.link.live_identification import live_logs, piece_folder
from dynident_lab.link.recorder import check_new

HEAD = f"{'piece':>5}  {'robot time':>10}  {'band of the worst joint':>24}"


def live(
    robot: Robot,
    /,
    *,
    address: Annotated[str | None, Parameter(name="--controller")] = None,
    output: OptionalFolder = None,
    until: list[str] | None = None,
    payload: float | None = None,
    payload_link: Annotated[str | None, Parameter(group=RARE)] = None,
    unloaded: list[Path] | None = None,
    limits: Path | None = None,
    floor: float | None = None,
    no_collision: Annotated[bool, Parameter(group=RARE)] = False,
    speed: float = 1.0,
    piece: float = 5.0,
    time_budget: Annotated[float, Parameter(group=RARE)] = 5.0,
    iterations: Annotated[int | None, Parameter(group=RARE)] = None,
    starts: Annotated[int, Parameter(group=RARE)] = 2,
    seed: Annotated[int, Parameter(group=RARE)] = 0,
    key_file: Annotated[Path | None, Parameter(group=RARE)] = None,
    yes: bool = False,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Identify a robot while it moves: short excitations, each designed for the most uncertain parameters.

    Example: dynident live ur5e --controller rtde://192.168.0.2 --until band=2% --yes -o bare/

    The robot stands still while a piece is designed and evaluated. On a terminal: q and Enter or Ctrl-C aborts and brings the
    robot to rest. What was recorded stays in the folder.

    Parameters
    ----------
    address
        simple_message://host:port, lynx://host:port or rtde://host.
    output
        New folder: fit.json, live.json, and one campaign per piece.
    until
        Goal: payload=1% (two standard deviations of the mass), band=2% (of predicted efforts) or time=60s. Several times: the
        first one reached ends it. band=2% and time=300s when absent.
    payload
        Largest mass that the mounted payload may have [kg]; torque limits hold with it.
    payload_link
        Link that carries the payload; the last one when absent.
    unloaded
        Recording without the payload: folder of an earlier live, or a campaign; may be given several times.
    limits
        limits.toml, or MoveIt's joint_limits.yaml; it completes the description's limits.
    floor
        Height below which no body goes [m], 0 for the robot's base.
    no_collision
        Do not keep the robot's bodies, as capsules, away from each other.
    speed
        Share of the velocity limits that is used, above 0 and up to 1; accelerations by its square. Begin with 0.1.
    piece
        Time of a piece [s].
    time_budget
        Time for the design of a piece [s].
    iterations
        Steps of every start of a design, instead of a time: the same motion on a busy machine.
    starts
        Random feasible motions from which a design starts.
    seed
        Seed of the starts.
    key_file
        File with the shared key of lynx.
    yes
        Confirm that a real robot may move.
    """
    if not 0.0 < speed <= 1.0:
        raise DynidentError(f"--speed is {speed:g}; give a share above 0 and up to 1")
    if address is None or output is None:
        raise DynidentError("give --controller, the address of the robot, and -o, a new folder")
    goal = link.Goal.parse(until or ("band=2%",))
    check_new(output)
    mechanism = described.robot(robot)
    bare = [log for path in unloaded or [] for log in _recordings(path)]
    loaded = mechanism
    if payload is not None:
        loaded = mechanism.with_payload(payload, body=payload_link, name=PAYLOAD, separate=True)
    allowed = _slower(_limits(str(robot), loaded, limits, floor, not no_collision), speed)
    pieces = _Pieces(address, output, shared_key(key_file), yes, quiet)
    pieces.check()

    def show(update: link.LiveUpdate) -> None:
        if quiet or as_json:
            return
        if update.number == 1:
            out.print(HEAD if payload is None else f"{HEAD}  {'payload':>30}")
        out.print(_line(update))

    watch_keys({"q": pieces.abort}, quiet)
    search: dict[str, Any] = {"starts": starts, "seed": seed}
    search |= {"time_budget": time_budget} if iterations is None else {"iterations": iterations}
    try:
        made = link.identify_live(
            mechanism,
            allowed,
            pieces.run,
            goal,
            unloaded=bare,
            payload=payload,
            body=payload_link,
            duration=piece,
            observe=show,
            **search,
        )
    except KeyboardInterrupt:
        raise link.AbortedError(f"aborted, robot at rest; recorded data are in {output}") from None
    files = made.write(output)
    if as_json:
        print_json({**made.numbers(), "files": [str(path) for path in files]})
    elif not quiet:
        end = f"goal {made.reached} reached" if made.reached != "time" else f"ended after {made.updates[-1].time:.1f} s"
        load = made.updates[-1].payload
        out.print("\n".join([end, *([] if load is None else [load.summary()]), f"written: {', '.join(map(str, files))}"]))
    return 0


class _Pieces:
    """Runs pieces on a controller, each as a separate campaign with its own connection."""

    def __init__(self, address: str, folder: Path, key: bytes, yes: bool, quiet: bool) -> None:
        self.address, self.folder, self.yes, self.quiet = address, folder, yes, quiet
        self._options: dict[str, Any] = {"key": key} if key else {}
        self._running: link.Campaign | None = None
        self._aborted = False

    def check(self) -> None:
        """Check the controller's identity before time is spent on a design."""
        wire = link.open_controller(self.address, **self._options)
        try:
            identity = wire.connect()
        finally:
            wire.close()
        check_confirmed(identity, self.yes)
        if not identity.effort_kind:
            raise LinkError(f"the controller at {self.address} reports no efforts; nothing can be identified from it")

    def run(self, number: int, plan: Plan) -> CampaignLog:
        """Run the plan of a piece."""
        folder, wire = piece_folder(self.folder, number), link.open_controller(self.address, **self._options)
        how: dict[str, Any] = {"yes": self.yes, "observe": self._observe}
        self._running = link.Campaign.create(folder, plan, link.Settings(), wire, self.address, **how)
        if self._aborted:  # while the piece was designed
            self._running.abort()
        self._running.run()
        return read_campaign(folder)

    def abort(self) -> None:
        """Bring the robot to rest and end."""
        self._aborted = True
        if self._running is not None:
            self._running.abort()

    def _observe(self, progress: link.Progress) -> None:
        if progress.text and not self.quiet:
            note(progress.text)


def _recordings(path: Path) -> list[Log]:
    """Return the logs of an earlier live identification or of a campaign."""
    return live_logs(path) if (path / "live.json").is_file() else list(read_campaign(path).cycles().values())


def _limits(robot: str, mechanism: Mechanism, file: Path | None, floor: float | None, collision: bool) -> MotionLimits:
    """Return the limits of the pieces: from a known robot's document, or from its description and a file."""
    if file is None and floor is None and is_known(robot) and find_robot(robot).published is not None:
        return published_limits(robot, mechanism).limits
    return motion_limits(mechanism, file, floor, collision)[1]


def _slower(limits: MotionLimits, share: float) -> MotionLimits:
    """Return limits at a share of the speeds: those of the motion slowed by 1/share."""
    velocity, acceleration, jerk = limits.velocity * share, limits.acceleration * share**2, limits.jerk * share**3
    return replace(limits, velocity=velocity, acceleration=acceleration, jerk=jerk)


def _line(update: link.LiveUpdate) -> str:
    """Return an update as a line of the table."""
    load, text = update.payload, f"{update.number:5d}  {update.time:8.1f} s  {100.0 * update.worst_band:22.2f} %"
    if load is None:
        return text
    return f"{text}  {load.mass:9.4f} +- {load.mass_std:.4f} kg ({100.0 * load.mass_std / abs(load.mass):.2f} %)"
