"""Live identification: short excitations (pieces), each designed for the parameters that are still uncertain.

    design a piece  ->  run and record it  ->  add its data  ->  update the posterior  ->  stop at a goal

The robot stands still while a piece is designed and while its data are evaluated. No connection is open then, so a slow
computer only makes the test longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError, LinkError
from dynident.excitation import Design, MotionLimits, Plan, design
from dynident.excitation.experiment import PAYLOAD
from dynident.files import read_json, to_json, write_atomic
from dynident.identify import MAP, BaseParameters, Fit, Payload, Regression, base_parameters, payload_of
from dynident.identify.regression.logs import same_band
from dynident.mechanics import Motion
from dynident.mechanism import Mechanism
from dynident.results import stored
from dynident.signals import Log
from dynident.trajectory.curves import Fourier, sample
from dynident_lab.campaigns.log import CampaignLog
from dynident_lab.link.schedule import seconds

SURE = 2.0  # standard deviations in a goal
HARMONICS = 5  # harmonics of a piece
STAGE = "excitation"  # name of the stage in the plan of a piece, see `Design.plan`
CHECK_RATE = 100.0  # sampling rate of the motion that determines the band [Hz]
FORMAT = "dynident-live-1"

Run = Callable[[int, Plan], CampaignLog]


@dataclass(frozen=True)
class Goal:
    """End of a live identification: it ends when one of these goals is reached.

    Parameters
    ----------
    payload : float
        Two standard deviations of the payload's mass over the mass; 0 for none.
    band : float
        Two standard deviations of the predicted efforts due to parameter uncertainty over the root mean square of the
        efforts, for the worst joint and a motion that was not executed; 0 for none.
    time : float
        Time in motion, approaches included [s].
    """

    payload: float = 0.0
    band: float = 0.0
    time: float = 300.0

    def __post_init__(self) -> None:
        for name in ("payload", "band"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise LinkError(f"goal {name} is {getattr(self, name):.3g}; give a share above 0 and below 100 %")
        if not 0.0 < self.time < np.inf:
            raise LinkError(f"goal time is {self.time:g} s; give a time above zero")

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Goal:
        """Return the goal of texts such as payload=1%, band=2% and time=60s."""
        found: dict[str, float] = {}
        for text in texts:
            name, _, value = text.partition("=")
            share = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*", value)
            if name == "time":
                found[name] = seconds(value, "goal time")
            elif name in ("payload", "band") and share is not None and float(share.group(1)) > 0.0:
                found[name] = float(share.group(1)) / 100.0
            else:
                raise LinkError(f"goal is '{text}'; give payload or band in per cent, as in band=2%, or a time, as in time=60s")
        return cls(**found)

    def reached(self, now: LiveUpdate) -> str:
        """Return the goal reached by an update; empty for none."""
        if self.payload and now.payload is not None and now.mass_share <= self.payload:
            return "payload"
        if self.band and now.worst_band <= self.band:
            return "band"
        return "time" if now.time >= self.time else ""


@dataclass(frozen=True, eq=False)
class LiveUpdate:
    """The posterior after a piece."""

    number: int  #: Number of the piece, from 1
    time: float  #: Time in motion so far, approaches included [s]
    fit: Fit  #: Fit to all data so far
    band: Array  #: (n,), two standard deviations of predicted efforts over their root mean square, see `Goal`
    payload: Payload | None = None  #: The load, if one is identified

    @property
    def mass_share(self) -> float:
        """Two standard deviations of the payload's mass over the mass; infinite while the mass is unknown."""
        load = self.payload
        share = np.inf if load is None or not load.mass > 0.0 else SURE * load.mass_std / load.mass
        return float(share) if np.isfinite(share) else np.inf

    @property
    def worst_band(self) -> float:
        """The largest band of all joints."""
        return float(np.max(self.band))

    def numbers(self) -> dict[str, Any]:
        """Return the update as plain data."""
        load = self.payload
        data: dict[str, Any] = {"piece": self.number, "time": self.time, "band": self.band.tolist()}
        if load is not None:
            data |= {"mass": load.mass, "mass_std": load.mass_std, "com": load.com.tolist(), "com_std": load.com_std.tolist()}
        return data


@dataclass(frozen=True, eq=False)
class LiveResult:
    """A finished live identification."""

    updates: tuple[LiveUpdate, ...]
    reached: str  # goal reached: payload, band or time

    def numbers(self) -> dict[str, Any]:
        """Return all updates as plain data."""
        return {"format": FORMAT, "reached": self.reached, "updates": [update.numbers() for update in self.updates]}

    def write(self, folder: Path) -> list[Path]:
        """Write the posterior and its history to the folder of the pieces."""
        self.updates[-1].fit.save(folder / "fit.json")
        write_atomic(folder / "live.json", to_json(self.numbers()))
        return [folder / "fit.json", folder / "live.json"]


