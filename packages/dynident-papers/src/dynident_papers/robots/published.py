"""Limits of the robots for the command excite: what their documents print, and where it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import dynident as di
from dynident.cli.robots import Published
from dynident.errors import DynidentError
from dynident.excitation import TaskBox, limits_of
from dynident.trajectory import Fourier
from dynident_papers import robots
from dynident_papers.robots import cft, dualv, er3a_c60

MARGIN = 0.001  # share of printed limits that stays unused: the motion is entered from rest, which needs a little room


def published(name: str, mechanism: di.Mechanism) -> Published:
    """Return what a robot's document says; a sentence tells what to give where it says too little."""
    if name in MAKERS:
        return MAKERS[name](mechanism)
    try:
        return Published(limits_of(mechanism), "those of the robot's description", Fourier(0.1, 5))
    except DynidentError:
        raise DynidentError(
            f"the source of '{name}' prints no complete limits{KNOWN.get(name, '')}; write lower, upper and velocity or "
            f"acceleration of {', '.join(mechanism.coordinate_names)} into a limits.toml and give it with --limits"
        ) from None


def _of_document_4(name: str, mechanism: di.Mechanism, **more: float) -> Published:
    """Return box limits, harmonics and base parameters of the two robots that [Roldan2017] identifies."""
    data = getattr(robots, name)
    settings: dict[str, Any] = {"default": {"acceleration": data.ACCELERATION_LIMIT}, "margin": MARGIN, **more}
    base = di.base_parameters(mechanism, order=[data.STANDARD_NAMES[leader] for leader in data.BASE_LEADERS])
    family = Fourier(data.FUNDAMENTAL, data.HARMONICS, rest=False)
    return Published(limits_of(mechanism, settings), "printed in [Roldan2017, chapter 6]", family, base)


def _cft(mechanism: di.Mechanism) -> Published:
    """Return the Cartesian limits of [Rodriguez2002, Table 5]; rates, which are not printed, are those of its excitation."""
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
    task = TaskBox(cft.cartesian_from_joint, cft.LIMITS[:, 0], cft.LIMITS[:, 1], tuple(cft.CARTESIAN))
    return Published(replace(limits, others=(*limits.others, task)), source, family)


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
    """Return ranges and speeds of [Pagani2022], and what is assumed beside them."""
    settings = er3a_c60.limit_settings()
    source = "ranges and speeds of [Pagani2022, Table 4]; the others are assumed, see ASSUMPTIONS of its module"
    return Published(limits_of(mechanism, settings), source, Fourier(er3a_c60.FUNDAMENTAL, er3a_c60.HARMONICS))


MAKERS: dict[str, Callable[[di.Mechanism], Published]] = {
    "prr2": lambda mechanism: _of_document_4("prr2", mechanism),
    "replalink": lambda mechanism: _of_document_4("replalink", mechanism, singularity=0.02),
    "cft": _cft,
    "dualv": _dualv,
    "er3a_c60": _er3a_c60,
}
KNOWN = {
    "mast": " (only a stroke of 0.3 m, tilts up to 20 degrees and a band-width of 4 Hz)",
    "prs3": " (only z +- 2 mm and tilts of +- 0.2 degrees)",
    "five_bar": " (only motor speeds up to 3700 rpm at a gear of 40)",
}
