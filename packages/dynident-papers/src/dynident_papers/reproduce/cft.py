"""The CFT-transposer robot of [Rodriguez2002]: kinematics, excitation, encoders and gains, from its own tables."""

from __future__ import annotations

from functools import cache

import numpy as np

import dynident as di
from dynident_papers.properties import check
from dynident_papers.reproduce.drawing import field, panels
from dynident_papers.reproduce.registry import Reproduction, Row, Table, reproduction
from dynident_papers.robots import cft

TABLE_1 = {"L2": 0.25, "L4": 0.05, "L5": 0.35, "L6": 0.30, "L7": 0.08, "L8": 0.48, "d6": 0.04, "ds": 0.185, "d20": 0.0916}
POSE = (-0.1343, 0.2766, 2.4, 0.0869)  # xc1 ... xc4: offsets of the excitation (section 4.2.1)


@reproduction("cft-table-2", "Denavit-Hartenberg chain and the position of the tool (59)", "[Rodriguez2002, Tables 1 and 2]")
def cft_table_2() -> Reproduction:
    """Multiply the transforms of Table 2 and compare with the printed closed form."""
    L, half = TABLE_1, 0.5 * np.pi
    rows = [  # a and alpha of the row before, d, theta
        (0.0, -half, 0.0, 0.0, "prismatic"),
        (0.0, half, L["L2"], 0.0, "revolute"),
        (0.0, -half, 0.0, -half, "prismatic"),
        (0.0, -half, 0.0, 0.0, "revolute"),
        (L["L4"], 0.0, 0.0, 0.0, "revolute"),
        (L["L5"], 0.0, L["d6"], 0.0, "revolute"),
        (L["L6"], 0.0, -L["d6"], 0.0, "revolute"),
        (L["L7"], 0.0, 0.0, half, "fixed"),
        (L["L8"], 0.0, 0.0, 0.0, "fixed"),
    ]
    chain = di.Mechanism.from_dh(rows, "modified", "Table 2")
    q1, q2, q4, q5 = q = cft.joint_from_cartesian((-0.1, 0.3, 3.0, 0.1))[0]
    joints = [q1, q2, cft.carriage(q)[0], q4, q5, -q5, np.pi - q4]  # (54), (55): the pantograph and the horizontal tool
    tool = di.forward_kinematics(chain, np.array([joints]), "link_9")[1][0]
    sin, cos = np.sin, np.cos
    printed = (
        -(L["L8"] + L["d20"]) * sin(q2)
        + 0.5 * (cos(q4 - q2) - cos(q2 + q4)) * L["L6"]
        + 0.5 * (cos(q5 - q2 + q4) - cos(q5 + q2 + q4)) * (L["L5"] - L["L4"]),
        q1
        + (L["L8"] + L["d20"]) * cos(q2)
        - 0.5 * (sin(q2 + q4) - sin(q4 - q2)) * L["L6"]
        - 0.5 * (sin(q5 - q2 + q4) + sin(q5 + q2 + q4)) * (L["L5"] - L["L4"]),
        L["L2"] - L["L7"] + (L["L6"] + L["L4"]) * cos(q4) + L["L5"] * cos(q4 + q5),
    )
    sign = "misprint in (59): the sign between the two sines of L6 must be plus"
    position = Table.of(
        "tool at xc = (-0.1, 0.3, 3.0, 0.1): the chain of Table 2, and (59) as printed minus the chain",
        [f"{axis}, {what}" for axis in ("x_T", "y_T", "z_T") for what in ("chain", "(59) minus chain")],
        np.column_stack([tool, np.array(printed) - tool]).ravel(),
        unit="m",
        reason=("", "", "", sign, "", ""),
    )
    counts = Table(
        "coordinates",
        (
            Row("joints of the chain", chain.dof, 7, kind="round trip"),
            Row("independent coordinates", cft.mechanism().dof, 4),
        ),
    )
    plus = printed[1] + np.sin(q4 - q2) * -L["L6"]  # half of the term twice: reverses its sign
    experiments = {sign: lambda: abs(plus - tool[1]) < 1e-12}
    return Reproduction((position, counts), notes=("rows 8 and 9 of Table 2 are fixed: the tool",), experiments=experiments)


