"""Fitting thermal models to friction torques: global search, exact sensitivities, and parameters determined by torque alone.

Data are ratios of measured friction to that of the cold joint, ``r(t) = f / f_cold``, and the cold friction power W
[Pagani2022, sections 4.2-4.4]. The scale of the temperature is free: ``x = alpha (T - T0)`` obeys the same equations with
K / |alpha| and C / |alpha|. So torque data determine

    K / |alpha|, C / |alpha| (zones),   c |alpha|, tau (two poles),   nu, beta

but never alpha, K, C or the temperature separately. One anchor determines all of them: alpha itself, or one measured
temperature (`alpha=`, `hot=`). Without it the returned model has |alpha| = 1 per "kelvin": its ratios, powers and time
constants are correct, its temperatures are in units of friction ratio.

The advanced model [Pagani2022, section 4.5] has a measured temperature T3 as an input, which determines the scale: all nine
parameters are fitted, and K13 and K13 / alpha are distinguished if T3 changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, SignalWarning, warn
from dynident.identify.friction.choice import Choice, compare_models
from dynident_lab.testbench.thermal_data import ThermalFit, ThermalTest
from dynident_lab.thermal.models import AdvancedSecondOrder, FirstOrder, SecondOrder, ThermalModel, Weakening

Kind = type[Weakening]

#: Random points per parameter of the global search, and number of the best that are optimised to convergence.
TRIALS = 60
FOLLOWED = 10
#: Weight that pulls the logarithms of parameters to their initial values.
RIDGE = 1e-6


class _Curves:
    """Ratios of all tests and their derivatives with respect to u: logarithms of scale-free parameters, then states."""

    def __init__(self, kind: Kind, tests: Sequence[ThermalTest], sign: float, rows: Sequence[NDArray[np.bool_]]) -> None:
        self.kind, self.tests, self.sign, self.rows = kind, tests, sign, rows
        self.absolute = kind is AdvancedSecondOrder  # temperatures in degree Celsius, alpha is fitted, too
        self.names = tuple(n for n in kind.names if self.absolute or n != "alpha")
        self.states = kind.order
        self.loose = [i for i, test in enumerate(tests) if not test.rested]
        self.size = len(self.names) + self.states * len(self.loose)
        self.home = np.zeros(self.size)
        self.reference = _ambient(tests[0]) if self.absolute else 0.0

    def model(self, u: Array) -> Weakening:
        values = dict(zip(self.names, np.exp(np.clip(u[: len(self.names)], -80.0, 80.0)).tolist(), strict=True))
        return _made(self.kind, alpha=self.sign * values.pop("alpha", 1.0), reference=self.reference, **values)

    def _inputs(self, i: int) -> dict[str, Any]:
        """Temperatures around the joint during a test, for models that use them."""
        test = self.tests[i]
        air = self.reference if test.ambient is None else test.ambient
        return {"ambient": air, "zone": test.zone} if self.absolute else {}

    def _first(self, i: int, u: Array) -> tuple[int, Array | None]:
        """Index of the unknown first state of a test in u, and its value."""
        if i not in self.loose:
            return 0, None
        at = len(self.names) + self.states * self.loose.index(i)
        return at, u[at : at + self.states]

    def values(self, u: Array) -> list[Array]:
        """Ratios of each test."""
        model = self.model(u)
        return [
            model.response(test.t, test.power, self._first(i, u)[1], **self._inputs(i)) for i, test in enumerate(self.tests)
        ]

    def residual(self, u: Array) -> Array:
        """Errors of the fitted samples, and a negligible penalty against drift of undetermined parameters."""
        errors = [(v - t.ratio)[k] for v, t, k in zip(self.values(u), self.tests, self.rows, strict=True)]
        return np.concatenate([*errors, RIDGE * (u - self.home)])

    def jacobian(self, u: Array) -> Array:
        """Exact derivative of the residual."""
        model = self.model(u)
        index = [model.names.index(n) for n in self.names]
        factor = np.exp(np.clip(u[: len(self.names)], -80.0, 80.0))
        factor *= np.where(np.array(self.names) == "alpha", self.sign, 1.0)
        slopes = []
        for i, test in enumerate(self.tests):
            slope = np.zeros((test.t.size, self.size))
            (at, first), more = self._first(i, u), self._inputs(i)
            slope[:, : factor.size] = model.slope(test.t, test.power, first, **more)[:, index] * factor
            if first is not None:
                rest = model.response(test.t, test.power, np.zeros(self.states), **more)
                for j, unit in enumerate(np.eye(self.states)):  # affine in the state: differences are exact
                    slope[:, at + j] = model.response(test.t, test.power, unit, **more) - rest
            slopes.append(slope[self.rows[i]])
        return np.concatenate([*slopes, RIDGE * np.eye(self.size)])


def _ambient(test: ThermalTest, usual: float = 20.0) -> float:
    """Temperature of the surroundings at the start of a test."""
    return usual if test.ambient is None else float(np.asarray(test.ambient)[0])


def fit_thermal(
    tests: ThermalTest | Sequence[ThermalTest],
    model: Kind = SecondOrder,
    alpha: float | None = None,
    hot: float | None = None,
    ambient: float = 20.0,
    rows: Sequence[ArrayLike] | None = None,
    seed: int = 0,
) -> ThermalFit:
    """Fit a thermal model to friction ratios of one or more tests.

    Global search: random points in the logarithms of time constants, losses and beta, the best of them followed by least
    squares with exact sensitivities.

    Parameters
    ----------
    tests : ThermalTest or sequence of ThermalTest
        Heating at one or more duty cycles, cooling, or both in one record. A model of `constant_power` requires tests
        of constant power from a rested joint only, `AdvancedSecondOrder` tests with a measured `zone`.
    model : type
        `FirstOrder`, `SecondOrder`, `AdvancedSecondOrder` or another subclass of `Weakening`.
    alpha : float, optional
        Anchor: change of the friction with temperature [1/K].
    hot : float, optional
        Anchor: temperature of the friction surfaces at the end of the first test [degree Celsius].
    ambient : float
        Temperature of the rested joint [degree Celsius].
    rows : sequence of array_like of bool (N,), optional
        Samples of each test to fit; all when omitted. `predicted` has all samples, so the others are held out.
    seed : int
        Seed of the random points.

    Returns
    -------
    ThermalFit
        Model, identifiable combinations and errors.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 - costs import time

    series = [tests] if isinstance(tests, ThermalTest) else list(tests)
    _check(series, model, alpha, hot)
    used = [s.seen if rows is None else s.seen & np.asarray(rows[i], dtype=bool) for i, s in enumerate(series)]
    notes = [note for s in series if (note := s.turning())]
    for note in notes:
        warn(note, SignalWarning)
    # Friction ends below the first value in heating (alpha < 0), and above the first one in cooling.
    trend = sum(_trend(s) for s in series)
    curves = _Curves(model, series, -1.0 if trend <= 0.0 else 1.0, used)
    count = int(sum(k.sum() for k in used))
    if count <= curves.size:
        raise IdentificationError(f"{count} ratios cannot determine {curves.size} parameters; measure more often or longer")
    trials = _trials(curves, np.random.default_rng(seed))
    costs = np.array([_cost(curves, u) for u in trials])
    best, lowest, home = trials[0], np.inf, trials[0]
    for i in np.argsort(costs)[:FOLLOWED]:
        if not np.isfinite(costs[i]):
            break
        try:
            curves.home = trials[i]
            top = np.full(curves.size, np.inf)
            if "nu" in curves.names:
                top[curves.names.index("nu")] = 0.0
            end = least_squares(
                curves.residual,
                np.minimum(trials[i], top - 1e-3),
                curves.jacobian,
                bounds=(-np.inf, top),
                xtol=1e-10,
                max_nfev=200,
            )
        except (ValueError, FloatingPointError):
            continue
        if end.cost < lowest:
            best, lowest, home = end.x, float(end.cost), trials[i]
    if not np.isfinite(lowest):
        raise IdentificationError("no thermal model fits these ratios; check the units of time (s) and power (W)")
    curves.home = home
    return _result(curves, best, notes, alpha, hot, ambient)


