"""One axis as linear systems: winding, masses, current, velocity and position loop [Roldan2017, sections 3.2 and 3.3.1].

Continuous: loops without sampling, dead times as Pade approximations of order 5. Sampled: every loop with its own cycle,
lifted exactly to the cycle of its outermost loop. Both are derivatives of the expressions that simulation compiles
(`dynident.control.tick`). ``to_control()`` returns python-control systems. Limits, play, quantisation, Coulomb friction and
efficiency are omitted because they are not linear.

Blocks are joined by wires, algebraic loops included:

    x' = A x + B u,  y = C x + D u,   u = K y + L r   =>   u = (1 - K D)^-1 (K C x + L r)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import number
from dynident.control import Cascade
from dynident.control.tick import ENTRIES, INPUTS, OUTPUTS, AxisLoops, Loop, Part, Plant, period_map
from dynident.drive import Chain, Drive
from dynident.drive.drive import linear_drive
from dynident.errors import DynidentError, require
from dynident_lab.servo.bode import Margins, cutoff_frequency, margins
from dynident_lab.servo.chain import receptance
from dynident_lab.servo.linear import StateSpace, TransferFunction

LOOPS = ("position", "velocity", "current")
OUTPUT = {"position": "rho", "velocity": "omega", "current": "current"}
Row = Sequence[float] | Array
Wire = Mapping[str, float]
PADE = 5  # order of the approximation of a dead time


@dataclass(frozen=True)
class Axis:
    """One drive with its cascade, and the mechanism as an inertia on its last mass.

    Parameters
    ----------
    drive : Drive
        Motor, transmission, encoder.
    loops : Cascade
        Gains and cycles.
    load : float
        Inertia of the mechanism at one configuration, at the motor [kg m^2]: M_rho / ratio^2.
    viscous : float
        Slope of the rotor's friction at the speed of interest [N m s/rad], as ``drive.friction(speed, by="v")``.
    delay : float, optional
        Time between a tick of the innermost loop and its command at the motor [s]: computation, communication, amplifier;
        the delay of the loops when omitted.
    actuator : int
        Index of the actuator, if the gains of the cascade are given per actuator.

    Examples
    --------
    >>> from dynident.control import Cascade
    >>> from dynident.drive import Drive, Motor
    >>> from dynident_lab.servo import Axis
    >>> drive = Drive("A", Motor(torque_constant=1.43, inertia=13e-4))
    >>> axis = Axis(drive, Cascade(19.2, 0.14, 11.45, position_cycle=5e-3, velocity_cycle=250e-6), viscous=1.7e-3)
    >>> round(axis.bandwidth("position"), 2)
    3.34
    """

    drive: Drive
    loops: Cascade
    load: float = 0.0
    viscous: float = 0.0
    delay: float | None = None
    actuator: int = 0

    def __post_init__(self) -> None:
        require(self.drive, Drive, "axis: drive")
        require(self.loops, Cascade, "axis: loops")
        for name in ("load", "viscous", "delay"):
            value = getattr(self, name)
            if name != "delay" or value is not None:
                object.__setattr__(self, name, number(f"axis: {name}", value, least=0.0))
        motor = self.drive.motor
        if self.loops.current is not None and motor.inductance == 0.0 and motor.resistance == 0.0:
            raise DynidentError(
                f"axis: drive '{self.drive.actuator}' has a current loop but neither resistance nor inductance; give the "
                "motor's, or current=None for an ideal loop"
            )

    @cached_property
    def gains(self) -> dict[str, float]:
        """Gains, corners of filters and feed-forward shares of this axis, by their names in the loops."""
        return self._loops.gains

    @cached_property
    def _loops(self) -> AxisLoops:
        return AxisLoops(self.loops, self.drive.encoder, self.actuator)

    @property
    def dead_time(self) -> float:
        """Time between a tick of the innermost loop and its command at the motor [s]: `delay`, or the value of the loops."""
        return self.loops.delay if self.delay is None else self.delay

    @cached_property
    def chain(self) -> Chain:
        """Rotor and masses behind it, with the load on the last and viscous friction on the first."""
        chain = self.drive.chain.loaded(self.load)
        return replace(chain, viscous=(self.viscous, *([0.0] * (len(chain) - 1))))

    @property
    def mechanical(self) -> TransferFunction:
        """Speed of the rotor per torque of the motor (eq. 3.6; with elastic shafts s TF1)."""
        return receptance(self.chain, 0, 0).rate

    def plant(self) -> StateSpace:
        """Return winding and mechanics without any loop; the command is a voltage, or the current of an ideal loop."""
        chain, ratio = self.chain, self.drive.transmission.ratio
        A, B, current = linear_drive(chain, self.drive.motor, self.loops.current is not None)
        at, n = len(chain) - 1 if self.drive.encoder.side == "joint" else 0, len(chain)
        C, D = np.eye(len(A))[[n - 1, at, n + at, 0]], np.zeros((4, 2))
        C[0] /= ratio
        C[3], D[3] = np.split(current, [len(A)])
        B[:, 1] /= ratio
        return StateSpace(A, B, C, D, ("u", "disturbance"), ("rho", "theta", "omega", "current"))

    def loop(self, loop: Loop = "position", *, sampled: bool = False, open: bool = False) -> StateSpace:
        """Return one loop with all loops inside it."""
        self._check(loop)
        if not sampled:
            return self._continuous(loop, open)
        plant = self.plant()
        ratio = self.drive.transmission.ratio
        period = period_map(self._loops, Plant(plant.A, plant.B, plant.C, plant.D), loop, ratio=ratio, delay=self.dead_time)
        if open:
            return StateSpace(period.A, period.B[:, :1], period.C, np.zeros((1, 1)), ("error",), ("measured",), period.cycle)
        names = "reference", *INPUTS[1:]
        return StateSpace(period.closed().real, period.B, period.outputs, np.zeros((3, 3)), names, OUTPUTS, period.cycle)

    def _check(self, loop: str) -> None:
        if loop not in LOOPS:
            raise DynidentError(f"loop is {loop!r}; use 'position', 'velocity' or 'current'")
        if loop == "current" and self.loops.current is None:
            raise DynidentError("the cascade has an ideal current loop; give Cascade(current=CurrentLoop(...)) to analyse it")

    def _part(self, part: Part, name: str) -> StateSpace:
        """Return one part of the continuous loops, with inputs such as ``name.error``."""
        return StateSpace(*self._loops.continuous(part), tuple(f"{name}.{entry}" for entry in ENTRIES[part]), (name,))

    def _continuous(self, loop: Loop, open: bool) -> StateSpace:
        ratio, ideal = self.drive.transmission.ratio, self.loops.current is None
        wires: dict[str, dict[str, float]] = {"u": {"command": 1.0}, "disturbance": {} if open else {"load": 1.0}}
        blocks = [self.plant(), delay_block(self.dead_time, "command")]
        if not ideal:
            blocks += [self._part("current", "volts")]
            wires["volts.error"] = {"amperes": 1.0, "current": -1.0}
        if loop != "current":
            blocks += [self._part("encoder", "speed"), self._part("velocity", "amperes")]
            wires |= {"speed.rate": {"omega": 1.0}, "amperes.error": {"wanted": ratio, "speed": -1.0}}
        if loop == "position":
            blocks += [self._part("position", "issued"), delay_block(self.loops.position_delay, "wanted")]
            wires["wanted.in"] = {"issued": 1.0}
            wires["issued.slope"] = {} if open else {"reference_velocity": 1.0}
        wires["command.in"] = {"amperes" if ideal else "volts": 1.0}
        cut = {"position": "issued.error", "velocity": "amperes.error", "current": "volts.error"}[loop]
        measured = {"position": {"theta": 1.0 / ratio}, "velocity": {"speed": 1.0}, "current": {"current": 1.0}}[loop]
        if open:
            wires[cut] = {"error": 1.0}
            return connect(blocks, wires, ("error",), {"measured": measured})
        wires[cut] = {"reference": 1.0} | {name: -value for name, value in measured.items()}
        outputs = {name: {name: 1.0} for name in OUTPUTS}
        system = connect(blocks, wires, ("reference", "reference_velocity", "load"), outputs)
        return replace(system, inputs=("reference", *INPUTS[1:]))

    def response(self, frequency: ArrayLike, loop: Loop = "position", *, sampled: bool = True) -> Complex:
        """Return the response of a loop's own output to its reference, the velocity feed-forward included."""
        f = np.atleast_1d(np.asarray(frequency, dtype=np.float64))
        system = self.loop(loop, sampled=sampled)
        H = system.response(f)[:, system.outputs.index(OUTPUT[loop])]
        return np.asarray(H[:, 0] + 2j * np.pi * f * H[:, 1] if loop == "position" else H[:, 0])

    def disturbance_response(self, frequency: ArrayLike, loop: Loop = "position", *, sampled: bool = True) -> Complex:
        """Return the response of a loop's own output to the torque that the mechanism requires."""
        system = self.loop(loop, sampled=sampled)
        return np.asarray(system.response(frequency)[:, system.outputs.index(OUTPUT[loop]), 2])

    def margins(self, loop: Loop = "position", *, sampled: bool = True) -> Margins:
        """Return gain and phase margin of a loop whose inner loops are closed."""
        system = self.loop(loop, sampled=sampled, open=True)
        return margins(lambda f: system.response(f)[:, 0, 0], *self._range(loop, sampled))

    def bandwidth(self, loop: Loop = "position", *, sampled: bool = True) -> float:
        """Return the -3 dB bandwidth of a closed loop."""
        system = self.loop(loop, sampled=sampled)
        row, share = system.outputs.index(OUTPUT[loop]), 2j * np.pi * (loop == "position")

        def closed(f: Array) -> Complex:
            H = system.response(f)[:, row]
            return np.asarray(H[:, 0] + share * f * H[:, 1])

        return cutoff_frequency(closed, *self._range(loop, sampled))

    def stable(self, loop: Loop = "position", *, sampled: bool = True) -> bool:
        """Return whether a loop is stable with all loops inside it."""
        poles = self.loop(loop, sampled=sampled).poles
        if sampled:
            return bool(np.all(np.abs(poles) <= 1.0 + 1e-7))
        # A current loop leaves the motion free: its double pole at zero is computed as the root of the rounding error of A.
        return bool(np.all(poles.real <= 1e-6 + 1e-8 * np.abs(poles).max()))

    def _range(self, loop: Loop, sampled: bool) -> tuple[float, float]:
        """Return the frequency range of the analysis of a loop [Hz]."""
        top = 0.5 / self.loops.cycles[loop]
        return 1e-5 * top, (1.0 - 1e-9) * top if sampled else 1e3 * top


