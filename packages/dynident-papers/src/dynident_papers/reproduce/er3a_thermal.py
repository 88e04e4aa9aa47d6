"""Thermal models of the ER3A-C60 [Pagani2022, chapter 4]: Tables 6 to 8, eq. 130, figures 23 to 36."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from dynident.figures import BLUE, GREEN, INK, ORANGE, one_axes
from dynident_lab.testbench import ThermalFit, ThermalTest, fit_thermal
from dynident_lab.thermal import AdvancedSecondOrder, FirstOrder, SecondOrder
from dynident_papers.reproduce.registry import Reproduction, Row, Table, nearer, reproduction
from dynident_papers.robots import er3a_c60
from dynident_papers.thermal.fractional import Fractional
from dynident_papers.thermal.power import duty_cycle

AXIS4 = SecondOrder(**er3a_c60.AXIS_4)
POWER, COLD, MINUTE = er3a_c60.POWER_4, er3a_c60.FRICTION_4, 60.0
NOISE = 0.003  # of a measured friction ratio
DUTIES = (0.2, 0.4, 0.6, 1.0)
LENGTHS = (40.0, 60.0, 80.0, 100.0, 140.0, 180.0, 240.0)  # min
TWIN = "records are not published: made with (130) and noise of 0.3 %, without which the numbers of (130) come back"
ONLY_NOISE = (
    "depends on the noise of the records, which are not printed: with 0.4 % while heating and 0.25 % while cooling, not the "
    "assumed 0.3 %, all numbers of this model are among those of 40 records"
)
LENGTH = "depends on the length of the test, which is not printed: from 40 to 240 min ours are below and above the printed mean"
EXCLUDES = (
    "Table 6 contradicts itself: no record within the second model's errors of (130), of any length, leaves a single "
    "exponential by least squares both 2.75 N m at the start and 0.61 N m at the end; 0.19 N m are missing at least"
)
ROUNDED = "the thesis contradicts itself: no numbers that round to (130) have the time constants of axis 4 in Table 8"
FIRST_TEST = "the first test, 5 min after the stop, sees a fast part: a fitted delay of 10 min halves all differences at least"
NOTE = "The measurements are not published: friction is made with (130) and 0.3 % noise, and fitted again."
TABLE_6 = {
    "abs mean": ((0.39, 2.1), (0.06, 0.3)),
    "abs max": ((2.75, 10.1), (0.25, 1.1)),
    "steady state": ((0.61, 3.6), (0.03, 0.2)),
}
TABLE_7 = {
    "abs mean": ((0.05, 0.2), (0.05, 0.2)),
    "abs max": ((0.14, 0.8), (0.14, 0.8)),
    "steady state": ((0.04, 0.2), (0.04, 0.2)),
}
ADVANCED = AdvancedSecondOrder(
    alpha=-0.0141, beta=1.0, K12=4.2, K13=0.5, K23=0.4, K2e=4.2, C1=737.61, C2=9163.45, We=12.0, reference=20.0
)
"""Of the order of (130); the thesis prints no numbers of its advanced model."""
NO_NUMBERS = (
    "The thesis prints no numbers of this model: tests are made with assumed ones and 0.1 % noise. T3 alone fixes the scale of "
    "the temperature: K, C and alpha share its uncertainty, and their quotients are known much better."
)


def said(relative: float) -> str:
    """Return a relative standard deviation in words."""
    return f"deviation {relative:.1%}" if relative < 1.0 else "hardly determined"


def heating(
    duty: float = 1.0, minutes: float = 240.0, every: float = 2.5, seed: int = 0, noise_level: float = NOISE
) -> ThermalTest:
    """Return friction ratios of axis 4 from cold at a duty cycle, with noise."""
    t = MINUTE * np.arange(0.0, minutes, every)
    noise = 1.0 + noise_level * np.random.default_rng(seed).normal(size=t.size)
    return ThermalTest(t, AXIS4.simulate(t, duty * POWER).ratio * noise, np.full(t.size, duty * POWER), name=f"D = {duty:.0%}")


def cooling(first: float = 5.0, minutes: float = 120.0, seed: int = 9, noise_level: float = NOISE) -> ThermalTest:
    """Return friction ratios of axis 4 from hot, every five minutes from a time after the last motion on, with noise."""
    t = MINUTE * np.arange(first, minutes, 5.0)
    hot = AXIS4.simulate([0.0, t[0]], 0.0, AXIS4.steady_state(POWER)).state[-1]
    noise = 1.0 + noise_level * np.random.default_rng(seed).normal(size=t.size)
    return ThermalTest(t, AXIS4.simulate(t, 0.0, hot).ratio * noise, np.zeros(t.size), rested=False, name="cooling")


def _errors(
    test: ThermalTest, published: dict[str, Any], reasons: tuple[str, str], mean: str = ""
) -> tuple[tuple[Table, ...], list[ThermalFit]]:
    fits = [fit_thermal(test, kind) for kind in (FirstOrder, SecondOrder)]
    tables = []
    for i, (fit, name) in enumerate(zip(fits, ("first model", "second model"), strict=True)):
        rows = []
        for label, (torque, share) in fit.errors(COLD).items():
            why = mean if mean and i == 0 and label == "abs mean" else reasons[i]
            rows.append(Row(label, torque, published[label][i][0], "N m", why))
            rows.append(Row(label, 100.0 * share, published[label][i][1], "%", why))
        tables.append(Table(name, tuple(rows)))
    return tuple(tables), fits


def _compared(test: ThermalTest, fits: list[ThermalFit], title: str) -> Any:
    figure, axes = one_axes(7.2, 3.6, "time [min]", "friction [N m]", title)
    axes.plot(test.t / MINUTE, COLD * test.ratio, "o", color=INK, markersize=3, label="measured")
    for fit, colour in zip(fits, (ORANGE, BLUE, GREEN), strict=False):
        axes.plot(test.t / MINUTE, COLD * fit.predicted[0], color=colour, linewidth=1.2, label=type(fit.model).__name__)
    axes.legend(frameon=False, fontsize=8)
    return figure


@reproduction(
    "thermal-table-6",
    "errors of the thermal models while heating, joint 4",
    "[Pagani2022, Table 6, Fig. 26]",
    seconds=2,
    kind="virtual",
)
def table_6() -> Reproduction:
    """First and second order, heating at the largest duty cycle."""
    test = heating()
    tables, fits = _errors(test, TABLE_6, (EXCLUDES, ONLY_NOISE), LENGTH)
    rows, first = [], {}
    for minutes in LENGTHS:
        found = fit_thermal(heating(minutes=minutes), FirstOrder).errors(COLD)
        first[minutes] = {label: torque for label, (torque, _) in found.items()}
        rows += [Row(f"{minutes:.0f} min, {label}", torque, None, "N m") for label, torque in first[minutes].items()]

    def over_length() -> Any:
        figure, axes = one_axes(7.2, 3.2, "length of the test [min]", "error [N m]", "First model: errors and length")
        for label, colour in zip(TABLE_6, (BLUE, ORANGE, GREEN), strict=True):
            axes.semilogy(LENGTHS, [first[m][label] for m in LENGTHS], "o-", color=colour, markersize=3, label=label)
            axes.axhline(TABLE_6[label][0][0], color=colour, linestyle=":", linewidth=0.9)
        axes.legend(frameon=False, fontsize=8)
        return figure

    figures = {
        "heating, both models (Fig. 26)": lambda: _compared(test, fits, "Axis 4, heating"),
        "errors against the length of the test, the thesis' as dotted lines": over_length,
    }
    more = Table("first model against the length of the test", tuple(rows))
    means = [errors["abs mean"] for errors in first.values()]
    experiments = {
        LENGTH: lambda: min(means) < TABLE_6["abs mean"][0][0] < max(means),
        EXCLUDES: lambda: min(map(shortfall, (*LENGTHS, 120.0, 300.0, 400.0))) > 0.18,
        ONLY_NOISE: lambda: scattered([heating(every=2.0, seed=seed, noise_level=0.004) for seed in range(40)], TABLE_6),
    }
    return Reproduction((*tables, more), figures, (NOTE, "A test of 240 min every 2.5 min."), experiments)


def shortfall(minutes: float) -> float:
    """Return what the first model's errors at start and end of a test miss of the printed ones at least [N m].

    A linear programme: friction every 2 min is that of (130) and a deviation within the second model's printed errors, each and
    half a unit of its last digit; e = (1 - J J^+) deviation + e of (130), with J the columns of the fitted A + B exp(-t/T).
    """
    from scipy.optimize import curve_fit, linprog  # noqa: PLC0415 - slow to import

    t = MINUTE * np.arange(0.0, minutes, 2.0)
    friction, n = COLD * AXIS4.simulate(t, POWER).ratio, t.size
    (A, B, T), _ = curve_fit(lambda t, A, B, T: A + B * np.exp(-t / T), t, friction, (17.0, 10.0, 1500.0))
    shape = np.exp(-t / T)
    J = np.column_stack([np.ones(n), shape, t * shape])
    left, e = np.eye(n) - J @ np.linalg.pinv(J), friction - A - B * shape
    end = np.where(np.arange(n) >= n - max(1, n // 10), 1.0 / max(1, n // 10), 0.0)  # mean of the last tenth
    one, none = np.eye(n), np.zeros((n, 1))
    rows = [  # deviation, its size, shortfall
        np.concatenate([-left[0], np.zeros(n), [-1.0]]),  # start: e >= 2.75
        np.concatenate([end @ left, np.zeros(n), [-1.0]]),  # end: e <= -0.61
        np.concatenate([np.zeros(n), np.ones(n) / n, [0.0]]),  # mean size <= 0.06
        np.concatenate([np.zeros(n), end, [0.0]]),  # size at the end <= 0.03
        np.hstack([one, -one, none]),
        np.hstack([-one, -one, none]),
    ]
    bounds = np.concatenate([[e[0] - 2.745, -end @ e - 0.605, 0.065, 0.035], np.zeros(2 * n)])
    cost = np.append(np.zeros(2 * n), 1.0)
    limits = [(-0.255, 0.255)] * n + [(0.0, 0.255)] * n + [(None, None)]
    return float(linprog(cost, np.vstack(rows), bounds, bounds=limits).fun)


def scattered(records: list[ThermalTest], printed: dict[str, Any]) -> bool:
    """Return whether the second model's errors of all records enclose the printed ones, rounded as they are."""
    fits = [fit_thermal(record, SecondOrder).errors(COLD) for record in records]
    for name, (_, known) in printed.items():
        for k, (unit, digit) in enumerate(((1.0, 0.005), (100.0, 0.05))):
            found = [unit * fit[name][k] for fit in fits]
            if not min(found) - digit <= known[k] <= max(found) + digit:
                return False
    return True


