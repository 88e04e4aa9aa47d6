"""The 2-PRR pick-and-place mechanism ("scissor"): two sliders on one rail, three bars, a platform that only translates.

C. G. Roldan Paraponiaris, "Mechatronic analysis of parallel manipulators", PhD thesis, UPV/EHU Bilbao 2017, section 6.1 and
appendix B.3. Numbers in brackets are the thesis' equations; ERR-n are the corrections of the digest's register.

rho_1 runs to the right from the left end of the rail, rho_2 to the left from its right end, and all bars make the same angle
alpha with the rail (appendix B.3 is lost; its two surviving scalars, B.63 and B.64, fit this convention):

    u = (a - d - rho_1 - rho_2)/2 = L cos(alpha),    x = rho_1 + u + d/2,    y = -L sin(alpha)
    A = 1/(2 tan alpha),   B = 1/(2 L sin alpha),    alpha_dot = B (v_1 + v_2),   y_dot = -A (v_1 + v_2)
    F = K(rho, v, a) Phi,  Phi = m1 ... m6, I3, I4, I5, Fc1, Fc2, c1, c2                                 (6.15)

m1, m2 are the sliders with the reflected inertia of their drives, 3 and 4 the parallel bars on slider 1, 5 the bar on
slider 2, 6 the platform; I are moments about the middle of each bar, where the thesis takes the centre of mass to be known.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion, numbers
from dynident.mechanism import Actuator, Body, Coupling, Joint, Limits, Loop, Mechanism, Placement
from dynident.mechanism.elements import rotation_exp
from dynident.mechanism.inertia import from_com

Array = NDArray[np.float64]

# ---- the document's numbers (sections 6.1 and 6.1.4 to 6.1.7) -----------------------------------------------------------

BAR = 0.654  # L [m]
RAIL = 1.3  # a, distance between the origins of the two sliders [m]
SPACING = 0.095  # d, distance between the revolute joints [m]
GRAVITY = 9.81
TORQUE_CONSTANT, GEAR, PITCH = 30.2e-3, 14.0, 0.07  # K_t [N m/A], i_r, p [m/rev] (6.21)
MOTOR_RATIO = 2.0 * np.pi * GEAR / PITCH  # motor rad per metre of slider (6.22); also F / tau of the motor (6.3)
WORKSPACE = {"x": (0.4, 0.86), "y": (-0.68, -0.41)}
"""Figure 6.1b [m]. y = -0.68 m is beyond the bars: it is of a tool point whose offset the thesis does not print."""

PARAMETER_NAMES = ("m1", "m2", "m3", "m4", "m5", "m6", "I3", "I4", "I5", "Fc1", "Fc2", "c1", "c2")
"""Phi of (6.13) and (6.14). The text says I1, I2, I3 drop out; those without effect are I1, I2, I6 (ERR-24)."""

THEORETICAL: Mapping[str, float] = {
    **{"m1": 23.9744, "m2": 23.5028, "m3": 1.0267, "m4": 1.0267, "m5": 1.0267},
    **{"m6": 2.7750, "I3": 0.0366, "I4": 0.0366, "I5": 0.0366},
}
"""Table 6.2, column "Theoretic" [kg, kg m^2]. The text has 2.5 kg for the platform and 1.02 kg for bars (ERR-22)."""

TABLE_6_2: Mapping[str, tuple[float, float]] = {
    **{"m1": (18.9629, 0.7672), "m2": (20.0594, 0.6310), "m3": (3.3610, 1.4459), "m4": (3.3610, 1.4459)},
    **{"m5": (3.3610, 1.4459), "m6": (4.2582, 0.0452), "I3": (0.2651, 0.1642), "I4": (0.2651, 0.1642)},
    **{"I5": (0.2651, 0.1642), "Fc1": (44.6720, 0.0012), "Fc2": (41.8698, 0.0013), "c1": (6.6421, 0.0082)},
    **{"c2": (2.4614, 0.0085)},
}
"""Table 6.2: mean and standard deviation over the 15 solvable subsets of TRUSTED."""

TRUSTED = ("I3", "I4", "I5", "m3", "m4", "m5", "m6")
"""Parameters weighed or measured beforehand (6.1.6): 21 subsets of five, 15 of them solvable."""

THESIS_EQUATIONS: tuple[tuple[Mapping[str, float], float], ...] = (
    ({"I3": 0.0075, "I4": 0.0075, "I5": 0.0075, "Fc1": 1.0}, 44.6742),
    ({"I3": 0.008, "I4": 0.008, "I5": 0.008, "Fc2": 1.0}, 41.8721),
    ({"I3": -0.0504, "I4": -0.0504, "I5": -0.0504, "c1": 1.0}, 6.6274),
    ({"I3": -0.0523, "I4": -0.0523, "I5": -0.0523, "c2": 1.0}, 2.4461),
    ({"m1": 1.0, "m5": -0.5, "I3": 4.6625, "I4": 4.6625, "I5": 4.6625}, 19.5026),
    ({"m2": 1.0, "m5": 0.5, "I3": 0.0092, "I4": 0.0092, "I5": 0.0092}, 20.8867),
    ({"m6": 1.0, "I3": 4.6417, "I4": 4.6417, "I5": 4.6417}, 4.7265),
    ({"m3": 1.0, "m4": 1.0, "m5": 1.0, "I3": -9.3088, "I4": -9.3088, "I5": -9.3088}, 2.2236),
)
"""(6.23) to (6.30) as printed. The coefficients are those of `base_matrix` polluted by numerical derivatives (up to 0.8 %)."""

BASE_LEADERS = ("m1", "m2", "m3", "m6", "Fc1", "Fc2", "c1", "c2")
"""Leaders that give the exact combinations of `base_matrix`; columns on which the condition numbers below are taken."""

FUNDAMENTAL, HARMONICS, START = 0.4, 10, (0.2, 0.25)  # [Hz], -, rho_0 [m]
POSITION_LIMITS = ((0.002, 0.35), (0.047, 0.35))
"""Limits of rho [m]. The thesis prints 0.035 m above, below its own start: 0.35 m is meant (ERR-23)."""
VELOCITY_LIMIT, ACCELERATION_LIMIT = 0.57, 5.0  # [m/s], [m/s^2]
SAMPLING, CUTOFF = 0.002, 15.0  # [s]; third-order low-pass [Hz]
_C1 = (0.0066, 0.0033, 0.0022, 0.0016, 0.0013, 0.0011, 0.0009, 0.0008, 0.0007, 0.0007)
_C2 = (0.0060, 0.0030, 0.0020, 0.0015, 0.0012, 0.0010, 0.0009, 0.0008, 0.0007, 0.0006)
INITIAL_AMPLITUDES = (np.array([_C1, _C2]), np.array([_C1, _C2]))
"""C and D of Table 6.1, (2, 10) each: velocity amplitudes in m/s (the table says m, ERR-28)."""
CONDITION_FMINCON, CONDITION_PATTERNSEARCH = 28.23, 20.78
"""Condition number of the base regressor after optimising (6.1.4); the optimised amplitudes are not printed."""
CONDITION_INITIAL = 1.919e4
"""That of Table 6.1 as printed, by the digest."""
VALIDATION = {"frequency": 3.5, "amplitude": 0.01145, "cycles": 7.0, "control period": 0.005}
"""Sine of the validation (6.1.7) [Hz, m, -, s]; errors 92 of 190 N and 75 of 156 N ("40 N" in 6.3 is wrong, ERR-25)."""

WORKING_MODES = ("inward", "outward")
"""Bars between the sliders (cos alpha > 0), or crossed over them. Bars that lean the same way give two more solutions of
the inverse problem, but in them the sliders cannot hold the platform at all (parallel singularity everywhere)."""
ASSEMBLY_MODES = ("below", "above")
"""Platform under the rail (sin alpha > 0, as built), or over it."""


def samples_of(n: int, **given: ArrayLike) -> list[Array]:
    """Return arrays (N, n) after checking that they are finite numbers of as many samples; one sample may be a vector.

    Parameters
    ----------
    n : int
        Columns.
    **given : array_like
        Arrays by name.

    Returns
    -------
    list of ndarray, (N, n)
        Checked arrays.
    """
    arrays: dict[str, Array] = {}
    for what, values in given.items():
        array = numbers(values, what)
        array = array[None] if array.ndim == 1 else array
        if array.ndim != 2 or array.shape[1] != n:
            raise DynidentError(f"{what} has shape {np.shape(values)}; give (samples, {n})")
        if not np.all(np.isfinite(array)):
            raise DynidentError(f"{what} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0][0])}; remove it")
        arrays[what] = array
    if len({len(array) for array in arrays.values()}) > 1:
        sizes = ", ".join(f"{what} {len(array)}" for what, array in arrays.items())
        raise DynidentError(f"numbers of samples differ ({sizes}); give as many of each")
    return list(arrays.values())


def choice(value: str, known: tuple[str, ...], what: str) -> int:
    """Return the place of a word in a list of known ones.

    Parameters
    ----------
    value : str
        Word.
    known : tuple of str
        Words that may be given.
    what : str
        How to name it in the error.

    Returns
    -------
    int
        Index.
    """
    if value not in known:
        raise DynidentError(f"{what} is {value!r}; it must be one of {', '.join(known)}")
    return known.index(value)


def parameter_values(given: Mapping[str, float] | None, names: tuple[str, ...], default: Mapping[str, float]) -> Array:
    """Return a parameter vector: the defaults with some numbers changed, 0 where there is no default.

    Parameters
    ----------
    given : mapping of str to float, optional
        Numbers that change.
    names : tuple of str
        Names in order.
    default : mapping of str to float
        Default numbers.

    Returns
    -------
    ndarray, (p,)
        Numbers.
    """
    changed = dict(given or {})
    for name, value in changed.items():
        if name not in names:
            raise DynidentError(f"unknown parameter '{name}'; parameters are {', '.join(names)}")
        if not np.isfinite(value):
            raise DynidentError(f"parameter '{name}' is {value}; give a finite number")
    return np.array([changed.get(name, default.get(name, 0.0)) for name in names])


# ---- kinematics ---------------------------------------------------------------------------------------------------------


def bar_angle(rho: ArrayLike, assembly: str = "below") -> Array:
    """Return the angle alpha of the bars with the rail, L cos(alpha) = (a - d - rho_1 - rho_2)/2.

    Parameters
    ----------
    rho : array_like, (N, 2)
        Slider positions [m].
    assembly : {"below", "above"}
        Side of the rail on which the platform hangs.

    Returns
    -------
    ndarray, (N,)
        Angles [rad], sin(alpha) > 0 below and < 0 above.
    """
    (position,) = samples_of(2, rho=rho)
    cosine = 0.5 * (RAIL - SPACING - position[:, 0] - position[:, 1]) / BAR
    if np.any(np.abs(cosine) > 1.0):
        bad = int(np.argmax(np.abs(cosine) > 1.0))
        raise DynidentError(f"sliders at sample {bad} ({position[bad].tolist()} m) are {2 * abs(cosine[bad]) * BAR:.4g} m apart "
                            f"between the bars, which reach {2 * BAR:.4g} m; move them closer together")  # fmt: skip
    return np.asarray((1.0 - 2.0 * choice(assembly, ASSEMBLY_MODES, "assembly")) * np.arccos(cosine))


def forward_kinematics(rho: ArrayLike, assembly: str = "below") -> Array:
    """Return the centre of the platform.

    Parameters
    ----------
    rho : array_like, (N, 2)
        Slider positions [m].
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    ndarray, (N, 2)
        x, y [m] from the origin of slider 1.
    """
    (position,) = samples_of(2, rho=rho)
    alpha = bar_angle(position, assembly)
    return np.stack([position[:, 0] + BAR * np.cos(alpha) + 0.5 * SPACING, -BAR * np.sin(alpha)], axis=1)


def inverse_kinematics(x: ArrayLike) -> Array:
    """Return the slider positions for a place of the platform.

    Parameters
    ----------
    x : array_like, (N, 2)
        Centre of the platform [m]; either side of the rail.

    Returns
    -------
    ndarray, (N, 2, 2)
        rho [m], second axis in the order of `WORKING_MODES`; NaN out of reach.
    """
    (place,) = samples_of(2, x=x)
    with np.errstate(invalid="ignore"):
        reach = np.sqrt((BAR - place[:, 1]) * (BAR + place[:, 1]))
    left, right = place[:, 0] - 0.5 * SPACING, RAIL - place[:, 0] - 0.5 * SPACING
    return np.stack([np.stack([left - s * reach, right - s * reach], axis=1) for s in (1.0, -1.0)], axis=1)


def singularity(rho: ArrayLike) -> tuple[Array, Array]:
    """Return how far the mechanism is from its singularities, 1 at best and 0 on one.

    Parameters
    ----------
    rho : array_like, (N, 2)
        Slider positions [m].

    Returns
    -------
    parallel, serial : ndarray, (N,)
        |sin alpha| (bars along the rail: sliders do not hold y) and |cos alpha| (bars upright: sliders do not move y).
    """
    alpha = bar_angle(rho)
    return np.abs(np.sin(alpha)), np.abs(np.cos(alpha))


def body_jacobians(rho: ArrayLike, v: ArrayLike, assembly: str = "below") -> tuple[Array, Array]:
    """Return the Jacobians of the six bodies and their time derivatives (appendix B.3, reconstructed).

    Parameters
    ----------
    rho, v : array_like, (N, 2)
        Slider positions [m] and velocities [m/s].
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    J, J_dot : ndarray, (N, 6, 3, 2)
        Rows x, y, angle of each body's centre; columns rho_1, rho_2.
    """
    position, velocity = samples_of(2, rho=rho, v=v)
    alpha = bar_angle(position, assembly)
    sine, cosine = np.sin(alpha), np.cos(alpha)
    if np.any(np.abs(sine) < 1e-9):
        raise DynidentError(f"the bars lie along the rail at sample {int(np.argmin(np.abs(sine)))}: parallel singularity, "
                            "where the sliders do not hold the platform; keep away from it")  # fmt: skip
    A, B = 0.5 * cosine / sine, 0.5 / (BAR * sine)  # (B.63), (B.64)
    rate = B * velocity.sum(axis=1)
    A_dot, B_dot = -0.5 * rate / sine**2, -0.5 * rate * cosine / (BAR * sine**2)
    J, J_dot = np.zeros((len(alpha), 6, 3, 2)), np.zeros((len(alpha), 6, 3, 2))
    J[:, :, 0] = [[1.0, 0.0], [0.0, -1.0], [0.75, -0.25], [0.75, -0.25], [0.25, -0.75], [0.5, -0.5]]
    share = np.array([0.0, 0.0, 0.5, 0.5, 0.5, 1.0])[:, None]
    turn = np.array([0.0, 0.0, 1.0, 1.0, -1.0, 0.0])[:, None]  # bar 5 turns against bars 3 and 4
    for target, down, angle in ((J, A, B), (J_dot, A_dot, B_dot)):
        target[:, :, 1] = -share * down[:, None, None]
        target[:, :, 2] = turn * angle[:, None, None]
    return J, J_dot


# ---- dynamics -----------------------------------------------------------------------------------------------------------


def regressor(rho: ArrayLike, v: ArrayLike, a: ArrayLike, assembly: str = "below", gravity: float = GRAVITY) -> Array:
    """Return K of (6.15): F = K Phi, by energy equivalence K_b = J_b^T (Omega_b + G_b) (6.6).

    Friction is Fc sign(v) + c v (6.14); (5.17) prints sign(v) c v, which would not oppose the motion (ERR-5).

    Parameters
    ----------
    rho, v, a : array_like, (N, 2)
        Slider positions, velocities, accelerations.
    assembly : {"below", "above"}
        Assembly mode.
    gravity : float
        Along -y [m/s^2].

    Returns
    -------
    ndarray, (N, 2, 13)
        Columns in the order of `PARAMETER_NAMES` [N per unit].
    """
    position, velocity, acceleration = samples_of(2, rho=rho, v=v, a=a)
    J, J_dot = body_jacobians(position, velocity, assembly)
    motion = np.einsum("sbij,sj->sbi", J, acceleration) + np.einsum("sbij,sj->sbi", J_dot, velocity)
    K = np.zeros((len(position), 2, 13))
    force = motion[:, :, :2] + [0.0, gravity]
    K[:, :, :6] = np.einsum("sbij,sbi->sjb", J[:, :, :2], force)
    K[:, :, 6:9] = np.einsum("sbj,sb->sjb", J[:, 2:5, 2], motion[:, 2:5, 2])
    K[:, [0, 1], [9, 10]] = np.sign(velocity)
    K[:, [0, 1], [11, 12]] = velocity
    return K


def inverse_dynamics(
    rho: ArrayLike, v: ArrayLike, a: ArrayLike, parameters: Mapping[str, float] | None = None, assembly: str = "below"
) -> Array:
    """Return the slider forces F = M a + C v + g + friction.

    Parameters
    ----------
    rho, v, a : array_like, (N, 2)
        Slider positions, velocities, accelerations.
    parameters : mapping of str to float, optional
        Numbers that differ from `THEORETICAL` (without friction).
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    ndarray, (N, 2)
        Forces [N].
    """
    return np.asarray(regressor(rho, v, a, assembly) @ parameter_values(parameters, PARAMETER_NAMES, THEORETICAL))


def dynamics_matrices(
    rho: ArrayLike, v: ArrayLike, parameters: Mapping[str, float] | None = None, assembly: str = "below"
) -> tuple[Array, Array, Array]:
    """Return M, C and g of F = M a + C v + g: M = sum J^T M_b J, C = sum J^T M_b J_dot, g = sum J^T g_b.

    Parameters
    ----------
    rho, v : array_like, (N, 2)
        Slider positions and velocities.
    parameters : mapping of str to float, optional
        Numbers that differ from `THEORETICAL`; friction does not enter.
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    M, C : ndarray, (N, 2, 2)
        Mass matrix [kg] and Coriolis matrix [kg/s]; dM/dt - 2 C is skew-symmetric.
    g : ndarray, (N, 2)
        Gravity forces [N].
    """
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    J, J_dot = body_jacobians(rho, v, assembly)
    mass = np.stack([phi[:6], phi[:6], np.array([0.0, 0.0, *phi[6:9], 0.0])], axis=1)
    M, C = (np.einsum("sbij,bi,sbik->sjk", J, mass, right) for right in (J, J_dot))
    return M, C, np.einsum("sbj,b->sj", J[:, :, 1], GRAVITY * phi[:6])


def base_matrix() -> Array:
    """Return the exact base parameters of the 13 parameters, beta = K Phi of rank 8, whatever the motion.

    With S = I3 + I4 + I5:  m1 - m5/2 + (2/L^2) S,   m2 + m5/2,   m3 + m4 + m5 - (4/L^2) S,   m6 + (2/L^2) S,  Fc1, Fc2, c1, c2.

    A bar's turning energy follows from three points of it, alpha_dot^2 = (4/L^2) ((v_top^2 + v_end^2)/2 - v_mid^2); its top is
    a slider and its end the platform, which gives the factors of L.

    Returns
    -------
    ndarray, (8, 13)
        K; rows led by `BASE_LEADERS`, columns in the order of `PARAMETER_NAMES`.
    """
    K = np.zeros((8, 13))
    for row, leader in enumerate(BASE_LEADERS):
        K[row, PARAMETER_NAMES.index(leader)] = 1.0
    m4, m5, inertias = 3, 4, slice(6, 9)
    K[0, m5], K[1, m5], K[2, [m4, m5]] = -0.5, 0.5, 1.0
    K[0, inertias] = K[3, inertias] = 2.0 / BAR**2
    K[2, inertias] = -4.0 / BAR**2
    return K


def thesis_system() -> tuple[Array, Array]:
    """Return (6.23) to (6.30) as printed.

    Returns
    -------
    C : ndarray, (8, 13)
        Coefficients, columns in the order of `PARAMETER_NAMES`.
    V : ndarray, (8,)
        Identified values.
    """
    rows = [[terms.get(name, 0.0) for name in PARAMETER_NAMES] for terms, _ in THESIS_EQUATIONS]
    return np.array(rows), np.array([value for _, value in THESIS_EQUATIONS])


def fourier(t: ArrayLike, start: ArrayLike, C: ArrayLike, D: ArrayLike, frequency: float) -> Motion:
    """Return the periodic motion (6.18) to (6.20); C and D are amplitudes of the velocity.

        q = q0 + sum_i (C_i sin(w_i t) - D_i cos(w_i t)) / w_i,    w_i = 2 pi f i

    Parameters
    ----------
    t : array_like, (N,)
        Time [s].
    start : array_like, (n,)
        q0 [m or rad].
    C, D : array_like, (n, n_h)
        Amplitudes of each harmonic [m/s or rad/s].
    frequency : float
        Fundamental frequency f [Hz].

    Returns
    -------
    Motion
        N samples.
    """
    time, cos_part, sin_part = (np.asarray(numbers(x, label)) for x, label in ((t, "t"), (C, "C"), (D, "D")))
    origin = numbers(start, "start")
    if cos_part.shape != sin_part.shape or cos_part.ndim != 2 or origin.shape != cos_part.shape[:1]:
        raise DynidentError(
            f"C, D and start have shapes {cos_part.shape}, {sin_part.shape} and {origin.shape}; "
            "give (n, harmonics) twice and (n,)"
        )
    if not frequency > 0.0:
        raise DynidentError(f"frequency is {frequency}; give a fundamental frequency above zero")
    w = 2.0 * np.pi * frequency * np.arange(1, cos_part.shape[1] + 1)
    s, c = np.sin(time[:, None] * w), np.cos(time[:, None] * w)
    q = origin + s @ (cos_part / w).T - c @ (sin_part / w).T
    return Motion(time, q, c @ cos_part.T + s @ sin_part.T, c @ (sin_part * w).T - s @ (cos_part * w).T)


def initial_motion(sampling: float = SAMPLING) -> Motion:
    """Return one period of the motion of Table 6.1, with which the thesis starts its optimisation.

    Parameters
    ----------
    sampling : float
        Sampling time [s].

    Returns
    -------
    Motion
        2.5 s of the two sliders.
    """
    C, D = INITIAL_AMPLITUDES
    return fourier(np.arange(0.0, 1.0 / FUNDAMENTAL - 0.5 * sampling, sampling), START, C, D, FUNDAMENTAL)
