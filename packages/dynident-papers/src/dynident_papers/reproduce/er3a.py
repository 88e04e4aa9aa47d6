"""The ER3A-C60 of [Pagani2022]: reduction of its parameters and its characteristics, Tables 1 to 4."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident_papers.identify.reductions import Reduction, reduction
from dynident_papers.reproduce.registry import Reproduction, Row, Table, reproduction
from dynident_papers.robots import er3a_c60
from dynident_papers.trajectories import sines_within

OWN_MOTION = "the thesis' motion and geometry are not published: random motion of the assumed arm"
SINGULAR = (None, 1.6202, 1.3755, 1.0627, 0.9735, 0.8861, 0.7574, 0.6295, 0.4606, 0.3673, 0.1751, 1.15e-16)
"""Table 1; the first one is missing in print."""
COUNTS = (34, 35, 28, 21, 14, 7)  # entries above 1e-4 in the columns of Table 2
SELECTED = ("Izz", *["mx my Ixx Ixy Ixz Iyz Izz"] * 5)  # inertial parameters of Table 3, joint by joint
MOTORS = (False, False, True, True, True, True)  # whether the motor inertia is selected


def report() -> Reduction:
    """Return QR and SVD of the arm with friction split by directions, as Table 1 was made."""
    return reduction(er3a_c60.mechanism().with_terms(("ia", "fvp", "fvn", "fcp", "fcn")), threshold=1e-4, limit=100.0)


@reproduction("thermal-table-1", "singular values and dependent parameters of link 2", "[Pagani2022, Table 1]", kind="virtual")
def table_1() -> Reproduction:
    """Columns of unit length; the last right singular vector shows what depends on what."""
    second = report().joints[1]
    last = dict(zip(second.names, np.abs(second.V[:, -1]), strict=True))
    rows = [
        Row(f"singular value {i}", float(s), known, "", OWN_MOTION if i < 12 else "round-off")
        for i, (s, known) in enumerate(zip(second.singular_values, SINGULAR, strict=True), 1)
    ]
    dependent = (
        Row("Izz in the last column of V", float(last["Izz_link_2"]), 0.7071, kind="derived"),
        Row("Im in the last column of V", float(last["ia_joint_2"]), 0.7071, kind="derived"),
        Row("condition number before", second.condition[0], 1.5742e16, "", "both are round-off: the columns are parallel"),
        Row("condition number after", second.condition[-1], None),
        Row("dropped", second.dropped[0], "ia_joint_2", kind="derived"),
    )
    return Reproduction(
        (Table("singular values", tuple(rows)), Table("dependence", dependent)), {"singular values": second.plot}
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
            "round-off",
            "virtual",
        ),
        Row("smallest entry that counts", float(np.abs(found.diagonal[found.seen]).min()), 2.4353, "", OWN_MOTION, "virtual"),
    )
    return Reproduction((counts, Table("gap", gap)), {"diagonals of R": found.plot})


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
    rows.append(Row("rank of all joints together", float(base.rank), 64.0))
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
            "lengths of the assumed geometry are rounded to a millimetre",
            "virtual",
        )
    )
    notes = (
        "The repeatability of 2 mm is not used; 0.02 mm is usual for this class.",
        "Table 5 lists the priorities of the controller's tasks: there is nothing to compute.",
    )
    return Reproduction((Table("limits", tuple(rows)),), notes=notes)


@reproduction(
    "thermal-eq-71", "harmonic sines within the limits, by analytic bounds", "[Pagani2022, section 2.3.1, (62) to (77)]"
)
def eq_71() -> Reproduction:
    """Equal amplitudes q_max / N, the fundamental from the bounds of speed and acceleration; peaks by sampling."""
    limits = er3a_c60.limits()
    far, N, highest = np.minimum(-limits.lower, limits.upper), 3, 4
    curve = sines_within(far, limits.velocity, limits.acceleration)
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
