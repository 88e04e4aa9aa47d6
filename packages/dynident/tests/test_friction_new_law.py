"""A user's own law and joint term, defined here: everything follows from the expression, nothing in src knows them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dynident.errors import DescriptionError
from dynident.friction import (
    TERMS,
    Asymmetric,
    Coulomb,
    FrictionLaw,
    JointTerm,
    LoadDependent,
    LuGre,
    Offset,
    Polynomial,
    Ripple,
    SmoothStribeck,
    Stribeck,
    Tanh,
    TemperatureDependent,
    Viscous,
    dissipation,
    register,
)
from dynident.friction.law import State
from dynident.graph import Graph, absolute, arctan2, derivative, sign, sqrt
from dynident.graph.expression import evaluate_nodes
from dynident.identify import Axis, fit_friction


@dataclass(frozen=True)
class Arctan(FrictionLaw):
    """Dry friction that falls with the root of the speed, and turns as an arctangent."""

    name = "arctan"
    linear = ("fc", "fr")
    shape = ("vs",)
    positive = ("vs",)

    def torque(self, x, p):  # type: ignore[no-untyped-def]
        return (p["fc"] - p["fr"] * sqrt(1.0 + absolute(x.v))) * sign(x.v) + p["fc"] * arctan2(x.v, p["vs"])

    def ranges(self, speed):  # type: ignore[no-untyped-def]
        return [(1e-3 * speed, speed)]


def by_hand(v: np.ndarray, fc: float, fr: float, vs: float) -> np.ndarray:
    return (fc - fr * np.sqrt(1.0 + np.abs(v))) * np.sign(v) + fc * np.arctan(v / vs)


LAWS: dict[str, tuple[FrictionLaw, dict[str, float]]] = {
    "own": (Arctan(), {"fc": 2.0, "fr": 0.3, "vs": 0.2}),
    "own, in a sum": (Arctan() + Viscous(), {"fc": 2.0, "fr": 0.3, "vs": 0.2, "fv": 0.7}),
    "own, per direction": (
        Asymmetric(Arctan()),
        {"fcp": 2.0, "fcn": 1.0, "frp": 0.3, "frn": 0.1, "vsp": 0.2, "vsn": 0.4},
    ),
    "own, warm": (TemperatureDependent(Arctan()), {"fc": 2.0, "fr": 0.3, "vs": 0.2, "alpha": -0.01}),
}
CASES = pytest.mark.parametrize(("law", "values"), LAWS.values(), ids=LAWS.keys())


def test_lists_are_as_good_as_tuples() -> None:
    for law in (LoadDependent(powers=[1.0, 2.0]), Ripple([1.0]), Asymmetric(Ripple([2.0], Coulomb()))):  # type: ignore[arg-type]
        assert law.columns(State(1.0, 0.3, 0.2)).shape == (len(law.linear),)  # type: ignore[arg-type]


def test_the_value_is_the_formula() -> None:
    v = np.linspace(-3.0, 3.0, 101)
    np.testing.assert_allclose(Arctan().value(v, {"fc": 2.0, "fr": 0.3, "vs": 0.2}), by_hand(v, 2.0, 0.3, 0.2), atol=1e-14)


@CASES
def test_all_derivatives_are_exact(law: FrictionLaw, values: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    v = rng.choice([-1.0, 1.0], 30) * rng.uniform(0.01, 2.0, 30)
    T, p, h = rng.uniform(15.0, 60.0, 30), np.array([values[n.split(".")[-1]] for n in law.parameters]), 1e-6
    slope = (law.value(State(v + h, T=T), p) - law.value(State(v - h, T=T), p)) / (2.0 * h)
    np.testing.assert_allclose(law.value(State(v, T=T), p, "v"), slope, rtol=1e-6, atol=1e-7)
    gradient = law.value(State(v, T=T), p, "parameters")
    for i, step in enumerate(h * np.eye(p.size)):
        numeric = (law.value(State(v, T=T), p + step) - law.value(State(v, T=T), p - step)) / (2.0 * h)
        np.testing.assert_allclose(gradient[:, i], numeric, rtol=1e-6, atol=1e-7)


def test_the_law_is_identified() -> None:
    rng = np.random.default_rng(1)
    v = 1.5 * np.sin(np.linspace(0.0, 40.0, 4000)) * rng.uniform(0.3, 1.0, 4000)
    torque = by_hand(v, 2.0, 0.3, 0.2) + 0.4 * v + rng.normal(0.0, 0.01, v.size)
    fit = fit_friction(None, Axis(torque, v), Arctan() + Viscous())
    for name, truth in {"fc": 2.0, "fr": 0.3, "fv": 0.4, "vs": 0.2}.items():
        full = next(n for n in fit.parameters if n.endswith(f".{name}"))
        assert abs(fit.parameters[full] - truth) < 4.0 * fit.std[full], full
        assert fit.std[full] < 0.05 * truth, full


def test_the_law_is_simulated() -> None:
    """A mass that slides out, by an integrator of ordinary differential equations; below the level of break-away it rests."""
    from plant_cases import go, machine, slide
    from scipy.integrate import solve_ivp

    from dynident.control import OpenLoop

    numbers = {"fc": 2.0, "fr": 0.3, "vs": 0.2}
    sliding = go(machine(slide(3.0), step=1e-4, friction={"s": Arctan().using(numbers)}), 1001, v=[0.9]).truth.motion
    until = float(sliding.t[np.flatnonzero(sliding.v[:, 0] > 1e-2)[-1]])
    oracle = solve_ivp(
        lambda _, x: [x[1], -by_hand(x[1:], **numbers)[0] / 3.0], (0.0, until), [0.0, 0.9], rtol=1e-11, atol=1e-13
    )
    reached = int(np.searchsorted(sliding.t, until))
    np.testing.assert_allclose([sliding.q[reached, 0], sliding.v[reached, 0]], oracle.y[:, -1], atol=1e-9)
    for push, moves in ((1.69, False), (1.71, True)):
        law = OpenLoop(torque=np.array([push]))
        run = go(machine(slide(3.0), law=law, step=1e-3, friction={"s": Arctan().using(numbers)}), 101).truth.motion
        assert (abs(run.q[-1, 0]) > 1e-15) == moves, push  # rounding of the held force aside


def from_c(text: str, name: str, result: str, **arrays: list[float]) -> float:
    """Return what a function of a C source gives, its assignments read as Python; the only helper it may call is the sign."""
    known: dict[str, Any] = {"sqrt": math.sqrt, "fabs": abs, "atan2": math.atan2, "sin": math.sin, "cos": math.cos}
    known |= {re.search(r"\w+_sign", text)[0]: np.sign, result: [0.0], **arrays}  # type: ignore[index]
    body = re.search(rf"void {name}\([^)]*\)\n{{(.*?)\n}}", text, re.DOTALL)[1]  # type: ignore[index]
    for line in body.replace("const double ", "").split(";"):
        exec(line.strip(), known)
    return float(known[result][0])


@pytest.mark.parametrize(
    ("friction", "backward", "forward"),
    [
        (Arctan().using(fc=2.0, fr=0.3, vs=0.2), -1.7, 1.7),
        ((Coulomb() + Viscous() + Offset()).using(fc=2.0, fv=3.0, off=0.5), -1.5, 2.5),
        (Stribeck().using(fc=1.0, fs=1.7, vs=0.01), -1.7, 1.7),
        (Stribeck(None).using(fc=1.0, fs=1.7, vs=0.01, delta=0.7), -1.7, 1.7),
        (Asymmetric(Stribeck(1.0)).using(fcp=1.0, fcn=1.2, fsp=1.5, fsn=1.9, vsp=0.1, vsn=0.2), -1.9, 1.5),
        (Polynomial().using(a0=0.8, a1=1.0, a2=2.0, a3=3.0), -0.8, 0.8),
        (SmoothStribeck().using(fc=1.0, fcs=0.7, alpha=5.0, beta=10.0), 0.0, 0.0),
        (Tanh().using(fc=1.0, beta=-4.0), 0.0, 0.0),
        (LoadDependent().using(fc_tau1=0.1, fc_tau2=0.01), -0.24, 0.24),
        (
            Ripple((2.0,), Coulomb()).using(fc_c2=1.0, fc_s2=0.5),
            -np.cos(1.0) - 0.5 * np.sin(1.0),
            np.cos(1.0) + 0.5 * np.sin(1.0),
        ),
        (TemperatureDependent(Coulomb()).using(fc=2.0, alpha=-0.01), -1.8, 1.8),
    ],
)
def test_break_away_levels_are_the_limits_of_the_law(friction, backward, forward) -> None:  # type: ignore[no-untyped-def]
    at = {"q": 0.5, "tau": 2.0, "T": 30.0}
    levels = friction.breakaway(State(0.3, **at))
    np.testing.assert_allclose(levels, [backward, forward], atol=1e-12)
    np.testing.assert_allclose(levels, [friction(State(v, **at)) for v in (-1e-200, 1e-200)], atol=1e-12)


@CASES
def test_one_expression_gives_every_form(law: FrictionLaw, values: dict[str, float]) -> None:
    """Own branch of each direction, smooth form, and the expression that printers take."""
    graph = Graph()
    friction = law.using(values)
    v, T = np.array([-1.3, -1e-9, 1e-9, 0.4, 2.0]), 30.0
    known = {"v": v, "T": T, "way": np.sign(v), "width": 1e-3}
    plain = law.expression(graph)
    assert evaluate_nodes([plain], {**known, **friction.parameters})[0] == pytest.approx(
        friction(State(v, T=np.full(5, T))), abs=1e-12
    )
    branch = friction.expression(graph, way=graph.symbol("way"))
    np.testing.assert_allclose(evaluate_nodes([branch], known)[0], friction(State(v, T=np.full(5, T))), atol=1e-8)
    through = [evaluate_nodes([branch], {**known, "v": 1e-7 * s, "way": 1.0})[0] for s in (-1.0, 0.0, 1.0)]
    assert through[2] - through[1] == pytest.approx(through[1] - through[0], rel=1e-3)  # no jump where v changes its sign
    soft = friction.expression(graph, width=graph.symbol("width"))
    far = np.abs(v) > 0.1
    np.testing.assert_allclose(evaluate_nodes([soft], known)[0][far], friction(State(v, T=np.full(5, T)))[far], rtol=1e-9)
    slope = evaluate_nodes([derivative(soft, graph.symbol("v"))], {**known, "v": 0.0})[0]
    rise = evaluate_nodes([soft], {**known, "v": 1e-7})[0] - evaluate_nodes([soft], {**known, "v": -1e-7})[0]
    assert slope == pytest.approx(rise / 2e-7, rel=1e-5)


def test_the_law_is_checked_for_dissipation() -> None:
    found = dissipation(Arctan().using(fc=0.2, fr=0.5, vs=10.0), speed=1.0)
    assert not found.dissipative
    assert dissipation(Arctan().using(fc=2.0, fr=0.3, vs=0.2), speed=1.0).dissipative


@dataclass(frozen=True)
class Wrong(FrictionLaw):
    kind: str
    name = "wrong"
    shape = ("s",)

    @property
    def linear(self) -> tuple[str, ...]:
        return ("v",) if self.kind == "name" else ("a", "b")

    def torque(self, x, p):  # type: ignore[no-untyped-def]
        return {"product": lambda: p["a"] * p["b"], "rest": lambda: p["a"] + p["b"] + p["s"], "name": lambda: p["v"]}[
            self.kind
        ]()


def test_laws_and_terms_that_cannot_be_get_one_sentence(subtests: pytest.Subtests) -> None:
    for call, words in [
        (lambda: Wrong("product").columns(1.0, [1.0]), "not linear in a, b"),
        (lambda: Wrong("rest").columns(1.0, [1.0]), "no linear parameter multiplies"),
        (lambda: Wrong("name").columns(1.0, [1.0]), "none v, q, tau, T"),
        (lambda: Wrong("rest").shape_range(1.0), "0 search intervals"),
        (lambda: Arctan().columns(1.0, [-1.0]), "vs = -1.0"),
        (lambda: Arctan().columns(1.0, [1.0], by="w"), "by is 'w'"),
        (lambda: Wrong(["list"]).columns(1.0, [1.0]), "frozen dataclass"),  # type: ignore[arg-type]
        (lambda: register(JointTerm("fv", "again", "", "", lambda q, v, a: v)), "'fv' exists already"),
        (lambda: register(JointTerm("m", "mass", "", "", lambda q, v, a: v)), "'m' exists already"),
        (lambda: register(JointTerm("fx", "half", "", "", lambda q, v, a: v, mirrored="fy")), "mirrored by 'fy'"),
        (lambda: JointTerm("f_x", "x", "", "", lambda q, v, a: v), "letters and digits"),
    ]:
        with subtests.test(str(words)):
            with pytest.raises(DescriptionError, match=words) as caught:
                call()
            assert "\n" not in str(caught.value)


@pytest.fixture
def drag():  # type: ignore[no-untyped-def]
    term = JointTerm("drag", "root of the speed", "N m", "N", lambda q, v, a: sign(v) * sqrt(absolute(v)), friction=True)
    register(term)
    yield term
    del TERMS["drag"]


def test_a_registered_term_is_a_term_like_any_other(drag: JointTerm) -> None:
    from dynident.mechanics import Motion, inverse_dynamics, regressor
    from dynident.mechanism import Mechanism

    robot = Mechanism.from_dh([(0.3, 0.1, 0.2, 0.0), (0.0, 0.2, 0.4, 0.1)]).with_terms(("ia", "drag"))
    assert robot.parameters.names[-1].startswith("drag_")
    rng = np.random.default_rng(2)
    motion = Motion(np.arange(9.0), *rng.normal(size=(3, 9, 2)))
    Y = regressor(robot, motion).reshape(9, 2, -1)
    np.testing.assert_allclose(Y[:, 1, -1], np.sign(motion.v[:, 1]) * np.sqrt(np.abs(motion.v[:, 1])), atol=1e-15)
    values = np.zeros(len(robot.parameters.names))
    values[-1] = 3.0
    np.testing.assert_allclose(inverse_dynamics(robot, motion, values)[:, 1], 3.0 * Y[:, 1, -1], atol=1e-14)
    other = robot.with_friction(dict.fromkeys(robot.coordinate_names, "coulomb"))  # a law replaces friction, whatever its term
    assert not any(name.startswith("drag") for name in other.parameters.names)
    first, second = robot.coordinate_names
    assert set(other.with_friction({first: None}).friction) == {second}
    symbol, factor = drag.reflected(-4.0)
    assert (symbol, factor) == ("drag", pytest.approx(4.0**1.5))


def pendulum(*terms: str):  # type: ignore[no-untyped-def]
    """Return one link that swings, with these joint terms."""
    from dynident.mechanism import Mechanism, from_com

    robot = Mechanism.from_dh([(0.0, 0.0, 0.0, 0.0)], gravity=(0.0, -9.81, 0.0)).with_terms(terms)
    values = np.zeros(len(robot.parameters))
    values[:10] = from_com(2.0, np.array([0.4, 0.0, 0.0]), np.diag([0.01, 0.02, 0.03]))
    return robot.with_parameters(robot.parameters.replace(values))


def swing(q: float, v: float, a: float, drag: float) -> float:
    """Return the torque of that link by hand."""
    return (0.03 + 2.0 * 0.4**2) * a + 2.0 * 9.81 * 0.4 * np.cos(q) + drag * np.sign(v) * np.sqrt(abs(v))


@pytest.mark.usefixtures("drag")
def test_a_registered_term_is_identified_simulated_and_printed() -> None:
    from plant_cases import go, machine
    from scipy.integrate import solve_ivp

    import dynident as di
    from dynident.symbolic import derive, to_c, to_latex, to_numpy

    robot, rng = pendulum("drag"), np.random.default_rng(5)
    q, v, a = rng.uniform(-2.0, 2.0, (3, 400, 1))
    tau = np.array([[swing(*x, 1.5)] for x in np.hstack([q, v, a])])
    motion = di.Motion(np.arange(400.0), q, v, a)
    fit = di.OLS().fit(di.Regression.from_motion(robot, motion, tau)).result_
    found = dict(zip(fit.base.names, fit.values, strict=True))
    assert found[robot.parameters.names[-1]] == pytest.approx(1.5, rel=1e-9)

    rubbing = robot.with_parameters(robot.parameters.replace({robot.parameters.names[-1]: 1.5}))
    run = go(machine(rubbing, step=1e-4), 2001, x=[0.3], v=[-0.5]).truth.motion

    def rates(_: float, x: np.ndarray) -> list[float]:
        return [x[1], -swing(x[0], x[1], 0.0, 1.5) / (0.03 + 2.0 * 0.4**2)]

    oracle = solve_ivp(rates, (0.0, float(run.t[-1])), [0.3, -0.5], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], oracle.y[:, -1], atol=1e-8)

    program = derive(robot, ["inverse_dynamics"])
    source, phi = to_c(program, "link").source, rubbing.parameters.values
    printed = [from_c(source, "link_inverse_dynamics", "tau", q=q[i], v=v[i], a=a[i], phi=phi) for i in range(20)]  # type: ignore[arg-type]
    np.testing.assert_allclose(printed, tau[:20, 0], rtol=1e-12)
    assert r"\sqrt{" in to_latex(program)
    space: dict[str, object] = {}
    exec(to_numpy(program), space)
    printed = space["inverse_dynamics"](q, v, a, phi)  # type: ignore[operator]
    np.testing.assert_allclose(np.asarray(printed).reshape(-1, 1), tau, rtol=1e-12)


@pytest.mark.parametrize("turns", [3.0, -3.0])
@pytest.mark.parametrize("symbol", sorted(TERMS))
def test_a_term_behind_a_gear_gives_the_same_torque(symbol: str, turns: float) -> None:
    q, v, a = np.random.default_rng(3).normal(size=(3, 20))
    there, factor = TERMS[symbol].reflected(turns)
    expected = turns * TERMS[symbol].column(turns * q, turns * v, turns * a)
    np.testing.assert_allclose(factor * TERMS[there].column(q, v, a), expected, rtol=1e-14)


@pytest.mark.parametrize("symbol", sorted(TERMS))
def test_terms_are_one_expression_for_numbers_and_for_graphs(symbol: str) -> None:
    q, v, a = np.random.default_rng(4).normal(size=(3, 20))
    v[:3] = 0.0
    graph, term = Graph(), TERMS[symbol]
    node = graph.node(term.expression(*(graph.symbol(name) for name in "qva")))
    numbers = np.broadcast_to(evaluate_nodes([node], {"q": q, "v": v, "a": a})[0], v.shape)
    np.testing.assert_array_equal(numbers, term.column(q, v, a))
    if term.friction:  # it takes energy out
        assert (term.column(q, v, a) * v >= 0.0).all()
    soft = term.smooth(q, v, a, 1e-3)
    far = np.abs(v) > 0.05
    np.testing.assert_allclose(soft[far], term.column(q, v, a)[far], atol=1e-12)
    assert term.jumps == (symbol in ("fc", "fcp", "fcn"))
    np.testing.assert_allclose(term.directed(q[3:], v[3:], a[3:], np.sign(v[3:])), term.column(q[3:], v[3:], a[3:]), atol=1e-15)
    levels = [float(term.directed(0.0, 0.0, 0.0, way)) for way in (-1.0, 1.0)]
    assert levels == {"fc": [-1.0, 1.0], "fcp": [0.0, 1.0], "fcn": [-1.0, 0.0], "off": [1.0, 1.0]}.get(symbol, [0.0, 0.0])


@pytest.mark.parametrize(
    "law",
    [
        LuGre(sigma0=1e3, sigma1=3.0, fc=1.0, fs=1.5, vs=0.01, fv=0.4),
    ],
)
def test_a_simulation_calls_the_step_in_its_own_loop(law) -> None:  # type: ignore[no-untyped-def]
    from dynident.graph.print_llvm import compile_routines
    from dynident.graph.routine import Routine

    graph, m = Graph(), law.states
    step = law.step(graph)
    own = Routine(graph, "own", ("x", "motion", "numbers", "force"))
    own.call(step, state=("x", 1), motion="motion", numbers="numbers")
    p = {name: own.load("numbers", i) for i, name in enumerate(law.parameters)}
    own.store("force", 0, law.force(own.load_all("x", 1, m), own.load("motion", 1), p))
    x, motion, numbers, force = (
        np.full(m + 1, 7.0),
        np.array([-0.02, 0.05, 0.03]),
        np.array([*law.parameters.values()]),
        np.zeros(1),
    )
    x[1:] = 0.0
    compile_routines([own])["own"](*(array.ctypes.data for array in (x, motion, numbers, force)))
    expected, state = law.advance(np.zeros(m), -0.02, 0.05, 0.03)
    assert x[0] == 7.0
    np.testing.assert_allclose(x[1:], state, rtol=1e-12)
    assert force[0] == pytest.approx(expected, rel=1e-12)
