"""Campaigns: a plan is run cycle by cycle on a controller, recorded, and continued after a crash.

The unit is a cycle. An interrupted cycle is kept and run again from its start; rests continue by the host's clock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LinkError
from dynident.excitation import Plan
from dynident.mechanics import Motion
from dynident_lab.link.controller import Identity, RemoteController, Samples, UnreachableError
from dynident_lab.link.follower import Follower, Listener, Predict, Progress, Watch
from dynident_lab.link.recorder import DiskFullError, Recorder, check_new, create_folder, lock_folder, open_folder
from dynident_lab.link.schedule import Settings, Step, cycle_motion, steps_of, warmest_of

PATIENCE = 600.0  # time to wait for a lost controller [s]
MOST_LOST = 20  # successive lost connections without a complete cycle


class AbortedError(LinkError):
    """The user has ended the campaign; the robot is at rest and the campaign can be resumed later."""


class _Interrupted(Exception):  # noqa: N818 - not an error: the user paused, or the disk is full
    """Ends the running cycle, which is run again."""


class Campaign:
    """A campaign and its folder.

    Parameters
    ----------
    folder : path-like
        Folder of the campaign, made by `create`.
    controller : RemoteController
        Controller of the robot; connected by `run`.
    predict : callable, optional
        Efforts of a motion, see `Watch`.
    listeners : sequence of Listener
        Further receivers of the samples.
    observe : callable, optional
        Called with a `Progress` a few times per second.
    yes : bool
        True confirms that a real robot may move.
    interval : float
        Time between two syncs of the record [s].
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        controller: RemoteController,
        *,
        predict: Predict | None = None,
        listeners: Sequence[Listener] = (),
        observe: Callable[[Progress], None] | None = None,
        yes: bool = False,
        interval: float = 1.0,
    ) -> None:
        self.folder, self.controller = Path(folder), controller
        self.predict, self.listeners, self.observe, self.yes, self.interval = predict, listeners, observe, yes, interval
        self.about, self.settings, self.plan = open_folder(self.folder)
        if not (known := self.about["controller"])["identity"]:  # it reports no names: the plan's are used
            names: dict[str, Any] = {key: tuple(known[key]) for key in ("coordinates", "channels")}
            controller.identity = replace(controller.identity, **names)
        self.steps = steps_of(self.plan, self.settings)
        self.recorder: Recorder
        self.follower: Follower
        self._connected: Identity | None = None  # by `create`: some controllers answer only one handshake
        self._lock = -1
        self._paused = self._abort = False
        self._lost = 0  # lost connections since the last complete cycle
        self._shown = 0.0

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        plan: Plan,
        settings: Settings,
        controller: RemoteController,
        address: str = "",
        **options: Any,
    ) -> Campaign:
        """Create the folder of a campaign after connecting to the controller, which stays connected for `run`."""
        place = Path(folder)
        check_new(place)
        identity = controller.connect()
        try:
            check_confirmed(identity, bool(options.get("yes")))
            cycle_motion(plan, identity)
            create_folder(place, plan, settings, identity, address)
            campaign = cls(place, controller, **options)
        except BaseException:
            controller.close()
            raise
        campaign._connected = controller.identity
        return campaign

    # ------------------------------------------------------------------ a person
    def pause(self, paused: bool = True) -> None:
        """Bring the robot to rest until `pause(False)`; the running cycle is run again."""
        self._paused = paused

    def abort(self) -> None:
        """Bring the robot to rest and end; the campaign can be resumed later."""
        self._abort = True

    def _asked(self) -> None:
        """Obey requests of the user, made here or by a file in the folder."""
        if self._abort or (self.folder / "abort").exists():
            raise AbortedError(f"aborted, robot at rest; continue with dynident record --resume {self.folder}")
        if self._paused or (self.folder / "pause").exists():
            raise _Interrupted("paused")

    # ------------------------------------------------------------------ the run
    @property
    def done(self) -> set[int]:
        """Numbers of the cycles that are complete."""
        return {e["cycle"] for e in self.recorder.journal.events if e["event"] == "cycle done"}

    def run(self) -> int:
        """Run the rest of the campaign, and return the number of complete cycles."""
        self._lock = lock_folder(self.folder)
        try:
            self._make_recorder()
            self._connect(first=True)
            self.recorder.journal.note("started", done=len(self.done), session=self.follower.session)
            pause = 0.0  # after the previous cycle
            for step in self.steps:
                if step.number not in self.done:
                    self._cycle(step, pause)
                pause = step.pause
            self.recorder.journal.note("campaign done")
            return len(self.done)
        except LinkError as error:
            with contextlib.suppress(LinkError, OSError, AttributeError):
                how = "aborted" if isinstance(error, AbortedError) else "stopped"
                self.recorder.journal.note(how, text=str(error))
            raise
        finally:
            with contextlib.suppress(LinkError, OSError, AttributeError):
                if self.controller.state().moving or self.controller.sending:
                    self.controller.stop()
            with contextlib.suppress(LinkError, OSError):
                self.controller.close()
            with contextlib.suppress(LinkError, OSError, AttributeError):
                self.recorder.close()
            (self.folder / "abort").unlink(missing_ok=True)
            os.close(self._lock)

    def _make_recorder(self) -> None:
        """Open the record; wait if there is no disk space for it."""
        while True:
            try:
                known = self.about["controller"]
                channels, extras = tuple(known["channels"]), tuple(known.get("extras", ()))
                self.recorder = Recorder(self.folder, channels, self.interval, extras)
                break
            except DiskFullError as error:
                self._show_text("disk full", str(error))
                time.sleep(1.0)
        self.follower = Follower(self.controller, self.recorder, self.listeners, self._asked, self._tell)
        sessions = [e["session"] for e in self.recorder.journal.events if "session" in e]
        self.follower.session = max(sessions, default=-1)

    def _connect(self, first: bool = False) -> None:
        """Connect, repeatedly while the controller is not reachable."""
        end, pause = time.monotonic() + PATIENCE, 0.2
        while True:
            try:
                identity, self._connected = self._connected or self.controller.connect(), None
                self._check(identity)
                break
            except (UnreachableError, OSError) as error:
                self.controller.close()
                if first or time.monotonic() > end:
                    raise UnreachableError(str(error)) from error
                self._show_text("no connection", str(error))
            for _ in range(10):
                self._asked_while_waiting()
                time.sleep(0.1 * pause)
            pause = min(2.0 * pause, 5.0)
        self.follower.begin(identity)

    def _asked_while_waiting(self) -> None:
        with contextlib.suppress(_Interrupted):
            self._asked()

    def _check(self, identity: Identity) -> None:
        """Refuse another robot, and a real one without confirmation."""
        known = self.about["controller"]
        if identity.identity != known["identity"] or (
            identity.coordinates and list(identity.coordinates) != known["coordinates"]
        ):
            raise LinkError(
                f"the controller drives '{identity.robot}' ({identity.identity}), the campaign began with '{known['robot']}' "
                f"({known['identity']}); connect the same one"
            )
        check_confirmed(identity, self.yes)
        self.motion = cycle_motion(self.plan, identity)
        self.follower.settle()

    def _cycle(self, step: Step, pause: float) -> None:
        """Run one cycle until it is complete: again after a lost connection, a pause or a full disk."""
        while not self._guard(lambda: self._rest(step, pause)):
            pass
        while not self._guard(lambda: self._attempt(step)):
            pass

    def _attempt(self, step: Step) -> None:
        """Run one cycle; every attempt of the first one of a repetition waits for its start conditions."""
        if step.first:
            self._wait_for_start(step)
        attempt = sum(e["event"] == "cycle begun" and e["cycle"] == step.number for e in self.recorder.journal.events)
        identity, note = self.follower.identity, self.recorder.journal.note
        approach = self.controller.approach(self.motion.q[0])
        if approach is not None:
            note("approach begun", cycle=step.number, attempt=attempt, moved=self._end_of(approach))
            self.follower.follow(approach, Watch(identity, approach), "approach", step.number, attempt)
        session, moved = self.follower.session, self._end_of(self.motion)
        note("cycle begun", cycle=step.number, attempt=attempt, session=session, moved=moved)
        watch = Watch(identity, self.motion, self.predict, self.settings.tolerance)
        self.follower.follow(self.motion, watch, "cycle", step.number, attempt)
        note("cycle done", cycle=step.number, attempt=attempt, moved=time.time())
        self._lost = 0

    def _end_of(self, motion: Motion) -> float:
        """Return the end time of a motion that begins now [s since 1970], known even if this process ends."""
        return time.time() + float(motion.t[-1] - motion.t[0]) / self.follower.identity.speed

    def _guard(self, action: Callable[[], None]) -> bool:
        """Run an action; return True when it is complete, False if it must be repeated."""
        try:
            self._asked()
            action()
            return True
        except (ConnectionError, TimeoutError) as error:
            self._record_trouble("connection lost", text=str(error))
            self.controller.close()
            self._lost += 1
            if self._lost > MOST_LOST:
                raise LinkError(
                    f"{self._lost} connections were lost without a complete cycle, the last one because: {error}; check the "
                    "controller and resume"
                ) from error
            self._connect()
        except DiskFullError as error:
            self.follower.halt()
            self._show_text("disk full", f"{error}; the campaign continues automatically")
            self._wait_for_room()
        except _Interrupted:
            self.follower.halt()
            self._record_trouble("paused")
            while True:
                try:
                    self._asked()
                    break
                except _Interrupted:
                    self._show_text("paused", "paused; the robot is at rest")
                    self.follower.drain(0.2)
        except BaseException:
            self.follower.halt()
            raise
        return False

    def _record_trouble(self, event: str, **facts: Any) -> None:
        with contextlib.suppress(DiskFullError):
            self.recorder.close_segment()
            self.recorder.journal.note(event, **facts)

    def _wait_for_room(self) -> None:
        """Wait until the disk has space for a whole cycle, twice: as written and as sealed."""
        need = 2 * 8 * len(self.motion) * len(self.recorder.columns)
        while True:
            self._asked_while_waiting()
            try:
                self.recorder.close_segment()
                if shutil.disk_usage(self.folder).free > need:
                    self.recorder.journal.note("disk was full")
                    return
                self._show_text("disk full", f"the disk is full; free {need / 1e6:.1f} MB for the next cycle")
            except (DiskFullError, OSError):
                pass
            self.follower.drain(1.0)

    # ------------------------------------------------------------------ rests
    def _last_motion(self, *events: str) -> float:
        """Return the end of the last of some motions [s since 1970]; 0 without any."""
        return max((e["moved"] for e in self.recorder.journal.events if "moved" in e and e["event"] in events), default=0.0)

    def _rest(self, step: Step, pause: float) -> None:
        """Rest after the previous cycle."""
        end = self._last_motion("cycle done") + pause / self.follower.identity.speed
        self.follower.rest(step.number, end, "rest", pause)

    def _wait_for_start(self, step: Step) -> None:
        """Wait until the robot has rested long enough and is cold enough."""
        settings, speed = self.settings, self.follower.identity.speed
        if settings.idle:  # an interrupted motion counts up to its end; before the first motion, the creation counts
            last = self._last_motion("approach begun", "cycle begun", "cycle done") or float(self.about["created"])
            self.follower.rest(step.number, last + settings.idle / speed, "waiting", settings.idle)
        if settings.below is None:
            return
        self.follower.drain(1.0)
        if warmest_of(self.follower.warmest, settings.below) >= settings.below:
            self.follower.rest(step.number, np.inf, "waiting", below=settings.below)

    # ------------------------------------------------------------------ telling
    def _show_text(self, what: str, text: str) -> None:
        done = len(self.done) if hasattr(self, "recorder") else 0
        self._show(Progress(what, done, len(self.steps), text=text), always=True)

    def _tell(self, what: str, motion: float, duration: float, samples: Samples) -> None:
        self._show(Progress(what, len(self.done), len(self.steps), motion, duration, samples=samples))

    def _show(self, progress: Progress, always: bool = False) -> None:
        if self.observe is None or (not always and time.monotonic() - self._shown < 0.2):
            return
        self._shown = time.monotonic()
        later = [s for s in self.steps if s.number >= progress.done]
        left = len(later) * self.plan.curve.duration - progress.motion + sum(s.pause for s in later)
        if hasattr(self, "follower"):
            left /= self.follower.identity.speed
            progress = replace(progress, acknowledged=self.recorder.acknowledged, gaps=self.recorder.gaps)
        self.observe(replace(progress, left=left))


def check_confirmed(identity: Identity, yes: bool) -> None:
    """Refuse a real robot without confirmation."""
    if not identity.virtual and not yes:
        raise LinkError("real robot: make sure that nobody is near it, then confirm with yes= (--yes)")
