"""The 2PRU-1PRS shaking table MAST of [Roldan2017, section 4.2] and [Roldan2016]: drives, bandwidth, torques."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dynident as di
from dynident.drive import Chain
from dynident.simulate import Run
from dynident_lab.servo import bandwidth, fit_machine
from dynident_lab.servo.chain import receptance
from dynident_papers.reproduce.drawing import panels
from dynident_papers.reproduce.registry import Reproduction, Row, Table, nearer, reproduction
from dynident_papers.robots import mast
from dynident_papers.servo.modal_fit import fit_modal
from dynident_papers.workspace.workspace import workspace_map

FREQUENCIES = (0.4, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
CYCLES = {0.4: 1.5, 5.0: 5.0, 10.0: 15.0}  # of the time domain tests, by their frequency [Hz]
SIZES = {"z": 5e-3, "psi": 1.5e-2, "theta": 1.5e-2}  # their amplitudes [m, rad], ours: friction stops smaller ones at 10 Hz
QUICK: dict[str, Any] = {"elastic": False, "step": 5e-4}  # 914 Hz shafts do not act below 20 Hz


BARE = (mast.TABLE_4_2["J_motor"], mast.TABLE_4_2["J_guide"] / mast.GEAR**2)  # kg m^2: rotor and guide alone


def resonance(k: float, J_1: float, J_2: float) -> float:
    """Return the frequency [Hz] of two inertias on a shaft."""
    return float(np.sqrt(k * (J_1 + J_2) / (J_1 * J_2)) / (2.0 * np.pi))


def rotor_and_guide() -> bool:
    """Return whether inertias and stiffness that round to the printed ones give the printed f_n without other parts."""
    ends = [
        resonance(mast.TABLE_4_2["k_t"] - side * 5e-4, BARE[0] + side * 5e-8, BARE[1] + side * 5e-8 / mast.GEAR**2)
        for side in (1.0, -1.0)
    ]
    return ends[0] <= mast.TABLE_4_2["f_n"] + 0.05 and mast.TABLE_4_2["f_n"] - 0.05 <= ends[1]


@reproduction("mast-table-4-2", "resonances of the actuators", "[Roldan2017, Table 4.2 and figure 4.20]", 2)
def mast_table_4_2() -> Reproduction:
    """J_1 and J_2 (4.33), (4.34) on the shaft k_t, and the same from a noisy hammer test."""
    k, c = mast.TABLE_4_2["k_t"], 5e-4
    chain = Chain((mast.J_1, mast.J_2), (k,), (c,))
    motor, guide = receptance(chain, 0, 0), receptance(chain, 1, 0)
    second = np.sqrt(k / mast.J_2) / (2.0 * np.pi)
    first, bare = (resonance(k, J, J_2) for J, J_2 in ((mast.J_1, mast.J_2), BARE))
    f, rng = np.arange(20.0, 1500.0, 2.0), np.random.default_rng(0)
    noise = 1.0 + 0.01 * (rng.standard_normal(f.size) + 1j * rng.standard_normal(f.size)) / np.sqrt(2.0)
    hammer = fit_modal(f, receptance(chain, 1, 1).response(f) * (2j * np.pi * f) ** 2 * noise)
    found = hammer.two_mass("load").chain
    inertia = "the printed f_n is that of rotor and guide alone on k_t, without gearbox, coupling and carriage"
    about = 'printed as "approximately located at 900 Hz", to one digit'
    virtual = "a virtual hammer test with 1 % of noise; without noise it is the printed number"
    clean = fit_modal(f, receptance(chain, 1, 1).response(f) * (2j * np.pi * f) ** 2).two_mass("load").chain
    rows = (
        Row("J_1", mast.J_1, None, "kg m^2"),
        Row("J_2", mast.J_2, None, "kg m^2"),
        Row("resonance of TF_2", float(second), 900, "Hz", about),
        Row("resonance of TF_1", float(first), mast.TABLE_4_2["f_n"], "Hz", inertia),
        Row("resonance of TF_1, rotor and guide alone", bare, None, "Hz"),
        Row("k_t from a hammer test", float(found.stiffness[0]), k, "N m/rad", virtual, "round trip"),
        Row("J_1 from a hammer test", float(found.inertias[0]), None, "kg m^2", virtual),
    )
    across = np.geomspace(100.0, 3000.0, 600)
    return Reproduction(
        (Table("two inertias on a shaft", rows),),
        {"transfer functions of an actuator (figure 4.20)": lambda: motor.plot(across, guide)},
        experiments={
            about: lambda: round(second, -2) == 900.0,
            inertia: rotor_and_guide,
            virtual: lambda: abs(float(clean.stiffness[0]) - k) < 5e-4 < abs(float(found.stiffness[0]) - k),
        },
        notes=("the hammer test has a damping of 5e-4 N m s/rad: with the printed 3e-8 ordinary spectral lines show nothing",),
    )


def one_loop(f: np.ndarray, gain: float, corner: float, damping: float) -> np.ndarray:
    """Return the response at frequencies [Hz] of a position gain [1/s], sampled every 5 ms, over a velocity loop with PI.

    The velocity loop is (2 d w s + w^2) / (s^2 + 2 d w s + w^2) with its corner w [rad/s]; a cycle delays by half of itself.
    """
    s = 2j * np.pi * f
    rest = 2.0 * damping * corner * s + corner**2
    L = gain / s * np.exp(-s * 0.5 * mast.ASSUMPTIONS["position_cycle"].value) * rest / (s**2 + rest)
    return np.asarray(L / (1.0 + L))


def best_loop() -> tuple[np.ndarray, np.ndarray]:
    """Return gain, corner and damping of the loop fitted to the printed points, and its response there."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

    f = np.array(list(mast.BODE))
    printed = np.array([size * np.exp(1j * np.deg2rad(phase)) for size, phase in mast.BODE.values()])
    found = least_squares(lambda x: np.abs(one_loop(f, *x) / printed - 1.0), (20.0, 60.0, 1.0)).x
    return found, one_loop(f, *found)