def exact(*tests: ThermalTest) -> bool:
    """Return whether tests without noise recover their second-order model."""
    fit = fit_thermal(tests, SecondOrder, alpha=AXIS4.alpha)
    return all(abs(getattr(fit.model, name) / value - 1.0) < 1e-4 for name, value in er3a_c60.AXIS_4.items())


@reproduction(
    "thermal-table-7",
    "errors of the thermal models while cooling, joint 4",
    "[Pagani2022, Table 7, Fig. 28]",
    seconds=2,
    kind="virtual",
)
def table_7() -> Reproduction:
    """First and second order, cooling from hot."""
    test = cooling()
    tables, fits = _errors(test, TABLE_7, (FIRST_TEST, ONLY_NOISE))
    figures = {"cooling, both models (Fig. 28)": lambda: _compared(test, fits, "Axis 4, cooling")}

    def later() -> bool:
        """Return whether the errors of the first model are closer if the first test is after 10 min."""
        first, _ = _errors(cooling(10.0), TABLE_7, ("", ""))[0]
        return nearer(tables[0].rows, [float(row.ours) for row in first.rows])

    def noise() -> bool:
        """Return whether records with more or less noise enclose the printed errors of the second model."""
        return scattered([cooling(seed=seed, noise_level=0.0025) for seed in range(40)], TABLE_7)

    return Reproduction(tables, figures, (NOTE,), {FIRST_TEST: later, ONLY_NOISE: noise})