@reproduction("cft-jk", "condition number J_k of the excitation", "[Rodriguez2002, Table 3, section 4.2.1]")
def cft_jk() -> Reproduction:
    """Compute F along Table 3 in the possible readings of the text."""
    a = np.array(
        [
            [-0.1102, 0.0042, -0.0014, -0.0173],
            [0.1629, -0.0118, 0.1438, -0.0043],
            [1.9698, 0.0014, -0.0267, 0.0021],
            [0.0002, -0.0302, 0.0021, -0.0800],
        ]
    )
    b = np.array(
        [
            [0.0037, 0.0009, 0.0005, -0.0168],
            [0.0188, -0.0257, 0.0033, -0.0277],
            [0.0011, 0.0005, -0.0060, 0.0024],
            [-0.0347, 0.0273, 0.0294, 0.0447],
        ]
    )

    def motion(frequency: float, velocities: bool, wobble: float = 0.0, seed: int = 0) -> tuple[np.ndarray, ...]:
        """Return t, xc, vc, ac of (43) over one period; without `velocities` a and b are amplitudes of position."""
        draw = np.random.default_rng(seed).uniform(-wobble, wobble, (2, 4, 4))
        w = 2.0 * np.pi * frequency * np.arange(1, 5)
        A, B = (a + draw[0]) / (w if velocities else 1.0), (b + draw[1]) / (w if velocities else 1.0)
        t = np.arange(400) / (400 * frequency)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        return t, np.array(POSE) + s @ A.T - c @ B.T, c @ (A * w).T + s @ (B * w).T, -s @ (A * w**2).T + c @ (B * w**2).T

    def condition(*case: float) -> float:
        _, *moved = motion(*case)  # type: ignore[arg-type]
        return float(np.linalg.cond(cft.regressor(*cft.joint_motion(*moved)).reshape(-1, 12)))

    near = [condition(0.1, False, 0.5e-4, seed) for seed in range(60)]
    why = f"Table 3 is rounded: coefficients that round to it give {min(near):.2f} to {max(near):.2f}"
    readings = {
        "literal (43), 0.4 Hz": condition(0.4, True),
        "literal (43), 0.1 Hz (leaves two limits)": condition(0.1, True),
        "amplitudes of position, 0.4 Hz": condition(0.4, False),
    }
    t, x, *_ = motion(0.1, False)
    ends = np.stack([x.min(axis=0), x.max(axis=0)], axis=1)
    spans = Table.of(
        "range of the motion, within the limits of Table 5",
        [f"{name}, limit {limit:g}" for name, limits in zip(cft.CARTESIAN, cft.LIMITS, strict=True) for limit in limits],
        ends.ravel(),
        unit=["rad" if name == "xc3" else "m" for name in cft.CARTESIAN for _ in range(2)],
    )
    return Reproduction(
        (
            Table("J_k = cond(F), 12 columns, 400 samples of one period", (Row("J_k", condition(0.1, False), 277.4, "", why),)),
            Table.of("other readings of (43) and Table 3", list(readings), list(readings.values())),
            spans,
        ),
        {
            "Excitation of Table 3 in Cartesian coordinates with the limits of Table 5 (dotted)": lambda: panels(
                t,
                {f"{name} [{'rad' if i == 2 else 'm'}]": {"": x[:, i]} for i, name in enumerate(cft.CARTESIAN)},
                "time [s]",
                limits={f"{name} [{'rad' if i == 2 else 'm'}]": cft.LIMITS[i] for i, name in enumerate(cft.CARTESIAN)},
            )
        },
        (
            "the reading is inferred: Table 3 as amplitudes of position with 0.1 Hz is the one that keeps the limits and gives "
            "the printed number; the 0.4 Hz of the text is then its highest harmonic",
        ),
        {why: lambda: any(round(x, 1) == 277.4 for x in near)},
    )


