"""Figures that only the report needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, SKY, WIDTH, label, new_figure, plain_axes
from dynident.identify import Fit, Score
from dynident.signals import autocorrelation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

Array = NDArray[np.float64]

LAGS = 60
POINTS = 3000


def plot_residuals(score: Score, joints: Sequence[str], units: Mapping[str, str]) -> Figure:
    """Draw, per joint, the distribution, the autocorrelation, and the residual against the prediction."""
    block, head = 1.75, 0.4
    height = head + block * len(joints) + 0.1
    figure = new_figure(WIDTH, height)
    step = float(np.median(np.diff(score.t))) if score.t.size > 1 else 1.0
    grid = np.linspace(-4.0, 4.0, 121)
    for row, name in enumerate(joints):
        j = score.joints.index(name)
        e, hat, std = score.measured[:, j] - score.predicted[:, j], score.predicted[:, j], score.std[:, j]
        bottom = (height - head - block * (row + 1) + 0.52) / height
        left, middle, right = (figure.add_axes((x, bottom, 0.255, (block - 0.72) / height)) for x in (0.05, 0.385, 0.73))
        z = np.clip(e / std, -4.0, 4.0)
        counts, edges = np.histogram(z[np.isfinite(z)], bins=33, range=(-4.0, 4.0))
        left.stairs(counts / max(counts.sum(), 1) / (edges[1] - edges[0]), edges, fill=True, color=SKY)
        left.plot(grid, np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi), color=INK, linewidth=0.9)
        left.set_yticks([])
        left.set_xlabel("residual / predicted standard deviation", fontsize=8, color=INK)
        left.set_title(label(name, 48), loc="left", fontsize=9.5, color=INK, pad=3)
        r = autocorrelation(e, LAGS)
        limit = 2.0 / np.sqrt(e.size)
        middle.axhspan(-limit, limit, color="#EEF1F3", zorder=0)
        # One line with gaps is a much smaller drawing than one line per lag.
        lags, nothing = step * np.arange(r.size), np.full(r.size, np.nan)
        middle.plot(
            np.column_stack([lags, lags, lags]).ravel(),
            np.column_stack([0.0 * r, r, nothing]).ravel(),
            color=BLUE,
            linewidth=1.6,
        )
        middle.axhline(0.0, color=MUTED, linewidth=0.6)
        middle.set_ylim(-1.05, 1.05)
        middle.set_xlabel("lag [s]", fontsize=8, color=INK)
        thin = slice(None, None, max(1, e.size // POINTS))
        right.plot(hat[thin], e[thin], ".", markersize=2.2, color=ORANGE, alpha=0.6, rasterized=e.size > 500)
        right.axhline(0.0, color=MUTED, linewidth=0.6)
        right.set_xlabel(f"predicted effort [{units.get(name, 'N m or N')}]", fontsize=8, color=INK)
        for axes in (left, middle, right):
            plain_axes(axes)
            axes.locator_params(axis="x", nbins=6)
        right.locator_params(axis="y", nbins=5)
    for x, text in (
        (0.05, "distribution (line: standard normal)"),
        (0.385, "autocorrelation (grey: white noise)"),
        (0.73, f"residual [{' or '.join(dict.fromkeys(units.get(n, 'N m or N') for n in joints))}] against prediction"),
    ):
        figure.text(x, 1.0 - 0.2 / height, text, fontsize=9.5, color=MUTED, va="center")
    return figure


def singular_values(fit: Fit) -> Array | None:
    """Return the singular values of the scaled, weighted regression, rebuilt from the covariance."""
    decomposition = weak_directions(fit)
    return None if decomposition is None else decomposition[0]


def weak_directions(fit: Fit) -> tuple[Array, Array, NDArray[np.int64]] | None:
    """Return singular values (largest first), right vectors (columns) and the base parameters they belong to.

    With cov = (W^T W)^-1 for the weighted W and D its column lengths, W D^-1 has the singular values
    sqrt(eig(D^-1 cov^-1 D^-1)).
    """
    solved = np.flatnonzero(fit.solved)
    if not solved.size:
        return None
    try:
        information = np.linalg.inv(fit.covariance[np.ix_(solved, solved)])
    except np.linalg.LinAlgError:
        return None
    length = np.sqrt(np.abs(np.diag(information)))
    if not np.all(np.isfinite(information)) or np.any(length == 0.0):
        return None
    squares, vectors = np.linalg.eigh(information / np.outer(length, length))
    if squares[0] <= 0.0:
        return None
    values = np.sqrt(squares[::-1])
    if not np.isclose(values[0] / values[-1], fit.condition, rtol=0.02):
        return None
    return values, vectors[:, ::-1], solved


def plot_singular_values(values: Array) -> Figure:
    """Draw singular values on decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator  # noqa: PLC0415 - matplotlib is an extra

    figure = new_figure(7.2, 2.6)
    axes = figure.add_axes((0.1, 0.2, 0.87, 0.75))
    axes.plot(np.arange(1, values.size + 1), values, "o-", color=BLUE, markersize=4, linewidth=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda x, _: ""))
    axes.set_xlabel("number", fontsize=9, color=INK)
    axes.set_ylabel("singular value", fontsize=9, color=INK)
    plain_axes(axes)
    return figure


def plot_truth(fit: Fit, true: Array) -> Figure:
    """Draw the error of every base parameter in standard deviations."""
    shown = [i for i in range(fit.base.rank) if fit.solved[i] and np.isfinite(true[i]) and fit.std[i] > 0.0]
    height = 0.9 + 2.6
    figure = new_figure(WIDTH, height)
    axes = figure.add_axes((0.055, 1.15 / height, 0.93, 2.2 / height))
    z = np.array([(fit.values[i] - true[i]) / fit.std[i] for i in shown])
    axes.axhspan(-2.0, 2.0, color="#E3F2EC", zorder=0)
    axes.axhline(0.0, color=MUTED, linewidth=0.6)
    axes.vlines(np.arange(z.size), 0.0, np.clip(z, -6, 6), color=GREEN, linewidth=0.8)
    axes.plot(np.arange(z.size), np.clip(z, -6, 6), "o", color=GREEN, markersize=4)
    plain_axes(axes)
    axes.set_xlim(-0.7, max(z.size, 1) - 0.3)
    axes.set_xticks(np.arange(z.size), [label(fit.base.names[i], 22) for i in shown], rotation=90, fontsize=6.5)
    axes.set_ylabel("error / std", fontsize=9, color=INK)
    return figure
