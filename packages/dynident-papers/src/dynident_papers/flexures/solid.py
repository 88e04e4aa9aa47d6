"""Flexure hinges as elastic solids: the stiffness of a notch by finite elements (quadratic hexahedra, linear).

Half a hinge, from its middle to `links` beyond the notch, is turned at its end face; the middle is a plane of symmetry.
Beams are stiffer: in a steep fillet the material beside the neck carries less than a beam assumes.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from dynident.arrays import Array
from dynident_papers.flexures.hinges import FlexureHinge

ALONG = (3, 8, 5)  # elements of neck, fillet and link
ACROSS = 3  # elements across the section, both ways


def solid_stiffness(hinge: FlexureHinge, turning: str, links: float = 0.02) -> tuple[float, float]:
    """Return the stiffness of a hinge in "bending" or "torsion" [N m/rad], of the notch alone and with both links.

    Links have the thickness of the hinge's ends and are `links` long [m]; a round hinge has round ones.
    """
    from scipy.sparse import coo_matrix  # noqa: PLC0415 - scipy is loaded on first use
    from scipy.sparse.linalg import splu  # noqa: PLC0415 - scipy is loaded on first use

    nodes, elements, end = _mesh(hinge, links)
    dof = (3 * elements[:, :, None] + np.arange(3)).reshape(len(elements), 81)
    rows, columns = np.repeat(dof, 81, axis=1).ravel(), np.tile(dof, (1, 81)).ravel()
    K = coo_matrix((_stiffness(hinge, nodes[elements]).ravel(), (rows, columns)), shape=(nodes.size, nodes.size)).tocsc()
    middle, last = (np.flatnonzero(np.isclose(nodes[:, 0], x)) for x in (0.0, nodes[:, 0].max()))
    turned = np.zeros((len(nodes), 3))  # displacements for a unit rotation of the end
    if turning == "bending":
        turned[:, 0] = -nodes[:, 1]
        held = [3 * middle, 3 * last, 3 * middle[[len(middle) // 2]] + 1, 3 * middle[[len(middle) // 2, -1]] + 2]
    else:
        turned[:, 1], turned[:, 2] = -nodes[:, 2], nodes[:, 1]
        held = [3 * middle + 1, 3 * middle + 2, 3 * last + 1, 3 * last + 2, 3 * middle[[len(middle) // 2]]]
    fixed, u = np.concatenate(held), np.zeros(nodes.size)
    u[fixed] = np.where(np.isin(fixed // 3, last), turned.ravel()[fixed], 0.0)
    free = np.setdiff1d(np.arange(nodes.size), fixed)
    u[free] = splu(K[free][:, free]).solve(-(K @ u)[free])
    moment = float(u @ (K @ u))
    face = np.flatnonzero(np.isclose(nodes[:, 0], end))
    angle = float(np.sum(u.reshape(-1, 3)[face] * turned[face]) / np.sum(turned[face] ** 2))
    return moment / (2.0 * angle), moment / 2.0


def _mesh(hinge: FlexureHinge, links: float) -> tuple[Array, Array, float]:
    """Return nodes (N, 3), elements (E, 27) and where the notch ends."""
    angle = np.linspace(0.0, float(np.arccos(1.0 - 0.5 * (hinge.link - hinge.thickness) / hinge.radius)), 2 * ALONG[1] + 1)
    neck = np.linspace(0.0, 0.5 * hinge.neck, 2 * ALONG[0] + 1)[: -1 if hinge.neck else 0]
    fillet = 0.5 * hinge.neck + hinge.radius * np.sin(angle)
    x = np.concatenate([neck, fillet, fillet[-1] + links * np.linspace(0.0, 1.0, 2 * ALONG[2] + 1)[1:] ** 1.5])
    h = hinge.thickness + 2.0 * hinge.radius * (1.0 - np.cos(angle))
    h = np.concatenate([np.full(len(neck), hinge.thickness), h, np.full(2 * ALONG[2], hinge.link)])
    side = np.linspace(-1.0, 1.0, 2 * ACROSS + 1)
    y, z = np.meshgrid(side, side, indexing="ij")
    if hinge.width is None:  # the square becomes a disc
        y, z = y * np.sqrt(1.0 - 0.5 * z**2), z * np.sqrt(1.0 - 0.5 * y**2)
    depth = h if hinge.width is None else np.full(len(h), hinge.width)
    shape = (len(x), *y.shape)
    nodes = np.stack(
        [np.broadcast_to(x[:, None, None], shape), 0.5 * h[:, None, None] * y, 0.5 * depth[:, None, None] * z], axis=-1
    ).reshape(-1, 3)
    number = np.arange(len(nodes)).reshape(shape)
    starts = product(*(range(0, n - 1, 2) for n in shape))
    return nodes, np.array([number[i : i + 3, j : j + 3, k : k + 3].ravel() for i, j, k in starts]), float(fillet[-1])


def _stiffness(hinge: FlexureHinge, corners: Array) -> Array:
    """Return the stiffness matrices (E, 81, 81) of elements with nodes (E, 27, 3)."""
    shear = hinge.young / (2.0 * (1.0 + hinge.poisson))
    D = np.diag([2.0 * shear] * 3 + [shear] * 3)
    D[:3, :3] += 2.0 * shear * hinge.poisson / (1.0 - 2.0 * hinge.poisson)
    points, weights = np.polynomial.legendre.leggauss(3)
    shapes = np.array([[0.5 * t * (t - 1.0), 1.0 - t**2, 0.5 * t * (t + 1.0)] for t in points])
    slopes = np.array([[t - 0.5, -2.0 * t, t + 0.5] for t in points])
    K = np.zeros((len(corners), 81, 81))
    for at in product(range(3), repeat=3):
        local = np.stack(
            [np.einsum("i,j,k", *((slopes if axis == k else shapes)[at[k]] for k in range(3))).ravel() for axis in range(3)]
        )
        J = local @ corners
        gradient = np.linalg.solve(J, np.broadcast_to(local, (len(J), 3, 27)))
        B = np.zeros((len(J), 6, 27, 3))
        for k in range(3):
            B[:, k, :, k] = gradient[:, k]
            B[:, 3 + k, :, k], B[:, 3 + k, :, (k + 1) % 3] = gradient[:, (k + 1) % 3], gradient[:, k]
        strain = B.reshape(len(J), 6, 81)
        K += (np.prod(weights[list(at)]) * np.linalg.det(J))[:, None, None] * (strain.swapaxes(1, 2) @ (D @ strain))
    return K