@reproduction(
    "cft-table-5", "encoder factors, spans, and the measured relations (50), (51)", "[Rodriguez2002, Table 5, (48)-(51)]"
)
def cft_table_5() -> Reproduction:
    """Compute the factors from screws and gears, and the shifts of the nuts from the lengths of Table 1."""
    printed = np.array([8.7989e-6, 7.5209e-6, 1.6886e-5, 5.0e-6])
    limits = np.array([[-0.2918, 0.0232], [-0.0269, 0.5801], [-0.2892, 5.8708], [-0.0606, 0.5344]])
    lead = np.array([0.005 / 2, 0.005 / 2, 6.16 / 182, 0.06 / 6])  # per turn of the motor, behind its gear (Table 6)
    enlarged = np.array([7.0, 6.0, 1.0, 1.0])  # by the pantograph (47)
    measured = (
        "the lead 0.005 m of the screws has one digit: one of 5.01 to 5.02 mm, with the printed spans, gives both numbers"
    )
    turns = "Table 6 rounds the turns to 182: numbers of turns that round to it give the printed factor"
    factors = Table.of(
        "encoder factors per pulse, from the geometry",
        cft.CARTESIAN,
        enlarged * lead / 2000,
        printed,
        ("m", "m", "rad", "m"),
        (measured, measured, turns, ""),
    )
    found_spans, units = limits[:, 1] - limits[:, 0], ("m", "m", "rad", "m")
    spans = Table.of("spans", cft.CARTESIAN, found_spans, (0.315, 0.607, 6.16, None), units, kind="round trip")
    lengths = "the 0.25 m of (49) have two digits: the measured nut follows from a length that rounds to them"
    ends = np.array([[0.0232, -0.0269, 2.4, 0.0]])  # where both screws are at their smallest position
    geometric, found = cft.references_from_cartesian(ends)[0], cft.measured_references(ends)[0]
    shifts = Table.of(
        "nuts at the start of their screws: (48) and (49) from Table 1, beside the measured (50) and (51)",
        ("x_r", "y_r"),
        geometric,
        np.round(found, 5),
        "m",
        ("", lengths),
    )

    def one_lead() -> bool:
        """Return whether one lead that rounds to 0.005 m gives both factors with enlargements by the printed spans (3.1.1)."""
        low, high = np.array([(0.3145, 0.3155), (0.6065, 0.6075)]).T / np.array([(0.0455, 0.0445), (0.10125, 0.10115)]).T
        least, most = (2 * 2000 * printed[:2] / ratio for ratio in (high, low))
        return bool(0.0045 < least.max() < most.min() < 0.0055)

    experiments = {
        measured: one_lead,
        turns: lambda: round(6.16 / (float(printed[2]) * 2000)) == 182,
        lengths: lambda: bool((0.245 - ends[0, 0]) / cft.UP < found[1] < (0.255 - ends[0, 0]) / cft.UP),
    }
    return Reproduction((factors, spans, shifts), experiments=experiments)


@reproduction("cft-table-6", "motor gains K_T of both set-ups", "[Rodriguez2002, Table 6]")
def cft_table_6() -> Reproduction:
    """K_T = K_a K_t / (K_g K_c)."""
    cut = "printed with the last digit cut off, not rounded"
    printed = {"TUEdACS": (430.2725, 430.2725, 31.7814, 107.5681), "dSPACE": (107.5681, 107.5681, 7.9453, 26.8920)}
    tables = []
    for setup, gains in printed.items():
        ours = cft.motor_gains(setup)
        names, units = [f"K_T of m{i}" for i in range(1, 5)], ("N/V", "N/V", "N m/V", "N/V")
        tables.append(Table.of(f"set-up with {setup}", names, ours, gains, units, ("", "", cut, "")))
    note = "K_T of m4 is printed in N m/V for dSPACE, but its rail moves straight: N/V"
    third = [(float(cft.motor_gains(setup)[2]), gains[2]) for setup, gains in printed.items()]
    return Reproduction(
        tuple(tables), notes=(note,), experiments={cut: lambda: all(np.floor(1e4 * x) == round(1e4 * y) for x, y in third)}
    )