@reproduction(
    "thermal-table-8",
    "time constants of all axes at the largest duty cycle",
    "[Pagani2022, Table 8]",
    seconds=5,
    kind="round trip",
)
def table_8() -> Reproduction:
    """Identified from heating curves with noise."""
    noise, printed = (
        "noise of 0.1 %; without it the printed number comes back",
        np.round(er3a_c60.TIME_CONSTANTS / MINUTE, 1).tolist(),
    )
    models = list(zip(er3a_c60.thermal_models(), er3a_c60.friction_powers(), strict=True))

    def found(i: int, level: float) -> list[float]:
        """Return slow and fast time constant [min] of an axis, identified from a heating curve with noise."""
        (model, power), t = models[i], MINUTE * np.arange(0.0, 180.0, 2.0)
        ratio = model.simulate(t, power).ratio * (1.0 + level * np.random.default_rng(i).normal(size=t.size))
        constants = fit_thermal(ThermalTest(t, ratio, power), SecondOrder).constants
        return [value / MINUTE for value, _ in constants.values()]

    rows = [
        Row(f"axis {i + 1}: {label}", value, known, "min", ROUNDED if i == 3 else noise)
        for i in range(6)
        for label, value, known in zip(("slow", "fast"), found(i, 0.001), printed[i], strict=True)
    ]

    def clean() -> bool:
        """Return whether the axes with models from the table recover it without noise."""
        return all(np.allclose(found(i, 0.0), printed[i], atol=1e-3) for i in (0, 1, 2, 4, 5))

    def excluded() -> bool:
        """Return whether numbers that round to (130) and to 97.65 W have other time constants than the printed ones."""
        halves = {"alpha": 5e-5, "K1": 0.005, "K2": 0.005, "C1": 0.005, "C2": 0.005}
        ends = []
        for signs in product((-1.0, 1.0), repeat=6):
            moved = {name: er3a_c60.AXIS_4[name] + x * half for x, (name, half) in zip(signs, halves.items(), strict=False)}
            model = SecondOrder(**{**er3a_c60.AXIS_4, **moved})
            ends.append(model.time_constants(POWER + 0.005 * signs[5]) / MINUTE)
        (slow, fast), (_, fastest) = np.min(ends, axis=0), np.max(ends, axis=0)
        return bool(slow > 27.65 and fast < fastest < 2.25)

    note = (
        "Heating curves of the bundled models with 0.1 % noise, identified again; C1 and C2 of all axes but the fourth were "
        "chosen so that this table holds."
    )
    return Reproduction((Table("time constants", tuple(rows)),), notes=(note,), experiments={noise: clean, ROUNDED: excluded})


