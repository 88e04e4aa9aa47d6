"""Commands of the link: a virtual robot as a controller, and campaigns on a controller."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.live import Live
from rich.table import Table

import dynident as di
from dynident.cli.consoles import note, notes, out, print_json, print_next
from dynident.cli.groups import RARE
from dynident.cli.machines import DrivesFile
from dynident.cli.options import AS_WRITTEN, AsJson, OptionalFolder, Quiet, RobotOptions, check_output
from dynident.cli.progress import for_programs, print_progress
from dynident.cli.robots import find_robot, is_known, known_robots
from dynident.cli.simulate import NO_LOAD, LoadOptions
from dynident.cli.words import OTHER_NAMES
from dynident.errors import DynidentError, LinkError
from dynident.excitation import Plan
from dynident.excitation.experiment import motion_limits
from dynident.files import BYTES, read_json, read_regular, to_json, write_atomic
from dynident.results import stored
from dynident.signals.writers import check_log_file
from dynident_lab import link
from dynident_lab.cli.machines import Machine, any_machine
from dynident_lab.link.schedule import clock_text, seconds

if TYPE_CHECKING:
    from dynident.arrays import Array
    from dynident.mechanism import Mechanism
    from dynident_lab.link.campaign import Campaign
    from dynident_lab.link.controller import Identity
    from dynident_lab.link.follower import Progress

OTHER_NAMES.update(key="key-file", peers="peer")
MOST_SHOWN = 8  # largest number of channels in the live view
LAW, BANDWIDTH = "computed_torque", 10.0  # for a robot without a controller [-, Hz]
LIVE_MEMORY = 60.0  # memory of the recursive fit [s]
LONGEST = 1e8  # limit of times in options: three years [s]


def shared_key(path: Path | None) -> bytes:
    """Return the key of a file; empty without one."""
    if path is None:
        return b""
    try:
        key = read_regular(path, BYTES).strip()
    except OSError as error:
        raise LinkError(f"--key-file '{path}' cannot be read ({error.strerror}); give a file with the shared key") from error
    if len(key) < 16:
        raise LinkError(f"--key-file '{path}' has {len(key)} bytes; a key has at least 16")
    return key


def _accelerations(robot: str, mechanism: Mechanism, file: Path | None) -> Array | None:
    """Return the largest accelerations of a file or of a known machine; None if unknown."""
    if file is not None:
        return motion_limits(mechanism, file)[1].acceleration
    make = find_robot(robot).published if is_known(robot) else None
    try:
        return None if make is None else make(mechanism).limits.acceleration
    except DynidentError:  # its document gives none
        return None


def controller(
    robot: Machine,
    /,
    *,
    protocol: Annotated[str, Parameter(choices=("simple_message", "lynx", "rtde"))] = "simple_message",
    transport: Annotated[str, Parameter(choices=("tcp", "udp"))] = "tcp",
    motion_port: int | None = None,
    state_port: int | None = None,
    speed: float = 1.0,
    rate: float | None = None,
    seed: int = 0,
    buffer: Annotated[int, Parameter(group=RARE)] = 100,
    feedback: Annotated[float, Parameter(group=RARE)] = 0.05,
    full: Annotated[bool, Parameter(name="--full-feedback", group=RARE)] = False,
    order: Annotated[str, Parameter(choices=("little", "big"), group=RARE)] = "little",
    real_time: Annotated[bool, Parameter(group=RARE)] = False,
    following: Annotated[float, Parameter(group=RARE)] = 0.1,
    host: str = "127.0.0.1",
    peer: list[str] | None = None,
    key_file: Path | None = None,
    drives: DrivesFile = None,
    limits: Path | None = None,
    load: LoadOptions = NO_LOAD,
    described: RobotOptions = AS_WRITTEN,
    duration: float | None = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Serve a virtual robot as a controller: motion task, feedback, limits, alarms and a persistent thermal state.

    Example: dynident controller er3a_c60 --protocol simple_message --transport tcp --speed 10

    On a terminal: e and Enter presses the emergency stop, r and Enter releases it and resets alarms.

    Parameters
    ----------
    protocol
        Language of the controller.
    transport
        Udp begins with a handshake of one byte.
    motion_port
        Port for motions, 11000 when absent; of lynx its only port, 12000; of rtde 30004. 0: any that is free.
    state_port
        Port of the feedback of simple_message, 11002 when absent; of rtde that of programs, 30002.
    speed
        Seconds of the robot per second.
    rate
        Samples per second [Hz]; 250 when absent, of rtde 500 (e-Series) or 125 (CB3).
    seed
        Seed of all noise.
    buffer
        Points that the buffer holds.
    feedback
        Time between two feedback topics [s].
    full
        Send JOINT_FEEDBACK instead of JOINT_POSITION.
    order
        Byte order.
    real_time
        Simulate in a process of its own, and run before others where allowed.
    following
        Largest distance between setpoint and robot [rad, m].
    host
        Address to listen on.
    peer
        Address that may connect (repeat for more); needed on a network, except by lynx.
    key_file
        File with the shared key of lynx; needed on a network.
    limits
        limits.toml with the largest accelerations; those of its document when absent for a known machine, otherwise none.
    duration
        Serve for so long [s]; until interrupted when absent.
    """
    rate = rate if rate is not None else 500.0 if protocol == "rtde" else 250.0
    if not 0.0 < rate <= 10_000.0 or buffer < 2:
        raise DynidentError(f"--rate is {rate:g} and --buffer {buffer}; give a rate above zero and at least 2 points")
    for name, value, least in (("--feedback", feedback, 1e-3), ("--duration", duration, 0.0)):
        if value is not None and not least <= value <= LONGEST:
            raise DynidentError(f"{name} is {value:g}; give {least:g} to {LONGEST:g} s")
    key = shared_key(key_file)
    machine = load.on(any_machine(robot, LAW, BANDWIDTH, described, drives))
    try:
        link.prepare_timing(real_time)
    except LinkError as error:  # a separate process helps even without that right
        note(str(error))
    core = link.Emulator(
        machine,
        period=1.0 / rate,
        speed=speed,
        seed=seed,
        capacity=buffer,
        following=following,
        acceleration=_accelerations(robot, machine.mechanism, limits),
        real_time=real_time,
    )
    server: Any
    if protocol == "lynx":
        server = link.LynxServer(core, host, 12000 if motion_port is None else motion_port, key)
        ports = {"port": server.port}
        address = f"lynx://{host}:{server.port}"
    elif protocol == "rtde":
        chosen = (default if given is None else given for given, default in ((motion_port, 30004), (state_port, 30002)))
        server = link.RtdeServer(core, host, *chosen, peers=peer or ())
        ports = {"port": server.port, "script_port": server.script_port}
        address = f"rtde://{host}:{server.port}?script={server.script_port}"
    else:
        named: dict[str, Any] = {"order": order, "feedback": feedback, "full": full, "peers": tuple(peer or ())}
        chosen = (default if given is None else given for given, default in ((motion_port, 11000), (state_port, 11002)))
        server = link.SimpleServer(core, transport, host, *chosen, **named)
        ports = {"motion_port": server.motion_port, "state_port": server.state_port}
        address = f"simple_message://{host}:{server.motion_port}?state={server.state_port}"
        address += "&transport=udp" if transport == "udp" else ""
        address += "&order=big" if order == "big" else ""
        if not quiet:
            who = f"anyone at {' or '.join(peer)}" if peer else "any program on this computer"
            note(f"simple_message has no authentication: {who} can move the robot")
    ended = threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server.start()

    def release() -> None:
        core.emergency_stop(False)
        core.reset()

    watch_keys({"e": core.emergency_stop, "r": release}, quiet)
    try:
        if as_json:
            print_json({"robot": machine.mechanism.name, "address": address, **ports})
            sys.stdout.flush()
        elif not quiet:
            out.print(
                f"{machine.name or machine.mechanism.name} serves at {address} ({speed:g} s per second); stop with Ctrl-C"
            )
        _serve(core, ended, duration, quiet)
    finally:
        server.close()
        for reason, count in server.ignored.items():
            if not quiet:
                note(f"{reason}: {count}")
    return 0