def block(numerator: Row, denominator: Row, name: str, time: float = 1.0) -> StateSpace:
    """Return y = N(p) / D(p) u with p = s time in controllable form; coefficients of the highest power first."""
    d = np.trim_zeros(np.array(denominator), "f")
    n = np.concatenate([np.zeros(d.size - len(numerator)), numerator])
    order, through = d.size - 1, n[0] / d[0]
    A, B = np.eye(order, k=1), np.zeros((order, 1))
    A[-1:], B[-1:] = -d[:0:-1] / d[0], 1.0 / d[0]
    C = (n - through * d)[None, :0:-1]
    return StateSpace(A / time, B / time, C, np.array([[through]]), (f"{name}.in",), (name,))


def delay_block(delay: float, name: str) -> StateSpace:
    """Return the Pade approximation of a dead time, exp(-s delay), accurate to 1e-4 degrees up to the frequency 0.5 / delay."""
    c = [1.0]  # D(p) = sum c_k p^k, N(p) = D(-p): the amplitude is one at all frequencies
    for k in range(1, PADE + 1):
        c.append(c[-1] * (PADE - k + 1) / (k * (2 * PADE - k + 1)))
    d = np.array(c)[::-1] / c[-1]
    return block(d * (-1.0) ** np.arange(PADE, -1, -1), d, name, delay) if delay else block([1.0], [1.0], name)