@reproduction(
    "thermal-eq-130",
    "parameters of the second-order model, axis 4",
    "[Pagani2022, eq. 130, Figs. 23 to 25]",
    seconds=8,
    kind="round trip",
)
def eq_130() -> Reproduction:
    """Heating tests at four duty cycles fitted together; torque does not determine the scale of the temperature."""
    tests = [heating(duty, minutes=120.0, every=2.0, seed=k) for k, duty in enumerate(DUTIES)]
    fit = fit_thermal(tests, SecondOrder, alpha=er3a_c60.AXIS_4["alpha"])
    units = {"alpha": "1/K", "beta": "", "K1": "W/K", "K2": "W/K", "C1": "J/K", "C2": "J/K"}
    rows = [Row(name, float(getattr(fit.model, name)), er3a_c60.AXIS_4[name], unit, TWIN) for name, unit in units.items()]

    def duty() -> Any:
        t = np.linspace(0.0, 20.0, 2001)
        figure, axes = one_axes(7.2, 2.8, "time [s]", "friction power [W]", "Duty cycle D = 40 %: mean power D W")
        axes.plot(t, duty_cycle(t, POWER, 0.4, 5.0), color=BLUE, linewidth=1.0)
        axes.axhline(0.4 * POWER, color=ORANGE, linewidth=1.2)
        return figure

    def constants() -> Any:
        power = np.linspace(0.0, 120.0, 100)
        figure, axes = one_axes(7.2, 3.6, "cold friction power [W]", "time constant [min]", "Axis 4: time constants and power")
        for values, colour, name in zip(AXIS4.time_constants(power).T / MINUTE, (BLUE, ORANGE), ("slow", "fast"), strict=True):
            axes.semilogy(power, values, color=colour, linewidth=1.2, label=name)
        axes.set_yticks(ticks := [2, 3, 5, 10, 20, 30, 40], [str(x) for x in ticks])
        axes.set_yticks([], minor=True)
        axes.legend(frameon=False, fontsize=8)
        return figure

    figures = {
        "duty cycle (Fig. 23)": duty,
        "friction and fits at four duties (Fig. 24)": fit.plot,
        "time constants (Fig. 25)": constants,
    }
    notes = (NOTE, "Torque leaves the scale of the temperature free: alpha is given.")

    def clean() -> bool:
        """Return whether all parameters are recovered without noise."""
        return exact(*(heating(duty, minutes=120.0, every=2.0, noise_level=0.0) for duty in DUTIES))

    return Reproduction((Table("second-order model", tuple(rows)),), figures, notes, {TWIN: clean})


