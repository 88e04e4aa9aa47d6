"""The CFT-transposer robot of [Rodriguez2002]: friction by an extended Kalman filter, inertias by least squares, Appendix B.

Its measurements are not published. Torques are those of Table 4 with noise, so the procedure must give Table 4 back.
"""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident_lab.testbench import FrictionFilter
from dynident_papers.reproduce.drawing import panels
from dynident_papers.reproduce.registry import Reproduction, Row, Table, reproduction
from dynident_papers.robots import cft

POSE = (-0.1343, 0.2766, 2.4, 0.0869)
UNITS = ("N", "N m", "N m", "N m")
SPEEDS = (0.05, 0.2, 0.5, 0.9)  # m/s or rad/s


def single_joint(speed: float = 0.9, seconds: float = 40.0) -> tuple[np.ndarray, ...]:
    """Return t, q, v, a of four sines, the motion of one joint while the others rest."""
    t = np.arange(0.0, seconds, 1e-3)
    w = 2.0 * np.pi * np.array([0.1, 0.37, 0.83, 0.05])
    size, phase = np.array([0.5, 0.3, 0.2, 0.15]), np.outer(t, w) + np.array([0.0, 1.0, 2.0, 0.5])
    v = np.cos(phase) @ size
    k = speed / np.abs(v).max()
    return t, k * (np.sin(phase) @ (size / w)), k * v, -k * (np.sin(phase) @ (size * w))


@reproduction("cft-ekf", "friction of every joint by the extended Kalman filter", "[Rodriguez2002, section 2.3.1, Table 4]", 2)
def cft_ekf() -> Reproduction:
    """Run one joint at a time: m a + f(v) = tau (29), position measured at 1 kHz to 5e-6."""
    inertia = np.diagonal(cft.mass_matrix(cft.joint_from_cartesian(POSE))[0])
    t, q, v, a = single_joint()
    rng = np.random.default_rng(0)
    tables, drawn, shown = [], {}, np.linspace(-0.9, 0.9, 400)
    for i, (joint, unit) in enumerate(zip(cft.JOINTS, UNITS, strict=True)):

        def true(speed: np.ndarray, i: int = i) -> np.ndarray:
            return np.asarray(cft.friction(np.eye(4)[i] * np.reshape(speed, (-1, 1)))[:, i])

        tau = inertia[i] * a + true(v)
        ekf = FrictionFilter(0.9, float(np.abs(tau).max()), float(inertia[i]), 2, 5e-6)
        found = ekf.run(t, tau, q + 5e-6 * rng.normal(size=t.size))
        p, f = found.friction.parameters, found.friction
        printed = cft.THETA[12 + i :: 4]
        net = printed[1] * np.sign(printed[3]) + printed[2] * np.sign(printed[4])
        speeds = np.array(SPEEDS)
        names = ("B_v", "net Coulomb level", *(f"friction at {s:g}" for s in SPEEDS))
        ours = (p["Bv"], sum(p[f"Bf{k}"] * np.sign(p[f"w{k}"]) for k in (1, 2)), *f(speeds))
        known = (printed[0], round(float(net), 4), *np.round(true(speeds), 3))
        error = 100.0 * np.abs(f(speeds) - true(speeds)).max() / np.abs(true(speeds)).max()
        reason = f"noise; terms trade against each other, the curve is within {error:.2g} % of its height"
        units = [f"{unit} s/{'m' if i == 0 else 'rad'}", *[unit] * 5]
        tables.append(Table.of(f"joint {joint}", names, ours, known, units, reason))
        drawn[f"{joint} [{unit}]"] = {"Table 4": true(shown), "Kalman filter": f(shown)}
    return Reproduction(
        tuple(tables),
        {"Friction over speed [m/s, rad/s]": lambda: panels(shown, drawn, "speed [m/s, rad/s]")},
        (
            "the data of the report are not published: torques of Table 4, single-joint motions of our own, 40 s at 1 kHz",
            "B_f1, B_f2, w_1 and w_2 are not identifiable one by one, (B, w) and (-B, -w) are the same law: only the curve is",
        ),
    )


