"""Compiled M, h and loop closure of one sample: by the robot's own code when it has some, else by the code for any tree.

A robot's own code (`symbolic.motion`, made in `native`) is a straight line that knows which lengths and axes are zero: a fifth
of the time, on a planar robot a twentieth. It leaves no frames behind; who needs them calls `pose_tree`.
"""

from __future__ import annotations

from dynident.mechanics.kernels import sample_kernel as kernel
from dynident.mechanics.native_kernels import address_of, call_address
from dynident.mechanics.packed import BASE, CLOSURE, FACTOR, FORCE, MASS, MOTION, PHI, SOLVE, SPEED
from dynident.mechanics.sample_kernels import TINY, factorise_symmetric, mass_and_bias, pose_tree, solve_symmetric
from dynident.simulate.closure_kernels import closure_bias, closure_jacobian, substitute
from dynident.simulate.layout import CURVE, DEPENDENT, DOF, JACOBIAN, LOOPED, LU, MISSING, MODE, RIGHT, SWAP


@kernel
def closure_at(K, F, q):
    """Write dPhi/dq into JACOBIAN and Phi into the last column of RIGHT, at the tree positions F[q]."""
    if K[CLOSURE] == 0:
        pose_tree(K, F, q)
        closure_jacobian(K, F, q)
        return
    f = address_of(F)
    call_address(K[CLOSURE], (f + 8 * q, f + 8 * K[JACOBIAN], f + 8 * K[RIGHT]))


@kernel
def solve_at(K, F, mass, x):
    """Overwrite the n numbers at F[x] with M^-1 x, M (n, n) at F[mass]; return a pivot of rounding errors only, or -1."""
    if K[SOLVE] == 0:
        bad = factorise_symmetric(F, mass, K[FACTOR], K[DOF])
        if bad < 0:
            solve_symmetric(F, K[FACTOR], x, K[DOF])
        return bad
    f, n, pivots = address_of(F), K[DOF], K[FACTOR]
    call_address(K[SOLVE], (f + 8 * mass, f + 8 * x, f + 8 * pivots))
    for j in range(n):
        if not abs(F[pivots + j]) > TINY * abs(F[mass + j * n + j]):
            return j
    return -1


@kernel
def motion_at(K, F, q):
    """Write M into MASS and h into FORCE at tree positions F[q] and velocities SPEED; of loops also the bias b into CURVE.

    Loops must have been at that pose last (`closure_at` and the factors of its Jacobian).
    """
    if K[MOTION] != 0:
        f = address_of(F)
        inputs = (f + 8 * q, f + 8 * K[SPEED], f + 8 * K[PHI], f + 8 * K[BASE])
        call_address(K[MOTION], (*inputs, f + 8 * K[MASS], f + 8 * K[FORCE], f + 8 * K[RIGHT]))
    else:
        if K[MODE] != LOOPED:
            pose_tree(K, F, q)
        mass_and_bias(K, F)
        if K[MODE] == LOOPED:
            closure_bias(K, F)
    if K[MODE] == LOOPED:
        n, m = K[DOF], K[MISSING]
        substitute(F, K, K[LU], K[SWAP], m, K[RIGHT], n + 1, 1)
        for row in range(m):
            F[K[CURVE] + K[K[DEPENDENT] + row]] = F[K[RIGHT] + row * (n + 1)]
