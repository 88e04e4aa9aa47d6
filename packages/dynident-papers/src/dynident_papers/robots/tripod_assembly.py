"""Forward problem of robots with three PR legs: one solution by continuation, all of them by elimination.

With the sliders held, every platform joint B_i moves on a circle about the foot of its bar, and the platform keeps the three
distances between the joints:

    E_ij = |B_i - B_j|^2 - D_ij^2 = y(gamma_i) M_ij y(gamma_j)^T = 0,       y(gamma) = (1, cos gamma, sin gamma)

E_12 and E_13 are quadratic in t_2 = tan(gamma_2/2) and t_3, so eliminating them leaves the polynomial

    P(t_1) = lc_12^4 lc_13^4  prod_{t_2: E_12 = 0} prod_{t_3: E_13 = 0} E_23(t_2, t_3)

of degree 16. Its coefficients are found from its values on a circle; its real roots are the assembly modes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.shared import samples_of
from dynident_papers.robots.tripod import Tripod, leg_motion, platform_joints, platform_motion

DEGREE = 16
CLOSED = 1e-12  # residual of a closed platform, relative to the bar
STEPS = (8, 64)  # numbers of steps of the path from home, tried in turn


def _feet(t: Tripod, rho: Array) -> Array:
    """Return the feet of the bars in the planes of the legs, (N, 3, 2)."""
    fixed = np.full_like(rho, t.offset)
    return np.stack([fixed, rho], axis=2) if t.vertical else np.stack([fixed - rho, np.zeros_like(rho)], axis=2)


def closure(t: Tripod, x: Array, feet: Array) -> tuple[Array, Array]:
    """Return the length error of each bar and its slope."""

    def planar(y: Array) -> Array:
        return np.stack([np.einsum("sli,li->sl", y, t.outward), y[:, :, 2]], axis=2)

    zero = np.zeros_like(x)
    columns = []
    for unit in np.eye(3):
        B, B_dot, _ = platform_joints(t, platform_motion(t, x, zero + unit, zero))
        columns.append(planar(B_dot))
    bar = planar(B) - feet
    gap = (np.sum(bar**2, axis=2) - t.length**2) / (2.0 * t.length)
    return gap, np.stack([np.sum(bar * column, axis=2) for column in columns], axis=2) / t.length


def forward_kinematics(t: Tripod, rho: ArrayLike, start: ArrayLike, signs: Array) -> Array:
    """Return poses (N, 3) on the branch of a known pose, by continuation along straight slider paths."""
    (sliders,) = samples_of(3, rho=rho)
    (first,) = samples_of(3, start=start)
    origin = leg_motion(t, first, np.zeros((1, 3)), np.zeros((1, 3)), signs).slider
    side = np.sign(np.linalg.det(closure(t, first, _feet(t, origin))[1]))
    x, waiting = np.full_like(sliders, np.nan), np.arange(len(sliders))
    for steps in STEPS:
        trial, going = np.repeat(first, waiting.size, axis=0), waiting
        for share in np.linspace(0.0, 1.0, steps + 1)[1:]:
            feet = _feet(t, origin + share * (sliders[going] - origin))
            # Intermediate steps need the right branch, not full accuracy.
            trial, closed, determinant = _newton(t, trial, feet, CLOSED if share == 1.0 else 1e-5)
            held = closed & (np.sign(determinant) == side)
            trial, going = trial[held], going[held]
        x[going] = trial
        waiting = np.setdiff1d(waiting, going)
        if not waiting.size:
            return x
    bad = int(waiting[0])
    raise DynidentError(f"{t.name}: sliders at sample {bad} ({sliders[bad].tolist()} m) cannot be reached from the start pose: "
                        "the bars are too short, or a parallel singularity lies between; see assembly_modes")  # fmt: skip


def _newton(t: Tripod, x: Array, feet: Array, tolerance: float = CLOSED) -> tuple[Array, NDArray[np.bool_], Array]:
    """Return poses that close the bars to a share of their length, whether they do, and the determinant of the closure."""
    determinant = np.zeros(len(x))
    with np.errstate(all="ignore"):
        for _ in range(12):
            gap, slope = closure(t, x, feet)
            determinant = np.linalg.det(slope)
            regular = np.abs(determinant) > 1e-14 * t.radius**2
            slope[~regular] = np.eye(3)
            step = np.linalg.solve(slope, gap[:, :, None])[:, :, 0]
            step[~regular | ~np.isfinite(step).all(axis=1)] = 0.0
            x = x - np.clip(step, -0.3, 0.3)
            if np.max(np.abs(step), initial=0.0) < np.sqrt(tolerance):  # quadratic convergence: the next is below tolerance
                break
        gap, slope = closure(t, x, feet)
        if tolerance == CLOSED:  # one more for the last digit
            regular = np.abs(np.linalg.det(slope)) > 1e-14 * t.radius**2
            x[regular] -= np.linalg.solve(slope[regular], gap[regular, :, None])[:, :, 0]
            gap, _ = closure(t, x, feet)
    return x, np.max(np.abs(gap), axis=1) < tolerance * t.length, determinant


def assembly_modes(t: Tripod, rho: ArrayLike) -> Array:
    """Return every assembly mode (N, 16, 3) of the platform, in the operation mode of home (phi of `spin`)."""
    (sliders,) = samples_of(3, rho=rho)
    feet = _feet(t, sliders) / t.length
    M = {pair: _distance(t, feet, *pair) for pair in ((0, 1), (0, 2), (1, 2))}
    gamma = _candidates(M)
    modes = np.full((len(sliders), DEGREE, 3), np.nan)
    for s in range(len(sliders)):
        closed = _polish({pair: matrix[s] for pair, matrix in M.items()}, gamma[s])
        x = _poses(t, feet[s] * t.length, closed)
        x = x[np.argsort(-x[:, 0], kind="stable")][:DEGREE]
        modes[s, : len(x)] = x
    return modes


def _distance(t: Tripod, feet: Array, i: int, j: int) -> Array:
    """Return M_ij, (N, 3, 3), lengths in units of the bar."""
    k = float(t.outward[i] @ t.outward[j])
    apart = (t.radius / t.length) ** 2 * 2.0 * (1.0 - k)
    (Pi, Zi), (Pj, Zj) = feet[:, i].T, feet[:, j].T
    M = np.zeros((len(feet), 3, 3))
    M[:, 0, 0] = Pi**2 + Zi**2 + Pj**2 + Zj**2 + 2.0 - 2.0 * k * Pi * Pj - 2.0 * Zi * Zj - apart
    M[:, 1, 0], M[:, 2, 0] = -2.0 * (Pi - k * Pj), 2.0 * (Zi - Zj)
    M[:, 0, 1], M[:, 0, 2] = -2.0 * (Pj - k * Pi), 2.0 * (Zj - Zi)
    M[:, 1, 1], M[:, 2, 2] = -2.0 * k, -2.0
    return M


def _candidates(M: dict[tuple[int, int], Array]) -> Array:
    """Return angles near every real solution, (N, 64, 3); NaN where a root is complex."""
    circle = np.exp(2j * np.pi * (np.arange(2 * DEGREE) + 0.25) / (2 * DEGREE))
    values = _eliminant(M, np.broadcast_to(circle, (len(M[0, 1]), circle.size)))[0]
    power = np.fft.fft(values, axis=1)[:, : DEGREE + 1] / circle.size * circle[0] ** -np.arange(DEGREE + 1)
    coefficients = np.real(power)
    coefficients /= np.max(np.abs(coefficients), axis=1, keepdims=True)
    roots = np.full((len(coefficients), DEGREE), np.nan + 0j)
    for s, row in enumerate(coefficients):
        found = np.roots(row[::-1])
        roots[s, : found.size] = found
    _, t2, t3 = _eliminant(M, roots)
    first = np.repeat(roots, 4, axis=1)
    second, third = np.repeat(t2, 2, axis=2).reshape(first.shape), np.tile(t3, (1, 1, 2)).reshape(first.shape)
    halves = np.stack([first, second, third], axis=2)
    real = np.all(np.abs(halves.imag) < 0.05 * (1.0 + np.abs(halves)), axis=2)
    return np.where(real[:, :, None], 2.0 * np.arctan(halves.real), np.nan)


def _half(t: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return (1 + t^2) y(gamma) for t = tan(gamma/2)."""
    return np.stack([1.0 + t**2, 1.0 - t**2, 2.0 * t], axis=-1)