def _trend(test: ThermalTest) -> float:
    """Rise of the friction in heating, or its fall in cooling."""
    seen = test.ratio[test.seen]
    return float((seen[-1] - seen[0]) * (1.0 if test.power.mean() > 0.0 else -1.0))


def _check(series: list[ThermalTest], model: Kind, alpha: float | None, hot: float | None) -> None:
    if not series:
        raise IdentificationError("the list of thermal tests is empty; give at least one")
    if alpha is not None and hot is not None:
        raise IdentificationError("alpha and hot are both given, but one fixes the temperature scale; omit the other")
    if model is AdvancedSecondOrder:
        for s in series:
            if s.zone is None:
                raise IdentificationError(
                    f"{s.name}: the advanced model needs a measured temperature T3 nearby; give zone=, or use SecondOrder"
                )
        if alpha is not None or hot is not None:
            raise IdentificationError("the measured temperature T3 fixes the scale of the advanced model; give no alpha or hot")
    if model.constant_power:
        for s in series:
            if not s.rested or np.ptp(s.power) > 1e-9 * max(1.0, float(s.power.max())):
                raise IdentificationError(
                    f"{s.name}: {model.__name__} supports only constant power from a rested joint; shorten the test or use "
                    "SecondOrder"
                )
    if all(float(s.power.max()) == 0.0 for s in series) and any(s.rested for s in series):
        raise IdentificationError("a rested joint without power stays cold; give power, or rested=False for a cooling test")


