"""Whether a simulated closed loop is that of the robot: what it found against a witness that knows no controller.

    H = d^T (cov theta + cov beta)^+ d,    d = theta - beta,    H ~ chi^2(rank) where both are right   [Hausman1978]

theta is the estimate of closed-loop output error, beta that of instrumental variables: inverse dynamics along the measured
motion, the reference as instrument. Noise of the encoders biases neither, and only theta depends on the simulated controller.
Comparing positions of the simulation with its efforts would not do: both follow the simulated motion, and go astray together.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentWarning, IdentificationError
from dynident.identify.fit import Fit
from dynident.identify.methods.direct import Loop
from dynident.identify.methods.instrumental import IV
from dynident.identify.methods.sampled import SampledRegression
from dynident.identify.tables import GAINS

Array = NDArray[np.float64]

LEVEL = 1e-3  # of the test: how often a right loop is doubted
ROUND = 1e-10  # eigenvalue of a scaled covariance below which a direction is round-off


def contradiction(
    evidence: SampledRegression, loop: Loop, active: NDArray[np.bool_], theta: Array, covariance: Array
) -> tuple[str, Array]:
    """Return a sentence about what both disagree on, empty if nothing, and by how much, (b,), zero where they agree."""
    from scipy.stats import chi2  # noqa: PLC0415 - scipy.stats costs import time

    apart, witness = np.zeros(evidence.base.rank), _witness(evidence, loop, active)
    if witness is None:
        return "", apart
    known = np.flatnonzero(witness.solved & witness.active & np.isfinite(np.diag(witness.covariance)))
    if not known.size:
        return "", apart
    d = theta[known] - witness.values[known]
    V = covariance[np.ix_(known, known)] + witness.covariance[np.ix_(known, known)]
    size = np.sqrt(np.diag(V))
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(V / np.outer(size, size))
    kept = values > ROUND * values[-1]
    H = float(np.sum((vectors[:, kept].T @ (d / size)) ** 2 / values[kept]))
    if not chi2.isf(LEVEL, int(kept.sum())) < H:
        return "", apart
    apart[known] = d
    worst = known[int(np.argmax(np.abs(d) / size))]
    text = (
        f"the simulated loop and the measured motion with its efforts ask for different robots (chi^2 = {H:.3g} of "
        f"{int(kept.sum())}), such as {evidence.base.names[worst]} = {theta[worst]:.4g} and {witness.values[worst]:.4g}: the "
        "simulated controller is not that of the robot (how late is the velocity it sees? its cycle, delay and filters); the "
        "deviations allow for it, but mend the loop, or use IV"
    )
    return text, apart


def _witness(evidence: SampledRegression, loop: Loop, active: NDArray[np.bool_]) -> Fit | None:
    """Return what instrumental variables, the references of the loop, say of the same evidence; None where they are silent."""
    if not any(np.any(y) for part in evidence.stretches for y in part.y):
        return None  # a log without efforts has no inverse dynamics
    estimator = IV(instruments=lambda i, _: loop.reference(i))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # weak ones are not asked
        try:
            fit = estimator.fit(evidence, active=active).result_
        except IdentificationError:
            return None
    return None if estimator.weakness_ else fit


def told_gains(factors: Mapping[str, float], std: Mapping[str, float], held: Sequence[str]) -> str:
    """Return the note about gains of a loop that were found, and those that were held; nothing where all are known."""
    said = [f"{name} is {factors[name]:.4g} +- {std[name]:.2g} times what the loop has" for name in factors if name not in held]
    if held:
        said.append(
            f"{', '.join(held)} {'is' if len(held) == 1 else 'are'} held at what the loop has: positions alone show masses, "
            "inertias and friction only relative to the gains of drive and controller: a factor on those is one on all of these"
        )
    return f"{GAINS}{'; '.join(said)}" if said else ""
