"""The RRR robot of [Kostic2002]: closed forms against numeric ones, operations, and the writing task.

The paper prints no lengths, masses, gains or path; `dynident_papers.robots.rrr` has the assumed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import dynident as di
from dynident.graph.expression import Node
from dynident.symbolic import derive
from dynident_lab.tool_paths import TipMotion, joint_motion
from dynident_papers.reproduce.drawing import panels, paths
from dynident_papers.reproduce.registry import Reproduction, Row, Table, nearer, reproduction
from dynident_papers.robots import proof_case, rrr
from dynident_papers.trajectories import write

JOINTS = ("waist", "shoulder", "elbow")
ASSUMED = "the paper prints no lengths, masses, gains or path: those of rrr.ASSUMPTIONS and letters of our own"


def writing(rate: float = 500.0) -> tuple[TipMotion, di.Motion]:
    """Return the motion of the tip that writes "om y" in a plane of constant y, and the joint motion."""
    tip = write("om y", 0.06, (0.1, -0.4, 0.5), speed=0.4, acceleration=2.0, lift=0.0).sample(rate)
    return tip, joint_motion(rrr.mechanism(), tip, posture="front up")


@reproduction(
    "rrr-operations", "operations per point, closed form against numeric", "[Kostic2002, section V]", 3, kind="virtual"
)
def rrr_operations() -> Reproduction:
    """Count the operations of generated code."""
    shared = (
        "depends on which repeated sub-expressions are computed once, which is not printed: here all are; written out, our "
        "formulas take more than the printed counts"
    )
    far = "the paper counts the general matrices of a toolbox: our steps with such matrices differ by less than half as much"
    general = (
        "the paper counts the general matrices of a toolbox: with such matrices our recursion differs by less than half as much"
    )
    steps = numeric_steps()
    counts = rrr.operation_counts(steps=steps)
    reasons = {"inverse kinematics": (shared, far), "inverse dynamics": (shared, general)}
    rows = [Row("steps of the numeric inverse kinematics along the writing path, mean", steps, None)]
    for cost in counts:
        rows += [
            Row(f"{cost.task}, closed form", cost.closed, cost.paper_closed, "", reasons[cost.task][0]),
            Row(f"{cost.task}, numeric", cost.numeric, cost.paper_numeric, "", reasons[cost.task][1]),
        ]
    ratios = Table.of(
        "numeric over closed form",
        [cost.task for cost in counts],
        [cost.numeric / cost.closed for cost in counts],
    )

    def repeated() -> bool:
        """Return whether formulas without shared sub-expressions take more operations than printed."""
        kinematics = rrr.inverse_kinematics_program(rrr.EXAMPLE, (0,))["inverse_kinematics"]
        dynamics = derive(rrr.mechanism(), ("base_inverse_dynamics",))["base_inverse_dynamics"]
        return all(written_out(form.entries) > known for form, known in ((kinematics, 102), (dynamics, 393)))

    experiments = {
        shared: repeated,
        far: lambda: nearer([rows[2]], [steps * step_with_matrices()]),
        general: lambda: nearer([rows[4]], [recursion_with_matrices()]),
    }
    return Reproduction((Table("operations per point", tuple(rows)), ratios), experiments=experiments)


def written_out(entries: Sequence[Node]) -> int:
    """Return the number of operations of expressions without common sub-expressions."""
    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        if node.op in ("const", "symbol"):
            return 0
        if node.index not in sizes:
            sizes[node.index] = 1 + sum(map(size, node.args))
        return sizes[node.index]

    return sum(map(size, entries))


class Flops:
    """Linear algebra that counts its operations as Matlab did: 2 m n k for a product of matrices, one for every other."""

    def __init__(self) -> None:
        self.count = 3 * 10  # entries of the three transforms: 4 sines and cosines and 6 products each

    def product(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return A B."""
        self.count += 2 * A.size * (B.shape[1] if B.ndim == 2 else 1)
        return np.asarray(A @ B)

    def cross(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return a x b."""
        self.count += 9
        return np.cross(a, b)

    def total(self, *parts: np.ndarray) -> np.ndarray:
        """Return the sum of vectors."""
        self.count += (len(parts) - 1) * parts[0].size
        return np.asarray(np.sum(parts, axis=0))


def step_with_matrices() -> int:
    """Return the flops of one Gauss-Newton step with 4x4 products, a (6, 3) Jacobian and its pseudo-inverse.

    The pseudo-inverse by a singular value decomposition takes 14 m n^2 + 8 n^3 [Golub and Van Loan, Table 5.4.1].
    """
    flops, A, column = Flops(), np.eye(4), np.zeros(3)
    tip = flops.product(flops.product(A, A), A)
    for _ in range(3):
        flops.cross(column, flops.total(tip[:3, 3], -column))  # z x (tip - o), a column of the Jacobian
        flops.total(flops.cross(tip[:3, 0], column), column)  # the error: half the sum of three cross products
    inverse = flops.product(np.zeros((3, 3)), np.zeros((3, 6)))  # V S^-1 U^T
    flops.total(flops.product(inverse, np.zeros(6)), np.zeros(3))
    return flops.count + 14 * 6 * 3**2 + 8 * 3**3


def recursion_with_matrices() -> int:
    """Return the flops of the recursive Newton-Euler equations of three links with rotors, vector by vector."""
    flops, R, x = Flops(), np.eye(3), np.zeros(3)
    for _ in range(3):
        arm = flops.product(R, x)
        w = flops.product(R, flops.total(x, x))  # R^T (w + z v)
        dw = flops.product(R, flops.total(x, x, flops.cross(w, x)))  # R^T (w' + z a + w x z v)
        for lever, start in ((arm, flops.product(R, x)), (x, x)):  # of the joint and of the centre of mass
            flops.total(flops.cross(dw, lever), flops.cross(w, flops.cross(w, lever)), start)
        flops.total(flops.product(R, dw), flops.cross(w, flops.product(R, w)))  # I w' + w x I w
        flops.count += 3 * 3  # z v, z a and m times the acceleration
        turned = flops.cross(flops.product(R, x), x)  # R^T p x f
        moment = flops.product(R, flops.total(x, turned))
        flops.total(moment, flops.cross(flops.total(arm, x), x), x)  # n = R (n + R^T p x f) + (p + c) x F + N
        flops.total(flops.product(R, x), x)  # f = R f + F
        flops.product(x, flops.product(R, x))  # n^T R^T z
        flops.count += 2  # the rotor
    return flops.count


def numeric_steps() -> float:
    """Return the mean number of Gauss-Newton steps between successive points of the writing path."""
    tip, _ = writing()
    robot = rrr.mechanism()
    q = rrr.inverse_kinematics(tip.x, rrr.EXAMPLE)[0, rrr.POSTURES.index("front up")]
    count = 0
    for x in tip.x[::5]:
        for _ in range(50):
            away = x - rrr.forward_kinematics(q, rrr.EXAMPLE)[0]
            if np.abs(away).max() < 1e-10:
                break
            q = q + np.linalg.solve(di.jacobian(robot, q[None], "link_3", "world")[0][:3], away)
            count += 1
    return count / len(tip.x[::5])


@reproduction(
    "rrr-table-1", "Denavit-Hartenberg parameters and the position of the tip (4), (5)", "[Kostic2002, Table I, (4), (5)]"
)
def rrr_table_1() -> Reproduction:
    """Multiply the transforms of Table I and compare with the closed form of the tip; lengths are assumed."""
    chain, q = rrr.mechanism(), np.random.default_rng(0).uniform(-np.pi, np.pi, (1000, 3))
    off = np.abs(di.forward_kinematics(chain, q, "link_3")[1] - rrr.forward_kinematics(q, rrr.EXAMPLE)).max()
    base = di.base_parameters(chain).rank
    table = (
        Row("largest distance of the chain from (4), (5) over 1000 postures", float(off), None, "m"),
        Row("base parameters of the chain with rotors", float(base), None),
    )
    return Reproduction((Table("Table I as a chain", table),), notes=(ASSUMED,))


@reproduction(
    "rrr-base-parameters", "the sixteen base parameters and their regressor (12), (13)", "[Kostic2002, (12), (13)]", 2
)
def rrr_base_parameters() -> Reproduction:
    """Find the base parameters numerically, and compare R p with the recursive equations."""
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-np.pi, np.pi, (1000, 3)), rng.uniform(-3, 3, (1000, 3)), rng.uniform(-10, 10, (1000, 3))
    phi = rng.normal(size=33)
    tau = di.inverse_dynamics(rrr.mechanism(rrr.EXAMPLE, phi), di.Motion(np.arange(1000.0), q, v, a))
    R, p = rrr.regressor(q, v, a, rrr.EXAMPLE), rrr.base_parameters(phi, rrr.EXAMPLE)
    printed = R.copy()
    printed[:, 0, 0] += (v[:, 0] - a[:, 0]) * np.cos(q[:, 1]) ** 2  # r_1,1 as printed
    errors = Table.of(
        "largest |R p - tau| over 1000 random states, |tau| up to "
        f"{np.abs(tau).max():.0f} N m (recursive Newton-Euler of random bodies)",
        ("r_1,1 with the acceleration", "r_1,1 as printed, with the velocity"),
        [np.abs(form @ p - tau).max() for form in (R, printed)],
        unit="N m",
        reason=("", "misprint of (13)"),
    )
    rank = di.base_parameters(rrr.mechanism()).rank
    without = di.base_parameters(rrr.mechanism(terms=())).rank
    counts = (Row("base parameters, with rotors", rank, 16), Row("without rotors", without))
    return Reproduction((Table("number of base parameters", counts), errors))


@reproduction(
    "rrr-ik",
    "closed-form against numeric inverse kinematics and dynamics in the writing task",
    "[Kostic2002, figures 2 to 6]",
    2,
)
def rrr_ik() -> Reproduction:
    """Write letters, and solve for the joints and their torques in both ways."""
    tip, motion = writing()
    closed = rrr.inverse_kinematics(tip.x, rrr.EXAMPLE)[:, rrr.POSTURES.index("front up")]
    some = slice(None, None, 5)
    numeric = di.mechanics.inverse_kinematics_numeric(rrr.mechanism(), None, tip.x[some], start=closed[0], path=True)
    away = np.abs((closed[some] - numeric + np.pi) % (2 * np.pi) - np.pi)
    known = dict(zip(rrr.machine().model.parameters.names, rrr.machine().model.parameters.values, strict=True))
    phi = np.array([known[name] for name in rrr.mechanism().parameters.names])  # links and rotors, without friction
    tau = di.inverse_dynamics(rrr.mechanism(rrr.EXAMPLE, phi), motion)
    p = rrr.base_parameters(phi, rrr.EXAMPLE)
    off = np.abs(rrr.inverse_dynamics(motion.q, motion.v, motion.a, p, rrr.EXAMPLE) - tau)
    table = Table(
        "largest difference between closed form and numeric method along the path",
        (
            Row("joint positions; the paper has less than 1e-10", float(away.max()), None, "rad"),
            Row(f"joint torques, up to {np.abs(tau).max():.1f} N m; the paper has round-off", float(off.max()), None, "N m"),
        ),
    )
    speed = np.linalg.norm(tip.v[:, [0, 2]], axis=1)
    return Reproduction(
        (table,),
        {
            "Figure 2, left: path of the tip": lambda: paths({"path": (tip.x[:, 0], tip.x[:, 2])}, ("x [m]", "z [m]")),
            "Figure 2, right, and figures 3 and 4: speed of the tip, positions and velocities of the joints": lambda: panels(
                motion.t,
                {
                    "speed of the tip (14) [m/s]": {"": speed},
                    "joint positions [rad]": dict(zip(JOINTS, motion.q.T, strict=True)),
                    "joint velocities [rad/s]": dict(zip(JOINTS, motion.v.T, strict=True)),
                    "torques [N m]": dict(zip(JOINTS, tau.T, strict=True)),
                },
                "time [s]",
            ),
            "Figure 5: closed-form minus numeric inverse kinematics, size": lambda: panels(
                motion.t[some], {"difference [rad]": dict(zip(JOINTS, away.T, strict=True))}, "time [s]", columns=1
            ),
            "Figure 6: closed-form minus numeric inverse dynamics, size": lambda: panels(
                motion.t, {"difference [N m]": dict(zip(JOINTS, off.T, strict=True))}, "time [s]", columns=1
            ),
        },
        (ASSUMED,),
    )


@reproduction(
    "rrr-writing",
    "shares of model and PD control in the writing task (16)",
    "[Kostic2002, (16), figures 7 to 9]",
    3,
    kind="virtual",
)
def rrr_writing() -> Reproduction:
    """Identify the machine from its own logs, write with PD alone and with the identified model, and compare the shares."""
    proof = proof_case("rrr").run()
    trial = proof.trial("identified model", proof.motions[0])
    model, feedback = trial.shares
    exact = proof.trial("identified, sigmoid friction", proof.motions[0]).shares
    volts = "depends on masses and gains, which are not printed: half and twice the assumed ones enclose these voltages"
    knows = (
        "depends on friction and on what the model knows of it, which are not printed: with twice the assumed friction, models "
        "without it and with law (9) enclose these numbers"
    )
    tables = [
        Table.of(title, JOINTS, ours, printed, unit, why)
        for title, ours, printed, unit, why in (
            ("RMS of the model's share u_n", model, (0.25, 1.98, 0.78), "V", volts),
            ("RMS of the feedback's share u_c", feedback, (0.11, 0.24, 0.17), "V", knows),
            ("ratio of both", model / feedback, (2.27, 8.25, 4.59), "", knows),
        )
    ]
    known = Table.of("ratio with the friction law (9) in the model", JOINTS, exact[0] / exact[1])
    tip, motion = writing()
    runs = {
        "PD alone": rrr.machine("pd").simulate(motion),
        "PD and identified model": rrr.machine(model=proof.fit.model).simulate(motion),
    }
    written = {key: rrr.forward_kinematics(run.truth.motion.q, rrr.EXAMPLE) for key, run in runs.items()}
    lines = {"reference": (tip.x[:, 0], tip.x[:, 2])}
    drawn = {key: {**lines, key: (x[:, 0], x[:, 2])} for key, x in written.items()}
    errors = Table.of(
        "largest distance of the tip from the reference",
        list(written),
        [1e3 * np.linalg.norm(x - tip_at(tip, runs[key].truth.t), axis=1).max() for key, x in written.items()],
        unit="mm",
    )
    return Reproduction(
        (*tables, known, errors),
        {
            "Figure 7: letters written with PD control alone": lambda: paths(drawn["PD alone"], ("x [m]", "z [m]")),
            "Figure 8: letters written with PD control and the identified model": lambda: paths(
                drawn["PD and identified model"], ("x [m]", "z [m]")
            ),
            "Figure 9: shares of model and PD control in the second joint": lambda: panels(
                trial.t,
                {"model u_2^n [V]": {"": trial.model[:, 1]}, "PD u_2^c [V]": {"": trial.feedback[:, 1]}},
                "time [s]",
                columns=1,
            ),
        },
        (ASSUMED, *rrr.NOTES),
        {volts: voltages, knows: known_friction},
    )


def known_friction() -> bool:
    """Return whether models without and with law (9) enclose the printed feedback at twice the assumed friction."""
    machine = rrr.machine()
    twice = [
        law.law.using({name: x * (1.0 if "beta" in name else 2.0) for name, x in law.parameters.items()})
        for law in rrr.friction()
    ]
    drives = tuple(replace(drive, friction=law) for drive, law in zip(machine.drives, twice, strict=True))
    proof = proof_case("rrr", replace(machine, drives=drives)).run()
    poor, good = (proof.trial(name, proof.motions[0]).shares for name in ("catalogue model", "identified, sigmoid friction"))
    printed, ratio = np.array(rrr.RMS_FEEDBACK), np.array(rrr.RMS_FEEDFORWARD) / rrr.RMS_FEEDBACK
    between = (good[1] < printed) & (printed < poor[1]) & (poor[0] / poor[1] < ratio) & (ratio < good[0] / good[1])
    return bool(np.all(between))


def voltages() -> bool:
    """Return whether half and twice the assumed masses and gains enclose the printed voltages of the model."""
    _, motion = writing()
    machine = rrr.machine()
    known = dict(zip(machine.model.parameters.names, machine.model.parameters.values, strict=True))
    phi = np.array([known[name] for name in rrr.mechanism().parameters.names])
    tau = di.inverse_dynamics(rrr.mechanism(rrr.EXAMPLE, phi), motion)
    rubbing = np.column_stack([law(v) for law, v in zip(rrr.friction(), motion.v.T, strict=True)])
    found = [
        np.sqrt(np.mean((mass * tau + rubbing) ** 2, axis=0)) / (gain * np.array(rrr.ASSUMPTIONS["gains"].value))
        for mass in (0.5, 2.0)
        for gain in (0.5, 2.0)
    ]
    return bool(np.all((np.min(found, axis=0) < rrr.RMS_FEEDFORWARD) & (np.array(rrr.RMS_FEEDFORWARD) < np.max(found, axis=0))))


def tip_at(tip: TipMotion, t: np.ndarray) -> np.ndarray:
    """Return the tip reference at other times."""
    return np.column_stack([np.interp(t, tip.t, x) for x in tip.x.T])