@reproduction("cft-table-4", "the twelve inertial parameters by least squares", "[Rodriguez2002, Table 4, figures 7 and 8]", 2)
def cft_table_4() -> Reproduction:
    """Follow section 4.2.1: subtract the friction, then solve F theta = tau - f along Table 3."""
    t = np.arange(4000) / 400.0
    q, v, a = cft.joint_motion(*cft.excitation(t))
    tau = cft.inverse_dynamics(q, v, a)
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    measured = tau + noise * np.random.default_rng(4).normal(size=tau.shape)
    names = [f"theta_{i}" for i in range(1, 13)]
    rows = di.Regression.from_rows(cft.regressor(q, v, a), measured - cft.friction(v), names, cft.JOINTS, cft.regressor)
    fit = di.OLS().fit(rows).result_
    deviation = np.sqrt(np.diagonal(fit.covariance))
    labels = [f"{name}: {what}" for name, what in zip(names, cft.THETA_NAMES, strict=False)]
    printed = (121.3049, 0.3107, 4.1955, 1.7453, 0.8316, 0.8687, 0.8105, 1.6721, -0.1879, 1.7850, 0.8759, 4.1328)
    why = [f"noise of 1 % of the torques: standard deviation {s:.2g}" for s in deviation]
    table = Table.of("theta_1 ... theta_12 from Table 3", labels, fit.values, printed, cft.THETA_UNITS[:12], why)
    again = cft.regressor(q, v, a) @ fit.values + cft.friction(v)
    error = np.linalg.norm(again - measured, axis=0) / np.linalg.norm(measured, axis=0)
    errors = Table.of("reconstructed against measured torque, ||tau_e - tau|| / ||tau||", cft.JOINTS, 100.0 * error, unit="%")
    drawn = {
        f"{joint} [{unit}]": {"measured": measured[:, i], "reconstructed": again[:, i]}
        for i, (joint, unit) in enumerate(zip(cft.JOINTS, UNITS, strict=True))
    }
    return Reproduction(
        (table, errors),
        {"Figures 7 and 8: reconstructed and measured torques": lambda: panels(t, drawn, "time [s]")},
        ("the measurements are not published: torques of Table 4 with noise of 1 % of their RMS",),
    )


@reproduction("cft-appendix-b", "M, C and g entry by entry", "[Rodriguez2002, Appendix B]", 2)
def cft_appendix_b() -> Reproduction:
    """Compare the recursive equations of the chain of Table 2 with Appendix B at one state."""
    robot, q, v = cft.mechanism(), np.array([0.3, 0.6, -0.9, 1.8]), np.array([0.4, -0.8, 0.6, 0.9])
    M = di.mass_matrix(robot, q[None])[0]
    C = di.coriolis_matrix(robot, q[None], v[None])[0]
    g = di.gravity(robot, q[None])[0]
    corrected = cft.mass_matrix(q)[0]
    bracket, sign = "brackets are lost in print", "two misprints: lost brackets, and a plus that must be a minus"
    reasons = {(1, 1): sign, (2, 2): bracket, (3, 3): bracket}
    printed = {**{(i, j): corrected[i, j] for i in range(4) for j in range(i, 4)}, **_as_printed(q, cft.THETA)}
    entries = tuple(
        Row(f"M_{i + 1},{j + 1}", float(M[i, j]), round(float(known), 8), "", reasons.get((i, j), ""))
        for (i, j), known in sorted(printed.items())
    )
    repaired = Table.of(
        "the misprinted ones with brackets and sign repaired",
        [f"M_{i + 1},{i + 1}" for i in (1, 2, 3)],
        [M[i, i] for i in (1, 2, 3)],
        [round(float(corrected[i, i]), 8) for i in (1, 2, 3)],
    )
    places = [(i, j) for i in range(4) for j in range(4)]
    coriolis = Table.of(
        "C(q, v)",
        [f"C_{i + 1},{j + 1}" for i, j in places],
        [C[place] for place in places],
        [round(float(cft.coriolis_matrix(q, v)[0][place]), 8) + 0.0 for place in places],
    )
    gravity = Table.of("g(q)", [f"g_{i}" for i in range(1, 5)], g, np.round(cft.gravity(q)[0], 8) + 0.0, UNITS)
    return Reproduction(
        (Table("M(q) of the chain, and Appendix B as printed", entries), repaired, coriolis, gravity),
        notes=("state: q = (0.3, 0.6, -0.9, 1.8), v = (0.4, -0.8, 0.6, 0.9); ours by the recursive equations of the chain",),
    )