def _eliminant(
    M: dict[tuple[int, int], Array], t1: NDArray[np.complex128]
) -> tuple[NDArray[np.complex128], NDArray[np.complex128], NDArray[np.complex128]]:
    """Return P(t_1) (N, k) and the corresponding roots t_2, t_3 (N, k, 2)."""
    forms, leads, roots = [], [], []
    with np.errstate(all="ignore"):
        for pair in ((0, 1), (0, 2)):
            r = np.einsum("ski,sij->skj", _half(t1), M[pair])
            A, B, C = r[..., 0] - r[..., 1], r[..., 2], r[..., 0] + r[..., 1]  # A t^2 + 2 B t + C
            root = np.sqrt(B**2 - A * C)
            n, d = np.stack([-B - root, -B + root], axis=-1), A[..., None]
            forms.append(np.stack([d**2 + n**2, d**2 - n**2, 2.0 * n * d], axis=-1))
            leads.append(A)
            roots.append(n / d)
        E = np.einsum("skai,sij,skbj->skab", forms[0], M[1, 2], forms[1])
        value = np.prod(E, axis=(2, 3)) / (leads[0] * leads[1]) ** 4
    return value, roots[0], roots[1]


def _polish(M: dict[tuple[int, int], Array], gamma: Array) -> Array:
    """Return the distinct solutions near some angles, (k, 3)."""
    g = gamma[np.isfinite(gamma).all(axis=1)]
    E = np.zeros((len(g), 3))
    with np.errstate(all="ignore"):
        for _ in range(30):
            y = np.stack([np.ones_like(g), np.cos(g), np.sin(g)], axis=2)
            slope = np.stack([np.zeros_like(g), -np.sin(g), np.cos(g)], axis=2)
            E, J = np.zeros((len(g), 3)), np.zeros((len(g), 3, 3))
            for row, ((i, j), matrix) in enumerate(M.items()):
                E[:, row] = np.einsum("ci,ij,cj->c", y[:, i], matrix, y[:, j])
                J[:, row, i] = np.einsum("ci,ij,cj->c", slope[:, i], matrix, y[:, j])
                J[:, row, j] = np.einsum("ci,ij,cj->c", y[:, i], matrix, slope[:, j])
            J[np.abs(np.linalg.det(J)) < 1e-12] += 1e-6 * np.eye(3)
            g = g - np.clip(np.nan_to_num(np.linalg.solve(J, E[:, :, None])[:, :, 0]), -0.3, 0.3)
    found: list[Array] = []
    for angles in g[np.max(np.abs(E), axis=1, initial=0.0) < 1e-10]:
        turned = np.angle(np.exp(1j * angles))
        if all(np.max(np.abs(np.exp(1j * turned) - np.exp(1j * other))) > 1e-6 for other in found):
            found.append(turned)
    return np.array(found).reshape(-1, 3)


def _poses(t: Tripod, feet: Array, gamma: Array) -> Array:
    """Return the poses (k, 3) of platforms from bar angles, only in home's operation mode."""
    radial = feet[None, :, 0] - t.length * np.cos(gamma)
    height = feet[None, :, 1] + t.length * np.sin(gamma)
    B = radial[:, :, None] * t.outward + height[:, :, None] * np.array([0.0, 0.0, 1.0])
    # B_i = p + r R e_i for three known e_i: least squares gives p and the first two columns of R.
    fit = np.linalg.pinv(np.column_stack([np.ones(3), t.radius * t.outward[:, :2]]))
    p, u, v = np.moveaxis(np.einsum("ki,cij->ckj", fit, B), 1, 0)
    w = np.cross(u, v)
    psi, theta = np.arcsin(np.clip(-w[:, 1], -1.0, 1.0)), np.arctan2(w[:, 0], w[:, 2])
    x = np.column_stack([p[:, 2], psi, theta])
    zero = np.zeros_like(x)
    again = platform_joints(t, platform_motion(t, x, zero, zero))[0]
    return np.asarray(x[np.max(np.abs(again - B), axis=(1, 2), initial=0.0) < 1e-6 * t.length])