def _serve(core: Any, ended: threading.Event, duration: float | None, quiet: bool) -> None:
    """Wait until interrupted, and report alarms."""
    end = time.monotonic() + (duration if duration is not None else float("inf"))
    told: Any = None
    try:
        while not ended.wait(0.2) and time.monotonic() < end:
            last = core.alarms[-1] if core.alarms else None
            if last is not told and last is not None and not quiet:
                note(f"alarm {last.code}: {last.text}")
            told = last
    except KeyboardInterrupt:
        if not quiet:
            note("stopped; the robot is at rest")


def record(
    plan: Path | None = None,
    /,
    *,
    address: Annotated[str | None, Parameter(name="--controller")] = None,
    output: OptionalFolder = None,
    resume: Path | None = None,
    tell: Annotated[str | None, Parameter(choices=("pause", "continue", "abort"))] = None,
    repetitions: int | None = None,
    rest: str | None = None,
    start_below: float | None = None,
    start_rest: str | None = None,
    duty: float | None = None,
    cycles: int | None = None,
    speed: float | None = None,
    tolerance: float | None = None,
    model: Path | None = None,
    described: RobotOptions = AS_WRITTEN,
    monitor: Path | None = None,
    healthy: list[Path] | None = None,
    live_fit: Path | None = None,
    mcap: Path | None = None,
    key_file: Path | None = None,
    dry_run: bool = False,
    yes: bool = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a plan on a controller and record it; a crash loses nothing, and --resume continues.

    Example: dynident record plan/ --controller simple_message://127.0.0.1:11000 -o campaign/

    On a terminal: p and Enter pauses, c and Enter continues, q and Enter or Ctrl-C aborts; each brings the robot to rest.

    Parameters
    ----------
    plan
        Folder or plan.json of excite.
    address
        simple_message://host:port, lynx://host:port or rtde://host.
    output
        New folder for the campaign.
    resume
        Go on with the campaign of this folder.
    tell
        Command for the campaign in the folder of -o.
    repetitions
        How often the whole plan is run.
    rest
        Rest between repetitions, as 8h.
    start_below
        Start only below this temperature [degC].
    start_rest
        Start only this long after the last motion, as 8h.
    duty
        Share of time in motion, 0 to 1.
    cycles
        Cycles per repetition instead of the plan's.
    speed
        Run the same plan at a share of its speed, as 0.1 for a first run.
    tolerance
        Residual over the largest predicted effort that stops the motion.
    model
        Robot whose inverse dynamics predicts the efforts; that of the plan's name when absent.
    monitor
        fit.json of --model: stop when something touches the robot.
    healthy
        Campaign in which nothing touched the robot: raises the thresholds of --monitor to its noise.
    live_fit
        Fit --model recursively while recording, and write its base parameters here.
    mcap
        Write the samples as MCAP too.
    key_file
        File with the shared key of lynx.
    dry_run
        Only say what would be done and how long it takes.
    yes
        Confirm that a real robot may move.
    """
    if tell is not None:
        return _tell(tell, output or resume)
    if (monitor is not None or live_fit is not None) and model is None:
        raise DynidentError("--monitor and --live-fit need a robot; give --model")
    mechanism = None if model is None else described.robot(model)  # before any motion or output
    watching = None if monitor is None or mechanism is None else di.monitor.Monitor(di.Fit.load(monitor, mechanism))
    for path in healthy or []:
        if watching is None:
            raise DynidentError("--healthy sets the thresholds of --monitor; give both")
        watching = watching.calibrated(di.Log.read(path))
    if live_fit is not None:
        check_output(live_fit)
    wanted = {
        "repetitions": repetitions,
        "rest": None if rest is None else seconds(rest, "--rest"),
        "below": start_below,
        "idle": None if start_rest is None else seconds(start_rest, "--start-rest"),
        "duty": duty,
        "cycles": cycles,
        "tolerance": tolerance,
    }
    options: dict[str, Any] = {"key": key} if (key := shared_key(key_file)) else {}
    if resume is not None:
        if plan is not None or output is not None or any(v is not None for v in (speed, *wanted.values())):
            raise DynidentError("--resume continues a campaign; do not give a plan, output or settings with it")
        address = address or _address(resume)
        wire = link.open_controller(address, **options)
        campaign = link.Campaign(resume, wire, yes=yes)
        if dry_run:
            return _dry_run(campaign.plan, campaign.settings, as_json)
    else:
        loaded = _plan(plan) if speed is None else _plan(plan).slowed(speed)
        settings = link.Settings.of(loaded, wanted)
        if dry_run:
            return _dry_run(loaded, settings, as_json)
        if address is None or output is None:
            raise DynidentError(
                "no controller or output folder; give --controller and -o, or --dry-run to preview the campaign"
            )
        wire = link.open_controller(address, **options)
        campaign = link.Campaign.create(output, loaded, settings, wire, address, yes=yes)
    if watching is not None:
        campaign.listeners = (link.LiveMonitor(watching, _channels(campaign)),)
    fitted = _live_fit(mechanism, campaign) if live_fit is not None and mechanism is not None else None
    try:
        return _run(campaign, _predictor(mechanism, campaign), model, mcap, as_json, quiet)
    finally:
        if live_fit is not None and fitted is not None:
            _write_live_fit(live_fit, fitted)


def _plan(path: Path | None) -> Any:

    if path is None:
        raise DynidentError("give a plan, or --resume with the folder of a campaign")
    file = path / "plan.json" if path.is_dir() else path
    if not file.exists():
        raise DynidentError(f"plan '{path}' does not exist; make one with dynident excite")
    return Plan.load(file)


def _dry_run(plan: Plan, settings: link.Settings, as_json: bool) -> int:
    """Print the planned campaign."""
    text = link.describe(plan, settings)
    if as_json:
        print_json(
            {"plan": plan.identity, "robot": plan.robot, "schedule": plan.schedule(), "cycle": plan.duration, "text": text}
        )
    else:
        out.print(text)
    return 0


def _address(folder: Path) -> str:
    try:
        return str(stored(read_json(folder / "campaign.json", "a campaign"), "address", str, "campaign"))
    except DynidentError as error:
        raise LinkError(f"'{folder}' is not a campaign ({error}); start one with dynident record plan/ -o campaign/") from error


def _tell(word: str, folder: Path | None) -> int:
    if folder is None or not (folder / "campaign.json").is_file():
        raise DynidentError(f"--tell needs a campaign folder; '{folder}' given by -o is not one")
    if word == "continue":
        (folder / "pause").unlink(missing_ok=True)
    else:
        (folder / word).touch()
    return 0


def _predictor(mechanism: Mechanism | None, campaign: Campaign) -> Any:
    """Return a function that predicts efforts; None without a model of this robot."""
    known = campaign.about["controller"]
    plain = known["effort_kind"] in ("joint_torque", "joint_force") and known["channels"] == known["coordinates"]
    if mechanism is not None:
        if not plain or list(mechanism.coordinate_names) != known["coordinates"]:
            raise DynidentError(
                f"--model '{mechanism.name}' cannot predict the efforts of this controller, which measures "
                f"{known['effort_kind']}"
            )
        model = mechanism
    else:
        named = _known_name(str(known["robot"])) if plain else None
        if named is None:
            return None
        model = find_robot(named).mechanism()
    return lambda motion: di.inverse_dynamics(model, motion, model.parameters)


def _known_name(robot: str) -> str | None:
    """Return the known name of a robot in commands; None for other robots."""
    return next((name for name in known_robots() if name.lower().replace("_", "-") == robot.lower()), None)


def _channels(campaign: Campaign) -> Identity:
    """Return the channels of the controller of a campaign."""
    known = campaign.about["controller"]
    gain = known.get("gain")
    return link.Identity(
        channels=tuple(known["channels"]),
        effort_kind=known["effort_kind"],
        position_side=known["position_side"],
        gain=None if gain is None else tuple(gain),
    )


def _live_fit(mechanism: Mechanism, campaign: Campaign) -> Any:
    """Return a recursive fit that listens to the campaign."""
    estimator = link.RLS(memory=LIVE_MEMORY).start(di.base_parameters(mechanism))
    made = link.LiveFit(estimator, _channels(campaign))
    campaign.listeners = (*campaign.listeners, made)
    return made


def _write_live_fit(path: Path, fitted: Any) -> None:
    """Write the newest estimate: base parameters with standard deviations due to noise."""
    rls = fitted.estimator
    deviation = [float(x) ** 0.5 if x >= 0.0 else None for x in rls.covariance_.diagonal()]
    table = {"names": list(rls.base_.names), "values": rls.coef_.tolist(), "deviations": deviation, "samples": fitted.count}
    write_atomic(path, to_json(table))


def _run(campaign: Campaign, predict: Any, model: Path | None, mcap: Path | None, as_json: bool, quiet: bool) -> int:

    campaign.predict = predict
    if mcap is not None:
        check_log_file(mcap)
        check_output(mcap)
    watch_keys({"p": campaign.pause, "c": lambda: campaign.pause(False), "q": campaign.abort}, quiet)
    shown = notes.is_terminal and not quiet
    told: list[str] = []
    try:
        with Live(console=notes, refresh_per_second=5, transient=True) if shown else nullcontext() as live:

            def observe(progress: Progress) -> None:
                if for_programs():
                    part = min(progress.motion / progress.duration, 1.0) if progress.duration > 0.0 else 0.0
                    print_progress(
                        {"step": progress.done + part, "of": progress.total, "text": progress.text or _title(progress)}
                    )
                elif live is not None:
                    live.update(_view(progress, campaign))
                elif not quiet and progress.text and progress.text not in told[-1:]:
                    told.append(progress.text)
                    note(progress.text)

            campaign.observe = observe
            done = campaign.run()
    except KeyboardInterrupt:
        raise link.AbortedError(f"aborted, robot at rest; continue with dynident record --resume {campaign.folder}") from None
    if mcap is not None:  # with effort kind, gains, plan and stages, which are unknown during recording
        di.Log.read(campaign.folder).save(mcap)
    result: dict[str, Any] = {
        "cycles": done,
        "samples": campaign.recorder.acknowledged,
        "gaps": campaign.recorder.gaps,
        "folder": str(campaign.folder),
    }
    if as_json:
        print_json(result)
    elif not quiet:
        gaps = f", {result['gaps']} gaps" if result["gaps"] else ""
        out.print(
            f"{done} {'cycle' if done == 1 else 'cycles'} complete, {result['samples']} samples{gaps} in {campaign.folder}"
        )
        if not campaign.about["controller"]["effort_kind"]:
            note("the controller reports no efforts: the campaign has positions only, from which no model can be identified")
            return 0
        robot = model or _known_name(str(campaign.about["robot"])) or "ROBOT"
        print_next("identify", robot, campaign.folder, "-o", f"{campaign.folder}_out")
    return 0


def watch_keys(actions: Mapping[str, Callable[[], object]], quiet: bool) -> None:
    """Run actions from the keyboard on a terminal: the first letter of a line selects the action."""

    def obey() -> None:
        for line in sys.stdin:
            actions.get(line.strip().lower()[:1], lambda: None)()

    if sys.stdin is not None and sys.stdin.isatty() and not quiet:
        threading.Thread(target=obey, name="keys", daemon=True).start()


def _title(progress: Progress) -> str:
    """Return the progress of a campaign as a title."""
    title = f"{progress.what}: cycle {min(progress.done + 1, progress.total)} of {progress.total}, {progress.motion:.1f} of "
    return title + f"{progress.duration:.1f} s, {clock_text(progress.left)} left, {progress.acknowledged} samples on disk"


def _view(progress: Progress, campaign: Campaign) -> Table:
    """Return the live view: the progress of the campaign, and the newest sample."""
    table = Table(title=progress.text or _title(progress), title_justify="left")
    for name in ("channel", "position", "velocity", "effort", "temperature"):
        table.add_column(name, justify="right")
    samples = progress.samples
    if samples is not None and len(samples):
        for i, name in enumerate(campaign.about["controller"]["channels"][:MOST_SHOWN]):
            row = (samples.position, samples.velocity, samples.effort, samples.temperature)
            table.add_row(name, *(f"{block[-1, i]:.4f}" for block in row))
    return table
