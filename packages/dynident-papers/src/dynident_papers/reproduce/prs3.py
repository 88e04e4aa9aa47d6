"""The 3-PRS stage of [Ruiz2016] as a mechanism with ideal joints: ranges, poses, and their errors against measurement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident_papers.flexures.flexures import flexure_requirements
from dynident_papers.reproduce.registry import Reproduction, Row, Table, reproduction
from dynident_papers.robots import prs3
from dynident_papers.workspace.workspace import workspace_map

COLUMNS = (("z", "um", 1e6), ("psi", "arc s", 3600.0 * np.rad2deg(1.0)), ("theta", "arc s", 3600.0 * np.rad2deg(1.0)))


def _rigid() -> np.ndarray:
    """Return rise and tilts (4, 3) of the poses of Table 4 by forward kinematics."""
    return np.asarray(prs3.forward_kinematics([row.s for row in prs3.TABLE_4]) - [prs3.HEIGHT, 0.0, 0.0])


def _printed(which: str) -> np.ndarray:
    return np.array([getattr(row, which) for row in prs3.TABLE_4])


def _rows(ours: np.ndarray, published: np.ndarray, reason: str, rounding: str = "") -> tuple[Table, ...]:
    """Return one table per coordinate; angles in arc seconds, the resolution of the paper's DMS.

    The reason is `rounding`, if given, where half a unit of a printed operand makes the number agree.
    """
    known = np.asarray(published)
    tables = []
    for i, (name, unit, scale) in enumerate(COLUMNS):
        rows = []
        for k, row in enumerate(prs3.TABLE_4):
            moved = ", ".join(f"{1e6 * s:.0f}" for s in row.s)
            own, printed = scale * float(ours[k, i]), round(scale * float(known[k, i]))
            away = abs(own - printed)
            why = "" if away <= 0.5 else rounding if rounding and away <= 1.0 else reason
            rows.append(Row(f"s = {moved} um", own, printed, unit, why))
        tables.append(Table(f"{name} [{unit}]", tuple(rows)))
    return tuple(tables)


FOLLOWS = "follows from the printed z of pose 1 in Table 4, which is 1.2 um off"
ROUNDED = "the measured angle is printed to the arc second: one that rounds to it gives the printed error"


def _against(other: str, printed: np.ndarray) -> Reproduction:
    """Compare |FKP - other|, FKP ours and the other as printed, with the printed errors; both reasons are tried."""
    tables = _rows(np.abs(_rigid() - _printed(other)), printed, FOLLOWS, ROUNDED)
    reasons = {row.reason for table in tables for row in table.rows if row.reason}

    def follows() -> bool:
        """With the printed z of pose 1 in place of ours, the first error agrees with the printed one."""
        known = np.abs(_printed("fkp") - _printed(other))
        return bool(round(1e6 * known[0, 0]) == round(1e6 * printed[0, 0]))

    def rounded() -> bool:
        """Return whether measured angles within half an arc second give the printed ones and others."""
        away = COLUMNS[1][2] * np.abs(_rigid()[1, 1] - (_printed(other)[1, 1] + np.deg2rad(np.array([-0.499, 0.499]) / 3600.0)))
        return bool(away.min() < round(COLUMNS[1][2] * printed[1, 1]) + 0.5 < away.max())

    tried = {FOLLOWS: follows, ROUNDED: rounded}
    return Reproduction(tables, experiments={text: tried[text] for text in tried if text in reasons})


@reproduction(
    "prs3-fig-6", "travel of the sliders and turns of the joints over the work space", "[Ruiz2016, figures 6 and 7]", 4
)
def prs3_figures_6_and_7() -> Reproduction:
    """All corners, edges and the inside of z +- 2 mm, psi and theta +- 0.2 degrees."""
    z, psi, theta = (np.linspace(-half, half, 9) for half in prs3.BOX)
    grid = np.stack(np.meshgrid(prs3.HEIGHT + z, psi, theta, indexing="ij"), axis=-1).reshape(-1, 3)
    s = prs3.inverse_kinematics(grid)
    needs = flexure_requirements(prs3.mechanism(), grid)
    turn = {name: np.rad2deg(needs.ranges[[joint.startswith(name) for joint in needs.joints]]) for name in prs3.NEEDED}
    low, high = prs3.NEEDED_SLIDERS
    rows = [
        Row("s, smallest", 1e3 * float(s.min()), None, "mm", f"about {1e3 * low:g} in the figure"),
        Row("s, largest", 1e3 * float(s.max()), None, "mm", f"about {1e3 * high:g} in the figure"),
    ]
    for name, x in turn.items():
        rows.append(Row(f"{name}, largest", float(np.abs(x).max()), None, "deg", f"about {prs3.NEEDED[name]:g} in the figure"))
    reach = workspace_map(prs3.mechanism(), "platform", ("psi", "theta"), ((-0.5, 0.5), (-0.5, 0.5)), size=31)
    return Reproduction(
        (Table("what the work space asks of sliders and flexures", tuple(rows)),),
        {
            "ranges of the flexures and forces of the motors (figures 6 and 7)": needs.plot,
            "singularities over the tilts, +- 0.5 rad": reach.plot,
        },
    )


@reproduction("prs3-table-3", "dimensional verification: mean deviations", "[Ruiz2016, Table 3]")
def prs3_table_3() -> Reproduction:
    """Errors as measured by the paper; computed are the means in its text."""
    guides = np.rad2deg(np.abs(list(prs3.TABLE_3_GUIDES.values()))) * 3600.0
    bases = np.array(prs3.TABLE_3_BASES)
    arc = 3600.0 * np.rad2deg(1.0)
    text = "the document contradicts itself: the mean of the printed errors is another, whatever their rounding"
    rows = (
        Row("angles between guides", float(guides.mean()), 192, "arc s"),
        Row("height of the bases", 1e3 * float(np.abs(bases[:, 0]).mean()), 0.254, "mm"),
        Row("psi of the bases", arc * float(np.abs(bases[:, 1]).mean()), 843, "arc s", text),
        Row("theta of the bases", arc * float(np.abs(bases[:, 2]).mean()), 499, "arc s", text),
        Row("height of the legs", 1e3 * float(np.mean(prs3.TABLE_3_LEGS)), 0.452, "mm"),
        Row("planes of the actuators", 1e3 * float(np.mean(prs3.TABLE_3_ACTUATORS)), 0.134, "mm"),
        Row("sum of the three guide angles", float(np.rad2deg(sum(prs3.TABLE_3_GUIDES.values())) * 3600.0), None, "arc s",
            "errors of three angles around a point should add up to zero"),
    )  # fmt: skip
    return Reproduction(
        (Table("mean deviations of the prototype", rows),),
        notes=("the errors themselves are measurements",),
        experiments={text: lambda: abs(arc * float(np.abs(bases[:, 1]).mean()) - 843) > 0.5 * len(bases)},
    )


@reproduction("prs3-table-4", "poses of the platform by rigid forward kinematics", "[Ruiz2016, Table 4, FKP]")
def prs3_table_4() -> Reproduction:
    """Slider moves as measured, poses by (A.3), (A.7), (A.11)."""
    note = "the document contradicts itself: the printed pose needs sliders 1.2 um from the printed ones; the other three fit"

    def apart() -> bool:
        """Return whether sliders of poses that round to the printed ones are the printed ones, but for the first pose."""
        half, fits = np.array([0.5e-6, *[np.deg2rad(0.5 / 3600.0)] * 2]), []
        for row in prs3.TABLE_4:
            corners = np.array(np.meshgrid(*zip(-half, half, strict=True))).reshape(3, -1).T
            s = prs3.inverse_kinematics(np.array([prs3.HEIGHT, 0.0, 0.0]) + row.fkp + corners)
            fits.append(bool(np.all((s.min(axis=0) <= np.array(row.s) + 5e-7) & (s.max(axis=0) >= np.array(row.s) - 5e-7))))
        return fits == [False, True, True, True]

    return Reproduction(_rows(_rigid(), _printed("fkp"), note), experiments={note: apart})


@reproduction("prs3-table-5", "errors of forward kinematics against measurement", "[Ruiz2016, Table 5]")
def prs3_table_5() -> Reproduction:
    """|FKP - CMM|, FKP ours and CMM as printed in Table 4."""
    arc = np.deg2rad(1.0 / 3600.0)
    printed = np.array([[87e-6, 72, 249], [8e-6, 258, 219], [5e-6, 672, 435], [74e-6, 1018, 250]]) * [1.0, arc, arc]
    note = "the errors of the paper's finite elements against measurement need its finite elements"
    return replace(_against("cmm", printed), notes=(note,))


@reproduction("prs3-table-6", "rigid kinematics against finite elements", "[Ruiz2016, Table 6]")
def prs3_table_6() -> Reproduction:
    """|FKP - FEM|, FKP ours and FEM as printed in Table 4."""
    arc = np.deg2rad(1.0 / 3600.0)
    printed = np.array([[24e-6, 294, 31], [5e-6, 53, 113], [7e-6, 302, 126], [33e-6, 901, 5]]) * [1.0, arc, arc]
    note = "flexures-table-6 explains these differences with a model of the flexures"
    return replace(_against("fem", printed), notes=(note,))