@reproduction(
    "thermal-fig-29", "fractional against integer order", "[Pagani2022, section 4.4.1, Fig. 29]", seconds=2, kind="virtual"
)
def fig_29() -> Reproduction:
    """Mittag-Leffler against exponential."""
    test = heating()
    fits = [fit_thermal(test, kind) for kind in (FirstOrder, Fractional)]
    model = fits[1].model
    assert isinstance(model, Fractional)
    reason = "depends on the length of the test, which is not printed: the order is 0.59 over 180 min and 0.63 over 240"
    rows = [Row("order nu", float(model.nu), 0.6121, "", reason)]
    rows += [Row(f"mean error, {type(f.model).__name__}", 100.0 * f.mean_error, None, "%") for f in fits]
    figures = {"fractional and first order (Fig. 29)": lambda: _compared(test, fits, "Axis 4: fractional order")}

    def longer() -> bool:
        """Return whether the printed order lies between the orders for 180 and 240 min."""
        shorter = fit_thermal(heating(minutes=180.0), Fractional).model
        return isinstance(shorter, Fractional) and shorter.nu < 0.6121 < float(model.nu)

    return Reproduction((Table("fractional model", tuple(rows)),), figures, (NOTE,), {reason: longer})


@reproduction(
    "thermal-fig-34", "power on and off: the advanced model", "[Pagani2022, section 4.5, Figs. 27 and 33 to 36]", seconds=2
)
def fig_34() -> Reproduction:
    """Energised motors heat the joint before it moves; all nine parameters are found by global search."""
    t = MINUTE * np.arange(0.0, 120.0, 5.0)
    still = ADVANCED.simulate(MINUTE * np.arange(0.0, 240.0, 2.0), 0.0, zone=20.0)
    tests, start = [], still.state[-1]
    for k, duty in enumerate((0.2, 1.0)):
        zone = 20.0 + 6.0 * duty * (1.0 - np.exp(-t / 2400.0)) + 0.5 * np.sin(t / 1700.0)
        for powered in (False, True):
            made = ADVANCED.simulate(t, duty * POWER, start if powered else None, zone=zone)
            ratio = made.ratio * (1.0 + 0.001 * np.random.default_rng(2 * k + powered).normal(size=t.size))
            name = f"D = {duty:.0%}, power {'on' if powered else 'off'}"
            heat, air = np.full(t.size, duty * POWER), np.full(t.size, 20.0)
            tests.append(ThermalTest(t, ratio, heat, rested=not powered, name=name, zone=zone, ambient=air))
    fit = fit_thermal(tests, AdvancedSecondOrder)
    rows = [
        Row(
            name,
            float(getattr(fit.model, name)),
            None,
            "",
            f"made with {getattr(ADVANCED, name):g}; {said(fit.relative_std[name])}",
        )
        for name in ADVANCED.names
    ]
    first = [Row(test.name, float(test.ratio[0]), None) for test in tests]

    def power_on() -> Any:
        figure, axes = one_axes(7.2, 3.2, "time since power on [min]", "temperature [degC]", "Energised without motion")
        still_warm = replace(AXIS4, alpha=0.0, beta=1.0)  # motor heat, which does not fall with the temperature
        node = still_warm.simulate(still.t, ADVANCED.We)
        axes.plot(node.t / MINUTE, node.state[:, 1], color=ORANGE, linewidth=1.2, label="T3: outer node of (130) heated by W_e")
        axes.plot(still.t / MINUTE, still.temperature, color=BLUE, linewidth=1.2, label="T1 with T3 at 20 degC")
        axes.legend(frameon=False, fontsize=8)
        return figure

    def housing() -> Any:
        figure, axes = one_axes(7.2, 3.2, "time [min]", "temperature [degC]", "Outer node of (130): heating, then cooling")
        clock = MINUTE * np.arange(0.0, 240.0, 2.0)
        for duty, colour in ((0.2, BLUE), (1.0, ORANGE)):
            made = AXIS4.simulate(clock, np.where(clock < 120.0 * MINUTE, duty * POWER, 0.0))
            axes.plot(clock / MINUTE, made.state[:, 1], color=colour, linewidth=1.2, label=f"D = {duty:.0%}")
        axes.legend(frameon=False, fontsize=8)
        return figure

    def power() -> Any:
        figure, axes = one_axes(7.2, 3.2, "time [min]", "friction power [W]", "Power that heats, motors off and on before")
        for duty, colour in ((0.2, BLUE), (0.6, GREEN), (1.0, ORANGE)):
            for start_, style in ((None, "-"), (start, "--")):
                made = ADVANCED.simulate(t, duty * POWER, start_, zone=20.0)
                name = f"D = {duty:.0%}, power {'off' if start_ is None else 'on'}"
                axes.plot(t / MINUTE, made.power, style, color=colour, linewidth=1.1, label=name)
        axes.legend(frameon=False, fontsize=7, ncols=3)
        return figure

    figures = {
        "temperature of the housing at two duties, with cooling (Fig. 27)": housing,
        "temperature T3 with the motors on, without motion (Fig. 33)": power_on,
        "friction after power on and off, with fits (Figs. 34 and 36)": fit.plot,
        "friction power at three duties (Fig. 35)": power,
    }
    return Reproduction(
        (Table("advanced model", tuple(rows)), Table("first friction over cold friction", tuple(first))),
        figures,
        (
            NO_NUMBERS,
            "Fig. 33 is a record of T3, an input of the advanced model; here the outer node of (130) stands for it, "
            "heated by W_e = 12 W (assumed).",
        ),
    )