def _trials(curves: _Curves, generator: np.random.Generator) -> list[Array]:
    """Return random points: time constants from a fraction of the sampling time to ten tests, losses around the power."""
    tests = curves.tests
    power = max(float(t.power.max()) for t in tests) or 1.0
    shortest = 0.5 * min(float(np.diff(t.t).min()) for t in tests)
    longest = 10.0 * max(float(t.t[-1]) for t in tests)
    points = []
    for _ in range(TRIALS * curves.size):
        slow, fast = np.sort(np.exp(generator.uniform(np.log(shortest), np.log(longest), 2)))[::-1]
        K1, K2 = np.exp(generator.uniform(np.log(0.05), np.log(50.0), 2)) * power
        nu = generator.uniform(0.3, 1.0)
        options = {
            "beta": np.exp(generator.normal(0.0, 0.05)),
            "K": K1,
            "C": K1 * (slow**nu if "nu" in curves.names else slow),
        }
        options |= {"K1": K1, "K2": K2, "C1": K1 * fast, "C2": K2 * slow, "nu": nu}
        options |= {"c1": 1.0 / (K2 * slow), "c2": 1.0 / (K1 * fast), "tau1": slow, "tau2": fast}
        scale = 1.0
        if curves.absolute:
            scale = options["alpha"] = np.exp(generator.uniform(np.log(2e-3), np.log(5e-2)))
            many = np.exp(generator.uniform(np.log(0.02), np.log(20.0), 4)) * power * scale
            options |= dict(zip(("K12", "K13", "K23", "K2e"), many, strict=True))
            options |= {"C1": (many[0] + many[1]) * fast, "C2": (many[2] + many[3]) * slow}
            options["We"] = power * np.exp(generator.uniform(np.log(1e-3), np.log(0.5)))
        u = np.log([options[n] for n in curves.names])
        states = [
            curves.reference + curves.sign / scale * (tests[i].ratio[0] - 1.0) * generator.uniform(0.3, 1.2, curves.states)
            for i in curves.loose
        ]
        points.append(np.concatenate([u, *states]))
    return points


def _cost(curves: _Curves, u: Array) -> float:
    with np.errstate(all="ignore"):
        try:
            e = curves.residual(u)
        except ValueError:
            return np.inf
    cost = float(e @ e)
    return cost if np.isfinite(cost) else np.inf