def fitted_machine(parameters: str, **options: Any) -> di.VirtualRobot:
    """Return the table with the fitted loops."""
    (gain, corner, damping), _ = best_loop()
    inertia = (mast.J_1_ADJUSTED + mast.J_2) / mast.ASSUMPTIONS["torque_constant"].value
    loops = {"velocity_gain": 2.0 * damping * corner * inertia, "velocity_integral": corner**2 * inertia, "position_delay": 0.0}
    return mast.machine(gain, parameters=parameters, **loops, **options)


def smallest_and_larger() -> bool:
    """Return whether the bandwidth in print lies between those of sines of 1 and 5 mm, with the fitted loop and friction."""
    low, high = (bandwidth(fitted_machine("adjusted"), "z", size, FREQUENCIES).bandwidth for size in (1e-3, 5e-3))
    return bool(low < mast.BANDWIDTH_MAST < high)


@reproduction(
    "mast-bode",
    "bandwidth and Bode points of the closed loop",
    "[Roldan2017, section 4.2.4.1, figures 4.21 to 4.23]",
    4,
    kind="virtual",
)
def mast_bode() -> Reproduction:
    """Stepped sines of 1 mm and 2.5 mrad about home, with the mechanism and of the actuators alone."""
    z = bandwidth(mast.machine(), "z", 1e-3, FREQUENCIES)
    alone = bandwidth(mast.unloaded(), "z", 1e-3, FREQUENCIES, mechanism=False)
    tilts = [bandwidth(mast.machine(), name, 2.5e-3, FREQUENCIES) for name in ("psi", "theta")]
    flat = "depends on the amplitude, which is not printed: friction takes more of a sine of 1 mm than of one of 5 mm"
    gains = (
        "gains are not printed: three fitted to these six numbers, a position gain of 20 1/s over a PI velocity loop of 11 Hz, "
        "at least halve every difference"
    )
    rows = [
        Row("bandwidth with mechanism, z", z.bandwidth, mast.BANDWIDTH_MAST, "Hz", flat),
        Row("bandwidth of the actuators alone", alone.bandwidth, mast.BANDWIDTH_ACTUATORS, "Hz", flat),
        Row("bandwidth, psi over theta", tilts[0].bandwidth / tilts[1].bandwidth, None, "", '"no significant differences"'),
    ]
    points = []
    for hertz, (size, phase) in mast.BODE.items():
        i = FREQUENCIES.index(hertz)
        points += [
            Row(f"magnitude at {hertz:g} Hz", 100.0 * float(z.magnitude[i]), 100.0 * size, "%", gains),
            Row(f"phase at {hertz:g} Hz", float(z.phase[i]), phase, "deg", gains),
        ]

    def fitted() -> list[float]:
        return [x for value in best_loop()[1] for x in (100.0 * abs(value), float(np.angle(value, deg=True)))]

    return Reproduction(
        (Table("bandwidths", tuple(rows)), Table("points of the z motion", tuple(points))),
        {
            "z motion with the mechanism and of the actuators alone (figure 4.23)": lambda: z.plot(alone),
            "tilts psi and theta (figures 4.21, 4.22)": lambda: tilts[0].plot(tilts[1]),
        },
        mast.BANDWIDTH_NOTES,
        {flat: smallest_and_larger, gains: lambda: nearer(points, fitted())},
    )


def _sine(f: float, amplitude: float, cycles: float, axis: int = 0) -> di.Motion:
    """Return one coordinate of the table moving about home, z, psi or theta."""
    w, t = 2.0 * np.pi * f, np.arange(0.0, cycles / f, 1e-3)
    way = amplitude * np.eye(3)[[axis]]
    s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
    return di.Motion(t, mast.TRIPOD.home + way * s, way * w * c, -way * w**2 * s)