def _as_printed(q: np.ndarray, theta: np.ndarray) -> dict[tuple[int, int], float]:
    """Return the three entries of M that are misprinted, with the brackets that are printed."""
    L4, L5, L6, d6, d = 0.05, 0.35, 0.30, 0.04, 0.0916
    _, _, _, t4, t5, t6, t7, t8, t9, t10, t11, t12 = theta[:12]
    q4, q5 = q[2:]
    s, c = np.sin, np.cos
    q45, twice, mixed = q4 + q5, 2 * (q4 + q5), q5 + 2 * q4
    m22 = (
        ((L5 - L4) * (s(q5) + s(mixed)) - 2 * c(q4) * d) * t8
        + t4
        + (-2 * d * c(q45) - L4 * s(twice)) * t10
        + t12 * d**2
        + (0.5 - 0.5 * c(twice)) * (L5**2 + L4**2)
        + 2 * L4 * d * s(q45)
        + d6**2
        + d**2
        + ((c(twice) - 1) * L4 - 2 * d * s(q45)) * L5 * t11
        + ((c(2 * q4) - c(q5) - 1 + c(mixed)) * L4 - 2 * d * s(q4)) * t5
        - 2 * (s(q45) * L5 + s(q4) * L6) * d * t12
        + ((c(mixed) - c(q5)) * (L4 - L5) - 2 * d * s(q4)) * t7
        - 0.5 * t12 * (c(2 * q4) - 1) * L6**2
        - 0.5 * (c(twice) - 1) * (L5**2 + L4**2) * t12
        + (-L4 * (s(2 * q4) + s(mixed) + s(q5)) - 2 * c(q4) * d) * t6
        + ((c(twice) - 1) * L4 + (c(q5) - c(mixed)) * L6) * L5 * t12
        + ((c(twice) - 1) * L4 - 2 * d * s(q45)) * t9
        + (2 * s(q45) * d - (c(q5) + c(mixed)) * L6) * L4 * t12
    )
    m33 = (
        ((L5 - L6) * L4 + 2 * L5 * L6) * t12
        + L5 * L4 * t11
        + (t9 - t5 - t7) * L4
        + 2 * t7 * L5 * c(q5)
        + L4 * (t6 + t8) * s(2 * q4)
        - L4 * (0.5 * L4 + L6) * t12
        + 0.5 * L4 * t11
        + t5
        + t7 * c(2 * q4)
        - L4 * (L6 + L5) * t12
        + L5 * t11
        + t9
        + t7
        + t5 * c(mixed)
        + (t8 + t10 + t6) * L4 * s(mixed)
        + ((2 * L5 - L4) * t8 - (t6 + t10) * L4) * s(q5)
        + (L4**2 + (L6 - L5) * L4 + L5**2 + L6**2) * t12
        + (0.5 * L4 - L5) * (t12 + t11)
        - t9 * L4 * c(twice)
        + (L5**2 - L5 * L4 + L4**2) * t11
        + (t7 - t9 + s(twice) * t10 - t5) * L4
    )
    m44 = (
        (0.5 * L4**2 - L5 * L4) * (t12 + t11)
        - L4 * t9 * c(twice)
        + (0.5 * L4**2 - L5 * L4 + L5**2) * (t12 + t11)
        + (s(twice) * t10 - t9) * L4
    )
    return {(1, 1): float(m22), (2, 2): float(m33), (3, 3): float(m44)}


@reproduction("cft-log", "friction at the joints from a log of the motors", "[Rodriguez2002, section 4.2.1, Table 4]", 6)
def cft_log() -> Reproduction:
    """Run Table 3 on the machine, and fit bodies and friction laws of q1, q2, q4, q5 to currents and encoder counts."""
    machine = cft.machine(added_inertia=0.2)
    t = np.linspace(0.0, 10.0, 2001)
    run = machine.simulate(cft.cartesian_reference(t, *cft.excitation(t)))
    fit = di.fit_friction(machine.model, run.log, dict.fromkeys(cft.JOINTS, "viscous + tanh"))
    top = np.abs(run.truth.motion.v).max(axis=0)
    rows, drawn, share = [], {}, np.linspace(-1.0, 1.0, 201)
    for i, (joint, unit) in enumerate(zip(cft.JOINTS, UNITS, strict=True)):
        law, true = fit.friction[joint], cft.friction(np.outer(top[i] * share, np.eye(4)[i]))[:, i]
        for part in (0.3, 0.6, 1.0):
            known = cft.friction(part * top[i] * np.eye(4)[i])[0, i]
            why = "one tanh term instead of two, which oppose each other"
            rows.append(Row(f"{joint} at {part * top[i]:.2f}", float(law(part * top[i])), round(float(known), 3), unit, why))
        drawn[f"{joint} [{unit}]"] = {"Table 4": true, "from the log": law(top[i] * share)}
    return Reproduction(
        (Table("friction at shares of the largest speed", tuple(rows)),),
        {"Friction over the share of the largest speed": lambda: panels(share, drawn, "share of the largest speed")},
        ("a virtual machine of Tables 4 to 6 with 0.2 kg m^2 added to q4 and q5; motors act on nuts, base and rail",),
    )