@reproduction("cft-definiteness", "is M positive definite with Table 4, as (22) says", "[Rodriguez2002, (22), Table 4]")
def cft_definiteness() -> Reproduction:
    """Compute the smallest eigenvalue of M over the workspace."""
    grid = cft.definiteness()
    repaired = cft.definiteness(added_inertia=0.2)
    why = "Appendix B has no pitch inertias: with 0.2 kg m^2 added to q4 and q5 no such point is left"
    up, reach = (np.linspace(low, high, 61) for low, high in cft.LIMITS[:2])
    xc = np.stack(np.meshgrid(up, reach, [2.4], [POSE[3]], indexing="ij"), axis=-1).reshape(-1, 4)
    smallest = np.linalg.eigvalsh(cft.mass_matrix(cft.joint_from_cartesian(xc)))[:, 0].reshape(61, 61)
    passive = cft.friction_report()
    table = Table(
        "31 x 31 x 13 points of the workspace of Table 5",
        (
            Row("points where M is not positive definite; none by (22)", 100.0 * grid.indefinite, None, "%", why),
            Row("smallest eigenvalue of M", grid.worst[1]),
            Row("the same with 0.2 kg m^2 added to q4 and q5", repaired.worst[1]),
        ),
    )
    feeds = Table.of(
        "friction of Table 4: Coulomb level at high speed; friction must oppose motion at any speed",
        [f"B_f1 + B_f2 of {joint.joint}, signs of w made positive" for joint in passive],
        [joint.coulomb for joint in passive],
        unit=("N", "N m", "N m", "N m"),
        reason=["" if joint.passive else f"pushes below {joint.feeds_below:.4f} of its unit per second" for joint in passive],
    )
    found = check(cft.mechanism(), cft.joint_from_cartesian(cft.definiteness(grid=(9, 9, 5)).xc))
    bounds = {**found.bounds, **dict(zip(("b_v", "b_f1", "b_f2"), cft.friction_bound(), strict=True))}
    listed = Table.of(
        "properties (19) to (25) on a coarser grid: relative errors, and bounds",
        [*(c.name for c in found.checks if c.name != "definiteness"), *bounds],
        [*(c.value for c in found.checks if c.name != "definiteness"), *bounds.values()],
    )
    return Reproduction(
        (table, listed, feeds),
        {
            "Smallest eigenvalue of M at xc3 = 2.4 rad; zero along the white line": lambda: field(
                reach, up, smallest, ("xc2, reach [m]", "xc1, down [m]", "smallest eigenvalue of M")
            )
        },
        experiments={why: lambda: repaired.indefinite == 0.0},
    )


@reproduction("cft-excitation", "a new excitation in Cartesian coordinates", "[Rodriguez2002, section 4.2.1]", 12)
def cft_excitation() -> Reproduction:
    """Minimise cond(F) over Fourier series of four harmonics within Table 5, with the rates of the published motion."""
    _, v, a = cft.excitation(np.arange(400) / 40.0)
    rates = np.abs(v).max(axis=0), np.abs(a).max(axis=0)
    limits = {
        name: {"lower": low, "upper": high, "velocity": speed, "acceleration": push}
        for name, (low, high), speed, push in zip(cft.CARTESIAN, cft.LIMITS, *rates, strict=True)
    }
    found = di.design(
        cft.cartesian_model(),
        {"joints": limits},
        "cond",
        family=di.trajectory.Fourier(0.1, 4, rest=False),
        samples=400,
        starts=2,
        iterations=60,
        workers=1,
    )
    motion = found.motion()
    F = cft.regressor(*cft.joint_motion(motion.q, motion.v, motion.a)).reshape(-1, 12)
    named = [f"{name} [{'rad' if name == 'xc3' else 'm'}]" for name in cft.CARTESIAN]
    why = "Table 3 is not the optimum: this motion has its offsets and harmonics and keeps its ranges and rates at 2000 points"
    held, spare = fixed_offsets()
    return Reproduction(
        (
            Table(
                "condition number of F, 12 columns",
                (
                    Row("J_k, offsets of the report, search from Table 3", held, 277.4, "", why),
                    Row("J_k, offsets free", float(np.linalg.cond(F)), None),
                ),
            ),
            Table.of(
                "shares of the limits that are left",
                list(found.margins()),
                [100 * x for x in found.margins().values()],
                unit="%",
            ),
        ),
        {
            "The designed motion with the limits of Table 5 (dotted)": lambda: panels(
                motion.t,
                {name: {"": motion.q[:, i]} for i, name in enumerate(named)},
                "time [s]",
                limits=dict(zip(named, cft.LIMITS, strict=True)),
            )
        },
        ("the same from a shell: dynident excite cft_cartesian --criterion cond -o plan/",),
        {why: lambda: held < 190.0 and spare >= 0.0},
    )