def connect(
    blocks: Sequence[StateSpace], wires: Mapping[str, Wire], inputs: Sequence[str], outputs: Mapping[str, Wire]
) -> StateSpace:
    """Return the system of blocks joined by wires."""
    from scipy.linalg import block_diag  # noqa: PLC0415 - scipy is imported on first use

    ins = [name for part in blocks for name in part.inputs]
    outs = [name for part in blocks for name in part.outputs]
    A, B, C, D = (block_diag(*(getattr(part, name) for part in blocks)) for name in "ABCD")
    K, L = np.zeros((len(ins), len(outs))), np.zeros((len(ins), len(inputs)))
    for name, sources in wires.items():
        for source, value in sources.items():
            target = L[:, inputs.index(source)] if source in inputs else K[:, outs.index(source)]
            target[ins.index(name)] += value
    P = np.zeros((len(outputs), len(outs)))
    for i, sources in enumerate(outputs.values()):
        for source, value in sources.items():
            P[i, outs.index(source)] += value
    loop = np.eye(len(ins)) - K @ D
    if np.linalg.cond(loop) > 1e12:
        raise DynidentError("the loops have no solution because an algebraic loop has a gain of exactly one; change a gain")
    inside, outside = np.linalg.solve(loop, K @ C), np.linalg.solve(loop, L)
    return StateSpace(A + B @ inside, B @ outside, P @ (C + D @ inside), P @ D @ outside, tuple(inputs), tuple(outputs))