@reproduction(
    "mast-torques",
    "torques with catalogue data, and their fit",
    "[Roldan2017, section 4.2.4.2, figures 4.24 to 4.26]",
    2,
    kind="virtual",
)
def mast_torques() -> Reproduction:
    """The machine with fitted drives replaces the measured one; the catalogue machine is fitted to its torques."""
    real, catalogue = (fitted_machine(name, **QUICK) for name in ("adjusted", "catalogue"))
    motions = {f: _sine(f, SIZES["z"], CYCLES[f]) for f in (0.4, 10.0)}
    runs = {f: (real.simulate(motion), catalogue.simulate(motion)) for f, motion in motions.items()}
    fit = fit_machine(catalogue, list(motions.values()), [run.log for run, _ in runs.values()])
    virtual = "printed as about 70 %: ours rounds to it"
    wrong = 100.0 * torque_error(*runs[0.4])
    rows = (
        Row("torque error with catalogue data, 0.4 Hz", wrong, 70, "%", virtual),
        Row("torque difference before the fit, both motions", 100.0 * fit.before, None, "%"),
        Row("torque difference after the fit", 100.0 * fit.after, None, "%"),
        Row("J_1 over fitted J_1", mast.J_1 / float(fit.values[0]), 1.56, "", "", "round trip"),
        Row("Coulomb friction, catalogue", mast.COULOMB_CATALOGUE, None, "N m"),
        Row("Coulomb friction, fitted", float(fit.values[1]), mast.COULOMB_ADJUSTED, "N m", "", "round trip"),
    )
    figures: dict[str, Callable[[], Any]] = {}
    for axis, (name, size) in enumerate(SIZES.items()):
        for f, cycles in CYCLES.items():
            title = f"{name} motion at {f:g} Hz: position and torque (figure 4.{24 + axis})"
            figures[title] = partial(_drawn, real, catalogue, _sine(f, size, cycles, axis), axis)
    note = "the measured log is not published; the virtual machine with the thesis' fitted numbers stands in, without noise"
    tables = (Table("the simulator fitted to torques", rows),)
    return Reproduction(tables, figures | {"the fit": fit.plot}, (note,), {virtual: lambda: round(wrong, -1) == 70.0})


def torque_error(real: Run, catalogue: Run) -> float:
    """Return the mean torque deficit of the machine with catalogue data, relative to the torque of the real one."""
    measured, first = (np.abs(run.truth.motor_torque[len(run.truth.t) // 4 :]) for run in (real, catalogue))
    return float(np.mean(measured - first) / np.mean(measured))


def _drawn(real: di.VirtualRobot, catalogue: di.VirtualRobot, motion: di.Motion, axis: int) -> Any:
    """Return position of a coordinate and torque of a motor that moves it, with fitted and with catalogue data."""
    own, other, unit = real.simulate(motion), catalogue.simulate(motion), "mm" if axis == 0 else "mrad"
    motor = 1 if axis == 1 else 0  # psi turns about the axis on which sliders 1 and 3 are
    curves = {
        f"{list(SIZES)[axis]} [{unit}]": {
            "command": 1e3 * (own.reference.q[:, axis] - mast.TRIPOD.home[axis]),
            "machine": 1e3 * (own.truth.motion.q[:, axis] - mast.TRIPOD.home[axis]),
            "catalogue": 1e3 * (other.truth.motion.q[:, axis] - mast.TRIPOD.home[axis]),
        },
        f"torque of motor {motor + 1} [N m]": {
            name: run.truth.motor_torque[:, motor] for name, run in (("machine", own), ("catalogue", other))
        },
    }
    return panels(own.truth.t, curves, "time [s]", 1)


@reproduction("mast-workspace", "singularities over the tilts", "[Roldan2016, section 2.4.2]", 1)
def mast_workspace() -> Reproduction:
    """Tilts up to 20 degrees, which the paper allows, are free of singularities."""
    half = 1.5 * mast.LARGEST_TILT
    found = workspace_map(mast.mechanism(passive="ideal"), "platform", ("psi", "theta"), ((-half, half),) * 2, size=31)
    inside = np.maximum(np.abs(found.first)[:, None], np.abs(found.second)[None, :]) <= mast.LARGEST_TILT
    rows = (
        Row("reached up to 20 degrees", 100.0 * float(found.reached[inside].mean()), None, "%"),
        Row("least index of type 1 there", float(np.nanmin(found.type1[inside])), None),
        Row("least index of type 2 there", float(np.nanmin(found.type2[inside])), None),
    )
    return Reproduction((Table("the paper prints no numbers", rows),), {"psi and theta up to 30 degrees": found.plot})
