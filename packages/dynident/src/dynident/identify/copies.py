"""Whether two logs of the same motion are copies or two runs.

Let x1 and x2 be the efforts of both logs at the same instants. Both contain the same motion and the same model error s. A copy
contains the same noise as well, whatever was done to it; another run has noise of its own:

    copy:         x2 = x1 + w                      1 - beta = 0
    another run:  x1 = s + n1,  x2 = s + n2        1 - beta = |n1|^2 / |x1|^2 = phi / 2  if both are equally noisy

with beta = <x1, x2> / |x1|^2 and phi = |x2 - x1|^2 / |x1|^2 for every joint and group of frequencies. For a copy, 1 - beta has
mean 0 and variance phi / N + 0.1^2, with N independent values and 0.1 for the imperfections of interpolation. The logarithm of
the likelihood ratio of both hypotheses, summed over joints and frequencies, is expected to be I for another run and -I for a
copy with noise; the log is called a copy below -I / 2, and if it hardly differs (mean phi below 0.1). A low-pass acts on all
joints alike: its gain is divided out, and frequencies that it has removed do not count, nor do those below the rounding of the
fingerprint. Snippets show the noise above the motion, rows that in its band. Noise that was added to a copy is in the residual
of the model as well, so a difference that is larger than that residual is none.
"""

from __future__ import annotations

import numpy as np

from dynident.arrays import Array

SAME = 0.02  # distance of positions over the motion in the window
GROUPS = 16  # of frequencies, up to half the rate
FAINT = 0.7  # amplitude over that of the training log, below which a filter has removed these frequencies
SLACK = 0.1  # of beta: what interpolation, filters and rounding of a copy may change
ALIKE = 0.1  # phi of logs that differ by less than another run would
ADDED, EXPLAINED = 1.3, 4.0  # of `explained`: at most for a copy, 1 but for chance; at least for another motion, 2 likewise
DROWNED = 10.0  # phi of noise in which a copy cannot be recognised
ROUNDED = 100.0  # power over that of the rounding of the fingerprint, from which on it can be compared
NOTHING = (0.0, 0.0, np.inf)  # of `another_run`, if no frequency can be compared
Triple = tuple[Array, Array, Array]  # efforts (rows, n): training log, validation log, model


def distance(triples: list[Triple]) -> float:
    """Return the distance of both logs, every joint over its own effort."""
    if not triples:
        return 0.0
    there, here, _ = (np.concatenate(parts) for parts in zip(*triples, strict=True))
    return float(np.sum(np.sum((there - here) ** 2, axis=0) / np.maximum(np.sum(here**2, axis=0), 1e-300)))


def explained(triples: list[Triple]) -> float:
    """Return the square of the difference of both logs over that of the residual of the validation log, mean of the joints.

    Noise that is added to a copy is in both, 1 at most; another run with as much noise gives 2 at most; more than that is
    explained by the motion: speeds or accelerations differ.
    """
    if not triples:
        return 0.0
    one, other, product, _ = _cells([(there, here) for there, here, _ in triples], 1.0)
    model, _, like = _cells([(p, here) for _, here, p in triples], 1.0)[:3]
    kept = other > FAINT**2 * one  # not removed by a filter
    apart, own, size = (
        np.sum(np.where(kept, x, 0.0), axis=0) for x in (one + other - 2.0 * product, model + other - 2.0 * like, other)
    )
    return float(np.mean(apart / np.maximum(own + SAME**2 * size, 1e-300)))


def is_copy(rows: list[Triple], snippets: list[Triple], rounding: Array) -> bool:
    """Return whether efforts in the band of the motion and samples as they were logged have the same noise."""
    if max(explained(rows), explained(snippets)) > ADDED:
        return False
    slow = another_run([(there - p, here - p, p) for there, here, p in rows], 0.3, np.zeros(1))
    # Second differences keep the slow motion from leaking into the frequencies of the noise.
    rough = [(np.diff(there, 2, axis=0), np.diff(here, 2, axis=0), p) for there, here, p in snippets]
    fast = another_run(rough, 0.75, rounding) if snippets else NOTHING
    phi = slow[2] if fast is NOTHING else fast[2]
    return slow[0] + fast[0] < -0.5 * (slow[1] + fast[1]) or phi < ALIKE


def another_run(triples: list[Triple], independent: float, rounding: Array) -> tuple[float, float, float]:
    """Return ln(likelihood of another run / likelihood of a copy), its expectation for another run, and phi.

    Frequencies that a filter has removed, or whose power is less than that of rounding (variance `rounding`), tell nothing.
    """
    one, other, product, values = _cells([(there, here) for there, here, _ in triples], independent)
    power = np.mean([np.sum(np.hanning(len(there) + 2) ** 2) for there, _, _ in triples])  # of the taper
    faintest = ROUNDED * rounding * power * values / (2.0 * independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        amplitude = np.sqrt(other / one)
        amplitude[np.isnan(amplitude).all(axis=1)] = 0.0
        gain = np.nanmedian(amplitude, axis=1, keepdims=True)  # a filter acts on all joints alike
        passed = gain > FAINT
        gain = np.minimum(gain, 1.0)
        beta, phi = product / one / gain, other / one / gain**2 - 2.0 * product / one / gain + 1.0
        seen = (one > faintest) & (values > 0.0) & passed & (phi < DROWNED)
        expected, variance = np.minimum(0.5 * phi, 1.0), phi / values + SLACK**2
        evidence = expected / variance * (1.0 - beta - 0.5 * expected)
        information = 0.5 * expected**2 / variance
    if not seen.any():
        return NOTHING
    return float(np.sum(evidence[seen])), float(np.sum(information[seen])), float(np.average(phi[seen], weights=values[seen]))


def _cells(pairs: list[tuple[Array, Array]], independent: float) -> Array:
    """Return |x1|^2, |x2|^2, <x1, x2> and the number of independent values, per group of frequencies and joint."""
    sums = np.zeros((4, GROUPS, pairs[0][0].shape[1]))
    for pair in pairs:
        size = len(pair[0])
        taper = np.hanning(size + 2)[1:-1, None]
        one, other = (np.fft.rfft(taper * (x - x.mean(axis=0)), axis=0)[1:] for x in pair)
        group = np.minimum(np.arange(1, len(one) + 1) * 2 * GROUPS // size, GROUPS - 1)
        parts = (np.abs(one) ** 2, np.abs(other) ** 2, (one.conj() * other).real, np.full(one.shape, 2.0 * independent))
        for total, part in zip(sums, parts, strict=True):
            np.add.at(total, group, part)
    return sums
