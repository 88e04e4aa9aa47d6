"""The ER3A-C60 of [Pagani2022]: reduction of its parameters and its characteristics, Tables 1 to 4."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.trajectory import Trajectory, sample
from dynident_papers.identify.reductions import Reduction, reduction
from dynident_papers.reproduce.registry import UNEXPLAINED, Reproduction, Row, Table, reproduction
from dynident_papers.robots import er3a_c60
from dynident_papers.trajectories import sines_within

OWN_MOTION = "depends on the motion, which is not printed: this value is between those of random motion and of (72)"
BEYOND = f"{UNEXPLAINED}: the motion is not printed, and this value is not between those of random motion and of (72)"
ROUND_OFF = "round-off, and so is the printed one: the columns are parallel"
LENGTHS = "lengths of the assumed geometry are rounded to a millimetre: lengths that round to them reach 628 mm"
SINGULAR = (None, 1.6202, 1.3755, 1.0627, 0.9735, 0.8861, 0.7574, 0.6295, 0.4606, 0.3673, 0.1751, 1.15e-16)
"""Table 1; the first one is missing in print."""
COUNTS = (34, 35, 28, 21, 14, 7)  # entries above 1e-4 in the columns of Table 2
SELECTED = ("Izz", *["mx my Ixx Ixy Ixz Iyz Izz"] * 5)  # inertial parameters of Table 3, joint by joint
MOTORS = (False, False, True, True, True, True)  # whether the motor inertia is selected


def report(motion: di.Motion | None = None) -> Reduction:
    """Return QR and SVD of the arm with friction split by directions, as for Table 1; random motion when omitted."""
    return reduction(er3a_c60.mechanism().with_terms(("ia", "fvp", "fvn", "fcp", "fcn")), motion, threshold=1e-4, limit=100.0)


def first_motion() -> Trajectory:
    """Return harmonic sines within the limits, (62) to (77)."""
    limits = er3a_c60.limits()
    return sines_within(np.minimum(-limits.lower, limits.upper), limits.velocity, limits.acceleration)


@reproduction("thermal-table-1", "singular values and dependent parameters of link 2", "[Pagani2022, Table 1]", kind="virtual")
def table_1() -> Reproduction:
    """Columns of unit length; the last right singular vector shows the dependent parameters."""
    second = report().joints[1]
    last = dict(zip(second.names, np.abs(second.V[:, -1]), strict=True))
    both = [report(sample(first_motion(), 50.0)).joints[1].singular_values, second.singular_values]
    known = np.array(SINGULAR, dtype=float)  # the first is NaN
    inside = (known >= np.min(both, axis=0)) & (known <= np.max(both, axis=0))
    reasons = ["", *(OWN_MOTION if between else BEYOND for between in inside[1:11]), ROUND_OFF]
    rows = [
        Row(f"singular value {i}", float(s), printed, "", why)
        for i, (s, printed, why) in enumerate(zip(second.singular_values, SINGULAR, reasons, strict=True), 1)
    ]
    dependent = (
        Row("Izz in the last column of V", float(last["Izz_link_2"]), 0.7071, kind="derived"),
        Row("Im in the last column of V", float(last["ia_joint_2"]), 0.7071, kind="derived"),
        Row("condition number before", second.condition[0], 1.5742e16, "", ROUND_OFF),
        Row("condition number after", second.condition[-1], None),
        Row("dropped", second.dropped[0], "ia_joint_2", kind="derived"),
    )
    first = float(np.sqrt(second.V.shape[0] - known[1:] @ known[1:]))
    missing = Row("the first, from the others: columns of unit length", first, None)
    return Reproduction(
        (Table("singular values", (*rows, missing)), Table("dependence", dependent)),
        {"singular values": second.plot},
        experiments={
            OWN_MOTION: lambda: int(inside[1:11].sum()) == 9,
            BEYOND: lambda: int(inside[1:11].sum()) == 9,
            ROUND_OFF: lambda: bool(max(second.singular_values[11], known[11]) < 1e-15 and second.condition[0] > 1e15),
        },
    )


@reproduction("thermal-table-2", "what each joint's torque shows, by QR", "[Pagani2022, Table 2]")
def table_2() -> Reproduction:
    """Diagonal of R above 1e-4."""
    found = report()
    counts = Table.of("parameters seen", [f"joint {j}" for j in range(1, 7)], found.counts, COUNTS)
    gap = (
        Row(
            "largest entry that counts as zero",
            float(np.abs(found.diagonal[~found.seen]).max()),
            3.99e-13,
            "",
            ROUND_OFF,
            "virtual",
        ),
        Row("smallest entry that counts", float(np.abs(found.diagonal[found.seen]).min()), 2.4353, "", OWN_MOTION, "virtual"),
    )

    def between() -> bool:
        """Return whether the printed entry lies between the entries for (72) and for random motion."""
        other = report(sample(first_motion(), 50.0))
        return bool(np.abs(other.diagonal[other.seen]).min() < 2.4353 < float(gap[1].ours))

    experiments = {OWN_MOTION: between, ROUND_OFF: lambda: float(gap[0].ours) < 1e-11}
    return Reproduction((counts, Table("gap", gap)), {"diagonals of R": found.plot}, experiments=experiments)


@reproduction("thermal-table-3", "the 64 selected parameters", "[Pagani2022, Table 3]")
def table_3() -> Reproduction:
    """QR, then SVD."""
    found = report()
    rows = []
    for j, joint in enumerate(found.joints):
        inertial = " ".join(name.split("_")[0] for name in joint.kept if "_link_" in name)
        rows.append(Row(f"joint {j + 1}: inertial", inertial, SELECTED[j]))
        rows.append(Row(f"joint {j + 1}: motor inertia", str(any(n.startswith("ia") for n in joint.kept)), str(MOTORS[j])))
        rows.append(Row(f"joint {j + 1}: friction", float(sum(n.startswith("f") for n in joint.kept)), 4.0))
    rows.append(Row("all", float(found.selected), 64.0))
    base = di.base_parameters(er3a_c60.mechanism().with_terms(("ia", "fvp", "fvn", "fcp", "fcn")))
    rows.append(Row("rank of all joints together", float(base.rank), None))
    return Reproduction((Table("selected parameters", tuple(rows)),))


@reproduction("thermal-table-4", "characteristics of the ER3A-C60", "[Pagani2022, Tables 4 and 5]", kind="round trip")
def table_4() -> Reproduction:
    """Limits of the bundled arm, and its reach by forward kinematics."""
    arm = er3a_c60.mechanism()
    speeds, ranges = (
        (230, 230, 250, 320, 320, 420),
        ((-167, 167), (-130, 90), (-71, 101), (-180, 180), (-113, 113), (-360, 360)),
    )
    rows = []
    for name, speed, (low, high) in zip(er3a_c60.JOINTS, speeds, ranges, strict=True):
        limits = arm.joint(name).limits
        rows.append(Row(f"{name}: speed", float(np.rad2deg(limits.velocity)), speed, "deg/s"))
        rows.append(Row(f"{name}: lower", float(np.rad2deg(limits.lower)), low, "deg"))
        rows.append(Row(f"{name}: upper", float(np.rad2deg(limits.upper)), high, "deg"))
    a1, a2, a3, d4 = (er3a_c60.assumed(name) for name in ("a1", "a2", "a3", "d4"))
    rows.append(
        Row(
            "reach",
            float(1e3 * (a1 + a2 + np.hypot(a3, d4))),
            628.0,
            "mm",
            LENGTHS,
            "virtual",
        )
    )
    notes = (
        "The repeatability of 2 mm is not used; 0.02 mm is usual for this class.",
        "Table 5 lists the priorities of the controller's tasks: there is nothing to compute.",
    )

    def reached() -> bool:
        """Return whether lengths within half a millimetre of the assumed ones have the printed reach."""
        ends = (1e3 * (a1 + a2 + 2.0 * h + np.hypot(a3 + h, d4 + h)) for h in (-5e-4, 5e-4))
        return bool(next(ends) < 628.0 < next(ends))

    return Reproduction((Table("limits", tuple(rows)),), notes=notes, experiments={LENGTHS: reached})


@reproduction(
    "thermal-eq-71", "harmonic sines within the limits, by analytic bounds", "[Pagani2022, section 2.3.1, (62) to (77)]"
)
def eq_71() -> Reproduction:
    """Equal amplitudes q_max / N, the fundamental from the bounds of speed and acceleration; peaks by sampling."""
    limits, curve = er3a_c60.limits(), first_motion()
    far, N, highest = np.minimum(-limits.lower, limits.upper), 3, 4
    printed = np.minimum(limits.velocity / far, np.sqrt(limits.acceleration / far)).min() / highest
    q, v, a = (np.abs(x).max(axis=0) for x in curve(np.linspace(0.0, curve.duration, 20001)))
    rows = [
        Row("fundamental by (71), its root put back", float(printed / (2.0 * np.pi)), None, "Hz"),
        Row("fundamental by the sum of all harmonics, fades included", curve.family.highest / highest, None, "Hz"),
    ]
    for j, name in enumerate(er3a_c60.JOINTS):
        rows.append(Row(f"{name}: amplitude of each sine (70)", float(np.rad2deg(far[j] / N)), None, "deg"))
        shares = {"position": q / far, "speed": v / limits.velocity, "acceleration": a / limits.acceleration}
        rows += [Row(f"{name}: {what} used", 100.0 * float(share[j]), None, "%") for what, share in shares.items()]
    notes = (
        "No bound is exceeded, as (64) to (69) promise; the thesis prints no numbers.",
        "(71) lost the root of (69), (74) has cos for sin.",
        "All joints share one fundamental. The motion is faded in and out: as printed it starts with a jump of the velocity.",
    )
    return Reproduction(
        (Table("the first trajectory", tuple(rows)),), {"harmonics 1, 2 and 4 (72)": lambda: curve.plot(er3a_c60.JOINTS)}, notes
    )