def _result(curves: _Curves, u: Array, notes: list[str], alpha: float | None, hot: float | None, ambient: float) -> ThermalFit:
    free = curves.model(u)
    values = curves.values(u)
    errors = [v - t.ratio for v, t in zip(values, curves.tests, strict=True)]
    fitted = np.concatenate([(e / t.ratio)[k] for e, t, k in zip(errors, curves.tests, curves.rows, strict=True)])
    J, e = curves.jacobian(u)[: -u.size], curves.residual(u)[: -u.size]
    _, s, V = np.linalg.svd(J, full_matrices=False)
    spread = np.sqrt(np.sum((V / np.maximum(s, 1e-12 * s[0])[:, None]) ** 2, axis=0) * (e @ e) / max(e.size - u.size, 1))
    combined = {} if curves.absolute else {"K": "{}/|alpha|", "C": "{}/|alpha|", "c": "{}*|alpha|"}
    labels = [combined.get(n[0], "{}").format(n) for n in curves.names]
    identifiable = dict(zip(labels, np.exp(u[: len(labels)]).tolist(), strict=True))
    std = dict(zip(labels, spread[: len(labels)].tolist(), strict=True))
    said = list(notes)
    if all(float(test.power.max()) == 0.0 for test in curves.tests) and isinstance(free, ThermalModel):
        # Cooling shows rates only: conductances and capacities only as quotients, which the time constants contain.
        beta = {"beta": (identifiable["beta"], std["beta"])}
        rates = _rates(curves, u, V, s, float(e @ e) / max(e.size - u.size, 1))
        identifiable = {n: v for n, (v, _) in (beta | rates).items()}
        std = {n: v for n, (_, v) in (beta | rates).items()}
        labels = list(identifiable)
    variance = float(e @ e) / max(e.size - u.size, 1)
    first = curves.tests[0]
    mean = (
        float(first.power[0]) if first.t.size < 2 else float(first.power[:-1] @ np.diff(first.t) / (first.t[-1] - first.t[0]))
    )
    constants = _rates(curves, u, V, s, variance, mean) if isinstance(free, ThermalModel) else {}
    vague = [n for n in labels if std[n] > 0.5]
    if vague:
        said.append(f"these tests do not determine {', '.join(vague)}: heat for longer, at several powers, and record cooling")
    scale = abs(alpha) if alpha is not None else None
    if alpha is not None and np.sign(alpha) != curves.sign:
        raise IdentificationError(
            f"alpha = {alpha} 1/K contradicts the direction in which friction changed in these tests; check its sign"
        )
    if hot is not None:
        rise = float(curves.sign * (values[0][-1] - free.beta))
        if not (hot - ambient) * rise > 0.0:
            raise IdentificationError(f"hot = {hot} and ambient = {ambient} degree Celsius: the first test must end warmer")
        scale = rise / (hot - ambient)
    if scale is None and not curves.absolute:
        said.append(
            "torque alone determines only these combinations; give alpha= or hot= for conductances, capacities and "
            "temperatures (the model uses |alpha| = 1)"
        )
    return ThermalFit(
        free if curves.absolute else _rescaled(free, curves.sign, scale or 1.0, ambient),
        curves.absolute or scale is not None,
        identifiable,
        std,
        tuple(values),
        float(np.mean(np.abs(fitted))),
        float(np.max(np.abs(fitted))),
        float(e @ e),
        curves.size,
        tuple(said),
        tuple(curves.tests),
        constants,
    )


def _rates(
    curves: _Curves, u: Array, V: Array, s: Array, variance: float, power: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Time constants at a power, or of cooling without power, and their relative standard deviations."""

    def constants(w: Array) -> Array:
        model = curves.model(w)
        assert isinstance(model, ThermalModel)
        return np.log(model.time_constants(power))

    step = 1e-6
    slope = np.stack([(constants(u + step * d) - constants(u - step * d)) / (2.0 * step) for d in np.eye(u.size)], axis=1)
    seen = s > 1e-9 * s[0]
    spread = np.sqrt(variance) * np.linalg.norm((slope @ V[seen].T) / s[seen], axis=1)
    names = ("tau_slow", "tau_fast") if spread.size == 2 else ("tau",)
    return {n: (float(np.exp(c)), float(d)) for n, c, d in zip(names, constants(u), spread, strict=True)}


def _rescaled(model: Weakening, sign: float, scale: float, ambient: float) -> Weakening:
    """The same model with |alpha| = scale."""
    power = {"K": 1.0, "C": 1.0, "c": -1.0}
    values = {n: float(getattr(model, n)) * scale ** power.get(n[0], 0.0) for n in model.names}
    return _made(type(model), **{**values, "alpha": sign * scale, "reference": ambient})


def _made(kind: Kind, **values: float) -> Weakening:
    """Return a model with these parameters."""
    make: Callable[..., Weakening] = kind
    return make(**values)


def choose_thermal(tests: Sequence[ThermalTest], models: Sequence[Kind] = (FirstOrder, SecondOrder), blocks: int = 5) -> Choice:
    """Choose the thermal model by the errors of the friction ratio on blocks of time; tests are in time order."""
    series = list(tests)
    ends = np.cumsum([test.t.size for test in series])
    measured = np.concatenate([test.ratio for test in series])
    seen = np.concatenate([test.seen for test in series])

    def fit(kind: Kind, rows: NDArray[np.bool_]) -> tuple[Array, int]:
        found = fit_thermal(series, kind, rows=np.split(rows, ends[:-1]))
        return np.where(seen, np.concatenate(found.predicted) - measured, 0.0), found.parameters

    return compare_models({kind.__name__: partial(fit, kind) for kind in models}, int(ends[-1]), blocks)
