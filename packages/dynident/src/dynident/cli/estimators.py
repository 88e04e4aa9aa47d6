"""Options of filters and estimators: what ``--estimator`` names, and the closed loop that some of them simulate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dynident as di
from dynident.cli.consoles import note
from dynident.cli.machines import ready_machine
from dynident.cli.robots import is_known
from dynident.cli.structure import LOOP, choices
from dynident.errors import DynidentError
from dynident.identify import DIDIM, GLS, IRLS, IV, ML, RLS, TLS, Entropic, Kalman, OutputError

if TYPE_CHECKING:
    from dynident.simulate.closed_loop import ClosedLoop

OF_FACTORS = ("map", "wls", "ols", "entropic")  # triangles are enough for these; the others look at single rows
OF_ROWS = ("gls", "huber", "tukey", "tls", "ml", "iv", "rls", "ekf", "ukf", "didim", "output-error")
RULES = ("auto", "physical", "prior", "minimum_norm")
FILTER_RATE = 100.0  # of Kalman filters [Hz]

EstimatorName = Annotated[
    str,
    choices(
        "map: the description as a belief that the data weigh; wls, ols: least squares alone; compare tries the others.",
        *OF_FACTORS,
        *OF_ROWS,
    ),
]
Recovery = Annotated[
    str,
    choices(
        "How masses and inertias follow from what torques show: physical keeps bodies possible, prior stays nearest to the "
        "description; auto is physical unless the data refute it beyond doubt (map).",
        *RULES,
    ),
]


@dataclass(frozen=True)
class FilterOptions:
    """How positions and efforts are filtered; a parameter of this kind stands for one option per field."""

    cutoff: Annotated[str, typer.Option(help="Low-pass frequency of the positions [Hz], or auto.")] = "auto"
    filter_order: Annotated[int, typer.Option(help="Order of the Butterworth low-pass in one direction, 1 to 10.")] = 4
    causal: Annotated[
        bool, typer.Option("--causal", help="Filter forward only, as a controller does on line: all signals are late alike.")
    ] = False
    decimation: Annotated[
        str, typer.Option(help="Samples per row: regressor and efforts are low-passed alike, then thinned; or auto.")
    ] = "auto"
    standstill: Annotated[
        float, typer.Option(help="Leave out speeds below this share of a joint's RMS speed, where it may stick (0.1 is usual).")
    ] = 0.0

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


@dataclass(frozen=True)
class LoopOptions:
    """What estimators need to know that use instruments or simulate; a parameter stands for one option per field."""

    period: Annotated[
        float | None,
        typer.Option(help="Period of the motion [s]: its other periods serve as instruments (iv).", rich_help_panel=LOOP),
    ] = None
    loop: Annotated[
        str | None,
        typer.Option(
            help="Controller that didim and output-error simulate: that of a known robot such as mast, or pd, feedforward, "
            "computed_torque or cascade with ideal drives. The logs must have a reference.",
            rich_help_panel=LOOP,
        ),
    ] = None
    bandwidth: Annotated[float, typer.Option(help="Bandwidth of the controller of --loop [Hz].", rich_help_panel=LOOP)] = 10.0
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            help="Number of --loop to estimate too, as gain:ACTUATOR or controller.FIELD; several times. When omitted: the "
            "gains of all drives for logs without efforts, else none.",
            rich_help_panel=LOOP,
        ),
    ] = None

    def check(self, estimator: str) -> None:
        """Refuse what the estimator does not look at."""
        if self.period is not None and estimator != "iv":
            raise DynidentError(f"--period is for the estimator iv, not for '{estimator}'; leave it out")
        if self.loop is not None and estimator not in ("didim", "output-error"):
            raise DynidentError(f"--loop is for the estimators didim and output-error, not for '{estimator}'; leave it out")
        self.check_loop()

    def check_loop(self) -> None:
        """Refuse numbers of a loop without a loop."""
        if self.loop is None and (self.bandwidth != LoopOptions.bandwidth or self.unknown is not None):
            raise DynidentError("--bandwidth and --unknown say more of a --loop; give it, or leave them out")
        if not self.bandwidth > 0.0:
            raise DynidentError(f"--bandwidth is {self.bandwidth:g}; give a frequency above 0 Hz")

    def closed(self, mechanism: di.Mechanism, logs: Sequence[di.Log], blind: bool = False) -> ClosedLoop | None:
        """Return the loop that was named, with the references of the logs; `blind` when they have no efforts."""
        from dynident.simulate.closed_loop import ClosedLoop, reference_motion  # noqa: PLC0415
        from dynident.simulate.standard import standard_machine  # noqa: PLC0415

        if self.loop is None:
            return None
        if mechanism.loops:
            raise DynidentError(f"--loop: robot '{mechanism.name}' has loops; estimators that simulate are for trees")
        references = [reference_motion(log) for log in logs]
        if is_known(self.loop):
            machine = ready_machine(self.loop)
        else:
            machine = standard_machine(mechanism, references[0].q, controller=self.loop, bandwidth=self.bandwidth)
        gains = [f"gain:{drive.actuator}" for drive in machine.drives] if blind else []
        return ClosedLoop(machine, references, tuple(gains if self.unknown is None else self.unknown))


def check_estimator(name: str, recovery: str, known: di.Knowledge | None) -> None:
    """Refuse names that do not exist, and options that do not go together."""
    for label, value, known_ones in (("estimator", name, (*OF_FACTORS, *OF_ROWS)), ("recovery", recovery, RULES)):
        if value not in known_ones:
            raise DynidentError(f"--{label} is '{value}'; it must be one of {', '.join(known_ones)}")
    if name == "map" and recovery == "minimum_norm":
        raise DynidentError("--recovery minimum_norm is a rule of least squares alone; add --estimator wls")
    if name == "entropic" and recovery != "auto":
        raise DynidentError(f"--recovery {recovery}: bodies of the estimator entropic are always possible; leave it out")
    if name != "map" and known is not None:
        raise DynidentError(f"known masses and centres need the estimator map, not '{name}'; leave --estimator out")


def estimator_of(
    name: str, recovery: str, known: di.Knowledge | None, loop: ClosedLoop | None = None, period: float | None = None
) -> Any:
    """Return the estimator that was named, not fitted."""
    check_estimator(name, recovery, known)
    if name == "map":
        return di.MAP(recovery=recovery, known=known)
    if name == "entropic":
        return Entropic()
    if name in ("didim", "output-error") and loop is None:
        raise DynidentError(f"--estimator {name} simulates the robot with its controller; say which one with --loop")
    rule = {"recovery": "physical" if recovery == "auto" else recovery}
    iv: dict[str, Any] = {} if period is None else {"instruments": "periods", "period": period}
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "wls": (di.WLS, {}),
        "ols": (di.OLS, {}),
        "gls": (GLS, {}),
        "huber": (IRLS, {}),
        "tukey": (IRLS, {"loss": "tukey"}),
        "tls": (TLS, {}),
        "ml": (ML, {}),
        "iv": (IV, iv),
        "rls": (RLS, {}),
        "ekf": (Kalman, {"rate": FILTER_RATE}),
        "ukf": (Kalman, {"kind": "unscented", "rate": FILTER_RATE}),
        "didim": (DIDIM, {"loop": loop}),
        "output-error": (OutputError, {"loop": loop}),
    }
    kind, options = kinds[name]
    return kind(**options, **rule)


def without_efforts(mechanism: di.Mechanism, logs: Sequence[di.Log], solver: Any, options: dict[str, Any]) -> di.Regression:
    """Return the evidence of commands and positions alone, after saying what they can show."""
    from dynident.identify.estimators.output_error import OutputError  # noqa: PLC0415 - rarely needed

    if not isinstance(solver, OutputError):
        raise DynidentError(
            f"log '{logs[0].name}' has no efforts: its commands and positions are fitted by --estimator output-error, with the "
            "robot's controller as --loop"
        )
    if any(log.effort_kind != "none" for log in logs):
        raise DynidentError(
            "some logs have efforts and others have none; fit those with efforts, or read all with --effort none"
        )
    solver.set_params(outputs=("position",))
    evidence = reduce(add, [di.Regression.without_effort(mechanism, log, **options) for log in logs])
    note(f"what positions alone can show, before the fit:\n{solver.visible(evidence).summary()}")
    return evidence
