"""The robots of the literature as the command line knows them: entries of the group ``dynident.robots``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import dynident as di
from dynident.cli.robots import KnownRobot, Published, PublishedResponse
from dynident_papers import robots

if TYPE_CHECKING:
    from dynident.excitation import Plan
    from dynident.simulate import VirtualRobot
    from dynident_lab.testbench.tracking_case import ProofCase

FINE = 500.0  # Hz: rate of a motion that is not given as a curve


def _published(name: str, mechanism: di.Mechanism) -> Published:
    from dynident_papers.robots.published import published  # noqa: PLC0415 - few commands need it

    return published(name, mechanism)


def _machine(name: str, **options: float) -> VirtualRobot:
    from dynident_papers.robots.proofs import ready_machine  # noqa: PLC0415 - few commands need it

    return ready_machine(name, **options)


def _proof_case(name: str, options: Mapping[str, float], seed: int) -> ProofCase:
    from dynident_papers.robots.proofs import proof_case  # noqa: PLC0415 - one command needs it

    return proof_case(name, _machine(name, **options), seed)


def _mechanism(name: str) -> di.Mechanism:
    found: di.Mechanism = getattr(robots, name).mechanism()
    return found


def _robot(name: str, **options: float) -> KnownRobot:
    """Return a robot by the name of its module, which is imported when it is needed, and options of its machine."""
    return KnownRobot(
        mechanism=partial(_mechanism, name),
        machine=partial(_machine, name, **options),
        published=partial(_published, name),
        proof_case=partial(_proof_case, name, options),
    )


def _five_bar_tests() -> list[Mapping[str, Any]]:
    return [row._asdict() for row in robots.five_bar.compare()]


def _mast_response(coordinate: str) -> PublishedResponse:
    """Return the points of the heave, and the amplitude for every coordinate."""
    mast = robots.mast
    amplitude = float(mast.ASSUMPTIONS["amplitude"].value)
    if coordinate != "z":
        return PublishedResponse({}, {}, amplitude=amplitude, unloaded=mast.unloaded)
    return PublishedResponse(mast.BODE, mast.BANDWIDTHS, mast.BANDWIDTH_NOTES, amplitude, mast.unloaded)


def _cft_cartesian() -> di.Mechanism:
    return robots.cft.cartesian_model()


def _cft_reference(plan: Plan) -> di.Motion:
    """Return a plan of xc1 ... xc4 as a motion of the joints, finely sampled."""
    motion = plan.motion(max(plan.rate, FINE))
    return robots.cft.cartesian_reference(motion.t, motion.q, motion.v, motion.a)


cft_published = _robot("cft", added_inertia=0.0)
cft = replace(
    _robot("cft"),
    notes=(
        "0.2 kg m^2 are added to q4 and q5: the published mass matrix is indefinite on a third of the workspace; the robot "
        "cft_published is without them",
    ),
)
cft_cartesian = replace(cft, mechanism=_cft_cartesian, reference=_cft_reference)
dualv = _robot("dualv")
er3a_c60 = _robot("er3a_c60")
five_bar = replace(_robot("five_bar"), compare=_five_bar_tests)
mast = replace(_robot("mast"), response=_mast_response)
prr2 = _robot("prr2")
prs3 = _robot("prs3")
replalink = _robot("replalink")
rrr = _robot("rrr")
