"""Options of filters and estimators: the estimators of ``--estimator``, prior knowledge, and the simulated closed loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import note
from dynident.cli.groups import COLUMNS, FILTER, KNOWN, LOOP
from dynident.cli.robots import is_known, ready_machine
from dynident.errors import DynidentError
from dynident.identify.posterior.posterior import Population

if TYPE_CHECKING:
    from dynident.simulate.closed_loop import ClosedLoop

estimation: Any = import_module("dynident.identify")  # the package, not the function di.identify
OF_FACTORS = ("map", "wls", "ols")  # these need triangular factors only, the others single rows
OF_ROWS = ("gls", "huber", "tukey", "tls", "iv", "didim", "output-error")
RULES = ("auto", "physical", "prior", "minimum_norm")

EstimatorName = Annotated[
    str,
    Parameter(
        help="map: least squares with the description as a prior; wls, ols: without.",
        choices=(*OF_FACTORS, *OF_ROWS),
    ),
]
Recovery = Annotated[
    str,
    Parameter(
        help="Choice of standard parameters: physical (consistent bodies), prior (nearest to the description) or "
        "minimum_norm; auto is physical.",
        choices=RULES,
        group=COLUMNS,
    ),
]


@Parameter(name="*", group=FILTER)
@dataclass(frozen=True)
class FilterOptions:
    """How positions and efforts are filtered."""

    cutoff: str = "auto"
    """Low-pass frequency of the positions [Hz], or auto."""
    filter_order: int = 4
    """Order of the Butterworth low-pass in one direction, 1 to 10."""
    causal: bool = False
    """Filter forward only, as a controller does on line: all signals have the same delay."""
    decimation: str = "auto"
    """Samples per row: regressor and efforts pass the same low-pass, then are decimated; or auto."""
    standstill: float = 0.0
    """Leave out speeds below this share of a joint's RMS speed, where it may stick (0.1 is usual)."""

    def options(self) -> dict[str, Any]:
        """Return the options of `dynident.signals.prepare` that differ from its own."""
        found: dict[str, Any] = {"standstill": self.standstill} if self.standstill else {}
        found |= {"order": self.filter_order} if self.filter_order != 4 else {}
        found |= {"phase": "causal"} if self.causal else {}
        for label, text, kind in (("cutoff", self.cutoff, float), ("decimation", self.decimation, int)):
            if text != "auto":
                try:
                    found[label] = kind(text)
                except ValueError:
                    raise DynidentError(f"--{label} is '{text}'; give 'auto' or a {'whole ' * (kind is int)}number") from None
        return found


@Parameter(name="*", group=LOOP)
@dataclass(frozen=True)
class LoopOptions:
    """Options of estimators that use instruments or simulate."""

    period: float | None = None
    """Period of the motion [s]: its other periods serve as instruments (iv)."""
    loop: str | None = None
    """Controller that didim and output-error simulate: of a known robot, or pd, feedforward, computed_torque or cascade."""
    bandwidth: float = 10.0
    """Bandwidth of the controller of --loop [Hz]."""
    unknown: tuple[str, ...] | None = None
    """Number of --loop to estimate too, as gain:ACTUATOR (all for logs without efforts) or controller.FIELD; several times."""

    def check(self, estimator: str) -> None:
        """Refuse options that the estimator ignores."""
        if self.period is not None and estimator != "iv":
            raise DynidentError(f"--period is for the estimator iv, not for '{estimator}'; leave it out")
        if self.loop is not None and estimator not in ("didim", "output-error"):
            raise DynidentError(f"--loop is for the estimators didim and output-error, not for '{estimator}'; leave it out")
        self.check_loop()

    def check_loop(self) -> None:
        """Refuse parameters of a loop without a loop."""
        if self.loop is None and (self.bandwidth != LoopOptions.bandwidth or self.unknown is not None):
            raise DynidentError("--bandwidth and --unknown need --loop; give it, or omit them")
        if not self.bandwidth > 0.0:
            raise DynidentError(f"--bandwidth is {self.bandwidth:g}; give a frequency above 0 Hz")

    def closed(self, mechanism: di.Mechanism, logs: Sequence[di.Log], blind: bool = False) -> ClosedLoop | None:
        """Return the named loop with the references of the logs; `blind` if they have no efforts."""
        if self.loop is None:
            return None
        from dynident.simulate.closed_loop import ClosedLoop, reference_motion  # noqa: PLC0415
        from dynident.simulate.robot import standard_machine  # noqa: PLC0415

        if mechanism.loops:
            raise DynidentError(f"--loop: robot '{mechanism.name}' has loops; estimators that simulate are for trees")
        references = [reference_motion(log) for log in logs]
        if is_known(self.loop):
            machine = ready_machine(self.loop)
        else:
            machine = standard_machine(mechanism, references[0].q, controller=self.loop, bandwidth=self.bandwidth)
        gains = [f"gain:{drive.actuator}" for drive in machine.drives] if blind else []
        return ClosedLoop(machine, references, tuple(gains if self.unknown is None else self.unknown))