def identify_live(
    mechanism: Mechanism,
    limits: MotionLimits,
    run: Run,
    goal: Goal,
    *,
    unloaded: Sequence[Log] = (),
    payload: float | None = None,
    body: str | None = None,
    duration: float = 5.0,
    adapt: bool = True,
    observe: Callable[[LiveUpdate], object] | None = None,
    **search: Any,
) -> LiveResult:
    """Excite a robot piece by piece until a goal is reached.

    Parameters
    ----------
    mechanism : Mechanism
        Robot without payload.
    limits : MotionLimits
        Limits of every piece, with the payload if there is one.
    run : callable
        Runs the plan of a piece and returns its campaign; called with the number of the piece, from 1 on.
    goal : Goal
        Goal that ends the identification.
    unloaded : sequence of Log
        Recordings without the payload, which separate the payload from its link.
    payload : float, optional
        Largest permitted mass of the payload [kg]; no payload when omitted.
    body : str, optional
        Link that carries the payload; the last moving one when omitted.
    duration : float
        Duration of a piece, without the joins to the waiting pose [s].
    adapt : bool
        Whether later pieces are designed for the uncertain parameters; False repeats the first piece, for comparison.
    observe : callable, optional
        Called with every update.
    **search
        Options of `design`: time_budget or iterations, starts, seed, rate.

    Returns
    -------
    LiveResult
        All updates; the last one has the posterior.
    """
    if (payload is None) != (not unloaded) or (payload is None and goal.payload):
        raise LinkError(
            "payload identification needs recordings without the payload; give its largest mass and the recordings "
            "(--payload, --unloaded)"
        )
    if not 0.5 <= duration <= 60.0:
        raise LinkError(f"a piece of {duration:g} s; give 0.5 to 60 s")
    loaded = payload is not None
    robot = mechanism.with_payload(payload, body=body, name=PAYLOAD, separate=True) if payload is not None else mechanism
    base = base_parameters(robot, removable=(PAYLOAD,) if loaded else ())
    data = _unloaded_data(robot, base, unloaded)
    options = {"family": Fourier(1.0 / duration, HARMONICS), "goal": (PAYLOAD,) if loaded else (), **search}
    noise = None if data is None else MAP().fit(data).result_.sigma
    updates: list[LiveUpdate] = []
    piece: Design | None = None
    check: Motion | None = None
    home, time = None, 0.0
    while True:
        number = len(updates) + 1
        if piece is None or adapt:
            known: dict[str, Any] = {"base": base} if data is None else {"recorded": data, "noise": noise}
            if piece is not None:  # start from the previous piece, so that the robot stays near its waiting pose
                known |= {"start": piece.optimum.x, "starts": 1}
            piece = design(robot, limits, **{**options, **known})
        if check is None:
            check = sample(piece.validation(), CHECK_RATE)
        plan = _plan(piece, mechanism.name, home)
        home = plan.home
        log = run(number, plan)
        time += _moved(log)
        new = _data(robot, base, log.stages()[STAGE][0], data)
        data = new if data is None else data + new
        fit = MAP().fit(data).result_
        noise = fit.sigma
        load = payload_of(fit, heaviest=payload) if loaded else None
        updates.append(LiveUpdate(number, time, fit, _band(fit, check), load))
        if observe is not None:
            observe(updates[-1])
        if reached := goal.reached(updates[-1]):
            return LiveResult(tuple(updates), reached)


def _plan(piece: Design, name: str, home: Array | None) -> Plan:
    """Return the plan of a piece, from the waiting pose and back; from its own pose if limits prevent that."""
    try:
        plan = piece.plan(home=home)
    except DynidentError:
        plan = piece.plan()
    return replace(plan, robot=name)


def _data(robot: Mechanism, base: BaseParameters, log: Log, before: Regression | None, **absent: Any) -> Regression:
    """Return the regression data of a log, in the band of the earlier data."""
    band = {} if before is None else same_band(before.sources[:1], log.rate)
    return Regression.from_log(robot, log, base, **absent, **band)


def _unloaded_data(robot: Mechanism, base: BaseParameters, logs: Sequence[Log]) -> Regression | None:
    """Return the regression data of recordings without the payload; None without any."""
    data: Regression | None = None
    for log in logs:
        new = _data(robot, base, log, data, absent=(PAYLOAD,))
        data = new if data is None else data + new
    return data


def _moved(log: CampaignLog) -> float:
    """Return the time in motion of a campaign, including approaches and interrupted attempts [s]."""
    moving = [part.rows for part in log.recordings if part.kind in ("cycle", "approach")]
    return float(sum(log.t[rows.stop - 1] - log.t[rows.start] for rows in moving))


def _band(fit: Fit, motion: Motion) -> Array:
    """Return two standard deviations of predicted efforts over their root mean square by joint, (n,); see `Goal`."""
    effort, _, share = fit.evaluate(motion, fit.values[None])
    return np.asarray(SURE * np.sqrt(np.mean(share**2, axis=0) / np.mean(effort[0] ** 2, axis=0)))


def live_logs(folder: Path) -> list[Log]:
    """Return the recordings of a live identification piece by piece."""
    data = read_json(folder / "live.json", "a live identification")
    count = len(stored(data, "updates", list[Any], "live identification"))
    logs = [Log.read(piece_folder(folder, number)) for number in range(1, count + 1)]
    return [log.stages()[STAGE][0] for log in logs if isinstance(log, CampaignLog)]


def piece_folder(folder: Path, number: int) -> Path:
    """Return the folder of the campaign that recorded a piece."""
    return folder / f"piece_{number:03d}"
