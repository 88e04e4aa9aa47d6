"""Limits of the robots for the command excite: as printed in their documents, or assumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.cli.robots import Published
from dynident.excitation import Box, limits_of
from dynident.excitation.limits import Limit, State
from dynident.simulate.robot import home_of
from dynident.trajectory import Fourier
from dynident_papers import robots
from dynident_papers.robots import cft, dualv, er3a_c60, replalink

MARGIN = 0.001  # unused share of printed limits, needed to enter the motion from rest


def published(name: str, mechanism: di.Mechanism) -> Published:
    """Return limits and motions for a robot from its document, completed by stated assumptions."""
    return MAKERS[name](mechanism) if name in MAKERS else _assumed(name, mechanism)


def _assumed(name: str, mechanism: di.Mechanism) -> Published:
    """Return a box around home with assumed speeds and accelerations, marked as assumed."""
    half, speed, push, period, source = ASSUMED[name]
    keys = ("lower", "upper", "velocity", "acceleration")
    box = {
        joint: dict(zip(keys, map(float, (at - h, at + h, v, a)), strict=True))
        for joint, at, h, v, a in zip(mechanism.coordinate_names, home_of(mechanism), half, speed, push, strict=True)
    }
    return Published(limits_of(mechanism, {"joints": box}), f"assumed; {source}", Fourier(1.0 / period, 5))


def _of_document_4(name: str, mechanism: di.Mechanism, **more: Any) -> Published:
    """Return limits and harmonics of the two robots identified in [Roldan2017]."""
    data = getattr(robots, name)
    settings: dict[str, Any] = {"default": {"acceleration": data.ACCELERATION_LIMIT}, "margin": MARGIN, **more}
    family = Fourier(data.FUNDAMENTAL, data.HARMONICS, rest=False)
    return Published(limits_of(mechanism, settings), "printed in [Roldan2017, chapter 6]", family)


def _replalink(mechanism: di.Mechanism) -> Published:
    """Return the printed rates in a box suitable for the machine's gains: the inertia is unbounded at singularities."""
    names = mechanism.coordinate_names
    ends = zip(names, replalink.START, replalink.BOX, strict=True)
    box = {name: {"lower": at - 0.6 * half, "upper": at + 0.6 * half} for name, at, half in ends}  # corners are singular
    found = _of_document_4("replalink", mechanism, joints=box, default={"acceleration": 10.0})
    source = "rates printed in [Roldan2017, chapter 6]; a box around the start is assumed, since the polygon is not printed"
    return replace(found, source=source)


class CartesianBox(Limit):
    """The Cartesian limits of CFT [Rodriguez2002, Table 5] on motions of its joints."""

    box = Box(0, cft.LIMITS[:, 0], cft.LIMITS[:, 1], tuple(cft.CARTESIAN))
    follows = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.box.names

    def excess(self, state: State) -> Array:
        """Return the excess of the Cartesian coordinates, (N, k)."""
        x = cft.cartesian_from_joint(state.q)
        return self.box.excess(State(x, x, x, x))


def _cft(mechanism: di.Mechanism) -> Published:
    """Return the Cartesian limits of [Rodriguez2002, Table 5]; rates are not printed and taken from its excitation."""
    source = "Cartesian ones of [Rodriguez2002, Table 5]; speeds and accelerations are those of its own excitation"
    family = Fourier(0.1, 4, rest=False)
    if mechanism.coordinate_names == cft.CARTESIAN:
        _, *rates = cft.excitation(np.arange(400) / 40.0)
        bounds = np.column_stack([cft.LIMITS, *(np.abs(rate).max(axis=0) for rate in rates)]).tolist()
        keys = ("lower", "upper", "velocity", "acceleration")
        box = {name: dict(zip(keys, row, strict=True)) for name, row in zip(cft.CARTESIAN, bounds, strict=True)}
        return Published(limits_of(mechanism, {"joints": box, "margin": MARGIN}), source, family)
    axes = [np.linspace(low, high, 9) for low, high in cft.LIMITS]
    q = cft.joint_from_cartesian(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4))
    _, v, a = cft.joint_motion(*cft.excitation(np.arange(400) / 40.0))
    joints = {
        joint: {"lower": float(low), "upper": float(high), "velocity": float(speed), "acceleration": float(push)}
        for joint, low, high, speed, push in zip(
            mechanism.coordinate_names, q.min(axis=0), q.max(axis=0), np.abs(v).max(axis=0), np.abs(a).max(axis=0), strict=True
        )
    }
    limits = limits_of(mechanism, {"joints": joints, "margin": MARGIN})
    return Published(replace(limits, others=(*limits.others, CartesianBox())), source, family)


def _dualv(mechanism: di.Mechanism) -> Published:
    """Return the box and the rates of the motion of `dualv.excitation`; the paper prints none."""
    motion = dualv.excitation()
    joints = {
        name: {"lower": -half, "upper": half, "velocity": float(speed), "acceleration": float(push)}
        for name, half, speed, push in zip(
            mechanism.coordinate_names, dualv.BOX, np.abs(motion.v).max(axis=0), np.abs(motion.a).max(axis=0), strict=True
        )
    }
    source = "box and rates of dynident_papers.robots.dualv.excitation; [Briot2015] prints none"
    return Published(limits_of(mechanism, {"joints": joints}), source, Fourier(1.0, 4))


def _er3a_c60(mechanism: di.Mechanism) -> Published:
    """Return ranges and speeds of [Pagani2022], completed by assumed limits."""
    settings = er3a_c60.limit_settings()
    source = "ranges and speeds of [Pagani2022, Table 4]; the others are assumed, see ASSUMPTIONS of its module"
    return Published(limits_of(mechanism, settings), source, Fourier(er3a_c60.FUNDAMENTAL, er3a_c60.HARMONICS))


MAKERS: dict[str, Callable[[di.Mechanism], Published]] = {
    "prr2": lambda mechanism: _of_document_4("prr2", mechanism),
    "replalink": _replalink,
    "cft": _cft,
    "dualv": _dualv,
    "er3a_c60": _er3a_c60,
}
ASSUMED: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], float, str]] = {
    "rrr": ((1.2, 0.9, 1.2), (3.0, 2.0, 3.0), (15.0, 8.0, 15.0), 5.0, "[Kostic2002] prints no limits"),
    "five_bar": ((0.25, 0.2), (1.0, 1.0), (4.0, 4.0), 4.0, "[Roldan2017] prints motor speeds up to 3700 rpm only"),
    "mast": (
        (0.06, 0.15, 0.15), (0.3, 0.6, 0.6), (3.0, 6.0, 6.0), 5.0,
        "[Roldan2016] prints a stroke of 0.3 m, tilts up to 20 degrees and a bandwidth of 4 Hz",
    ),
    "prs3": (
        (2e-3, 3.49e-3, 3.49e-3), (0.08, 0.16, 0.16), (4.0, 8.0, 8.0), 1.0,
        "[Ruiz2016] prints z +- 2 mm and tilts of +- 0.2 degrees",
    ),
}  # fmt: skip
"""Half-widths around home, speeds, accelerations [m, rad, s], period [s], and information of the document."""