@cache
def fixed_offsets(steps: int = 80) -> tuple[float, float]:
    """Return the lowest J_k of a search from Table 3 within its offsets, ranges and rates, and the remaining margin.

    By SLSQP on 100 points of the period; both numbers are computed on 2000.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

    w = 0.2 * np.pi * np.arange(1, 5)
    grids = {n: tuple(f(np.outer(np.arange(n) * 10.0 / n, w)) for f in (np.sin, np.cos)) for n in (100, 2000)}
    x0, v0, a0 = cft.excitation(np.arange(2000) / 200.0)
    start = np.linalg.lstsq(np.hstack([grids[2000][0], -grids[2000][1]]), x0 - x0.mean(axis=0), rcond=None)[0]  # amplitudes
    scale = np.abs(x0 - x0.mean(axis=0)).max(axis=0)
    v, a = (np.abs(rate).max(axis=0) for rate in (v0, a0))
    low, high = cft.LIMITS.T

    def motion(p: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
        (s, c), (A, B) = grids[n], np.split(p.reshape(8, 4) * scale, 2)
        wA, wB = w[:, None] * A, w[:, None] * B
        return x0.mean(axis=0) + s @ A - c @ B, c @ wA + s @ wB, -s @ (w[:, None] * wA) + c @ (w[:, None] * wB)

    def spare(p: np.ndarray, n: int = 100) -> np.ndarray:
        q, rate, push = motion(p, n)
        parts = (q - low) / scale, (high - q) / scale, 1.0 - rate / v, 1.0 + rate / v, 1.0 - push / a, 1.0 + push / a
        return np.concatenate([part.min(axis=0) for part in parts])

    def criterion(p: np.ndarray, n: int = 100) -> float:
        try:
            return float(np.log(np.linalg.cond(cft.regressor(*cft.joint_motion(*motion(p, n))).reshape(-1, 12))))
        except di.DynidentError:  # the step is out of reach
            return 20.0

    held = {"type": "ineq", "fun": spare}
    found = minimize(criterion, (start / scale).ravel(), method="SLSQP", constraints=[held], options={"maxiter": steps})
    kept = found.x
    while spare(kept, 2000).min() < 0.0:  # peaks between the points of the search
        kept = 0.999 * kept
    return float(np.exp(criterion(kept, 2000))), float(spare(kept, 2000).min())


@reproduction(
    "cft-block", "the simulation block: voltages in, Cartesian coordinates out", "[Rodriguez2002, section 5, figures 9, 10]", 3
)
def cft_block() -> Reproduction:
    """Hold the arm against gravity, then push base and rail by voltages; friction of Table 4."""
    q = cft.joint_from_cartesian(POSE)
    hold = cft.voltage_from_force(cft.force_from_torque(q, cft.gravity(q)))[0]
    t = np.linspace(0.0, 0.5, 501)
    push = np.outer(np.sin(4.0 * np.pi * t), (0.0, 0.0, 0.6, 0.3))
    run = cft.block(t, hold + push, POSE, added_inertia=0.2)
    x, dynamics = run.xc[-1], cft.cartesian_dynamics(q, np.zeros(4))
    moved = Table.of("coordinates after 0.5 s", cft.CARTESIAN, x, unit=("m", "m", "rad", "m"))
    work = Table.of(
        "section 4.3 at the start: diagonal of M_x, and G_x, by forces that do work on xc",
        [f"{what} of {name}" for what in ("M_x", "G_x") for name in cft.CARTESIAN],
        np.concatenate([np.diagonal(dynamics.mass[0]), dynamics.gravity[0]]),
        unit=("kg", "kg", "kg m^2", "kg", "N", "N", "N m", "N"),
    )
    return Reproduction(
        (moved, work),
        {
            "Voltages behind the saturation [V], coordinates [m, rad] and status": lambda: panels(
                run.t,
                {
                    "voltages [V]": dict(zip(cft.CARTESIAN, run.voltage.T, strict=True)),
                    "status": {"": run.status},
                    "xc3 [rad]": {"": run.xc[:, 2]},
                    "xc1, xc2, xc4 [m]": {cft.CARTESIAN[i]: run.xc[:, i] for i in (0, 1, 3)},
                },
                "time [s]",
            )
        },
        ("the report prints no run of its block; 0.2 kg m^2 are added to q4 and q5, see cft-definiteness",),
    )