@Parameter(name="*", group=KNOWN)
@dataclass(frozen=True)
class KnownOptions:
    """Knowledge in addition to the description."""

    mass: tuple[str, ...] = ()
    """Weighed mass of a body, as forearm=3.2 or forearm=3.2+-0.05 [kg]; several times."""
    total_mass: str | None = None
    """Mass of all moving bodies, as 16 or 16+-0.5 [kg]."""
    centre: tuple[str, ...] = ()
    """Centre of mass of a body, as hand=0,0,0.08 in its link frame [m]; several times."""
    without: tuple[str, ...] = ()
    """Body without mass and inertia of its own, too light or counted with another; several times."""
    population: Path | None = None
    """population_TYPE.json of a fleet: the prior from robots of the same type."""

    def knowledge(self, sidecar: Path | None) -> di.Knowledge | None:
        """Return the knowledge of the sidecar and the options, the options last; None if there is none."""
        told = di.Knowledge() if sidecar is None else di.Knowledge.from_sidecar(sidecar)
        masses = {**told.masses, **{body: _value(text, "mass") for body, text in _pairs(self.mass, "mass").items()}}
        centres = {**told.centres, **{body: _list(text, "centre") for body, text in _pairs(self.centre, "centre").items()}}
        total = told.total_mass if self.total_mass is None else _value(self.total_mass, "total-mass")
        bodies = (*told.without, *self.without)
        shared = None if self.population is None else Population.load(self.population)
        if not masses and not centres and total is None and not bodies and shared is None:
            return None
        return di.Knowledge(masses, total, centres, bodies, shared)


AS_NEEDED, NO_LOOP, NOTHING_KNOWN = FilterOptions(), LoopOptions(), KnownOptions()


def check_estimator(name: str, recovery: str, known: di.Knowledge | None) -> None:
    """Refuse contradictory options."""
    if name == "map" and recovery == "minimum_norm":
        raise DynidentError("--recovery minimum_norm is a rule of least squares alone; add --estimator wls")
    if name != "map" and known is not None:
        raise DynidentError(f"known masses and centres need the estimator map, not '{name}'; leave --estimator out")


def estimator_of(
    name: str, recovery: str, known: di.Knowledge | None, loop: ClosedLoop | None = None, period: float | None = None
) -> Any:
    """Return the named estimator, not fitted."""
    check_estimator(name, recovery, known)
    rule = "physical" if recovery == "auto" else recovery
    if name == "map":
        return di.MAP(recovery=rule, known=known)
    if name in ("didim", "output-error") and loop is None:
        raise DynidentError(f"--estimator {name} simulates the robot with its controller; say which one with --loop")
    instruments: dict[str, Any] = {} if period is None else {"instruments": "periods", "period": period}
    kinds: dict[str, Callable[[], Any]] = {
        "wls": lambda: di.WLS(recovery=rule),
        "ols": lambda: di.OLS(recovery=rule),
        "gls": lambda: estimation.GLS(recovery=rule),
        "huber": lambda: estimation.IRLS(recovery=rule),
        "tukey": lambda: estimation.IRLS(loss="tukey", recovery=rule),
        "tls": lambda: estimation.TLS(recovery=rule),
        "iv": lambda: estimation.IV(recovery=rule, **instruments),
        "didim": lambda: estimation.DIDIM(loop=loop, recovery=rule),
        "output-error": lambda: estimation.OutputError(loop=loop, recovery=rule),
    }
    return kinds[name]()


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        body, sign, value = text.partition("=")
        if not sign or not body:
            raise DynidentError(f"--{option} is '{text}'; give a body and its value, such as forearm=3.2")
        pairs[body] = value
    return pairs


def _value(text: str, option: str) -> float | tuple[float, float]:
    found = _list(text.replace("+-", ","), option)
    if len(found) > 2:
        raise DynidentError(f"--{option} is '{text}'; give a number, or a number and its standard deviation as 3.2+-0.05")
    return found[0] if len(found) == 1 else (found[0], found[1])


def _list(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DynidentError(f"--{option} has the value '{text}'; give numbers") from None


def without_efforts(mechanism: di.Mechanism, logs: Sequence[di.Log], solver: Any, options: dict[str, Any]) -> di.Regression:
    """Return the regression data of commands and positions alone, and report the parameters that they determine."""
    if not isinstance(solver, estimation.OutputError):
        raise DynidentError(
            f"log '{logs[0].name}' has no efforts; fit its commands and positions with --estimator output-error and the "
            "controller as --loop"
        )
    if any(log.effort_kind != "none" for log in logs):
        raise DynidentError(
            "some logs have efforts and others have none; fit those with efforts, or read all with --effort none"
        )
    solver.set_params(outputs=("position",))
    evidence = reduce(add, [di.Regression.without_effort(mechanism, log, **options) for log in logs])
    note(f"identifiable from positions alone, before the fit: {solver.visible(evidence).summary()}")
    return evidence
