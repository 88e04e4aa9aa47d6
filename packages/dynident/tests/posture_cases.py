"""Serial arms of up to seven axes with made-up bodies, as URDF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynident.mechanism import Mechanism

CENTRE = np.array([0.2, 0.7, -0.3, -1.1, 0.4, 0.8, 0.1])


def seven_axes(count: int = 7) -> str:
    """Return the URDF of an arm of up to seven axes with made-up bodies."""
    text = ['<robot name="seven"><link name="base"/>']
    for i in range(count):
        parent = f"l{i}" if i else "base"
        axis = ("0 0 1", "0 1 0")[i % 2]
        m, c, d = 6.0 - 0.7 * i, 0.12, 0.03 / (i + 1)
        text.append(
            f'<link name="l{i + 1}"><inertial><origin xyz="0.01 {0.02 - 0.005 * i} {c}"/><mass value="{m}"/>'
            f'<inertia ixx="{d}" ixy="{0.03 * d}" ixz="0" iyy="{1.2 * d}" iyz="0" izz="{0.5 * d}"/></inertial></link>'
            f'<joint name="j{i + 1}" type="revolute"><parent link="{parent}"/><child link="l{i + 1}"/>'
            f'<origin xyz="{0.02 * (i % 3)} 0 {0.25 if i else 0.1}"/><axis xyz="{axis}"/>'
            f'<limit lower="-3" upper="3" effort="500" velocity="5"/></joint>'
        )
    return "".join(text) + "</robot>"


def arm(files: Path, count: int = 7) -> Mechanism:
    return Mechanism.from_urdf(files / f"{count}.urdf").with_terms(())
