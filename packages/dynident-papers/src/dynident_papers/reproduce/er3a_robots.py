"""Two robots and the whole model of [Pagani2022, chapter 5]: repetitions, Fig. 37, and friction in two postures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.stats

import dynident as di
from dynident.arrays import Array
from dynident.figures import BLUE, CURVES, INK, ORANGE, finish, label, new_figure, one_axes
from dynident.friction import Polynomial, TemperatureDependent
from dynident.signals import Log
from dynident.simulate import VirtualRobot
from dynident_lab.campaigns import read_cycles
from dynident_lab.testbench import Estimate, FrictionHistory, Repeatability, fit_warmup, friction_study, repeatability
from dynident_lab.thermal import Heating
from dynident_papers.reproduce.er3a_campaign import CYCLES, VIRTUAL, campaign, fits, plan, study
from dynident_papers.reproduce.registry import Reproduction, Row, Table, reproduction
from dynident_papers.robots import er3a_c60

EVERY = 6  # every sixth cycle of the later tests: four cycles show the repeatability
PLATEAUS = (0, 1, 2, 4, 7, 12, 23)  # cycles whose plateaus are run in the later tests: friction falls early
INERTIAS = ("Ixx_link_2R", "Ixy_link_2", "Ixz_link_2R", "Iyz_link_2", "Izz_link_2R")  # Fig. 42


@cache
def heated() -> dict[str, tuple[Any, Any]]:
    """Return the thermal model of every joint, and its warm-up in the whole test with the power from the study."""
    models = zip(er3a_c60.JOINTS, er3a_c60.thermal_models(), strict=True)
    return {joint: (model, model.simulate(study().of(joint).power_t, study().of(joint).power)) for joint, model in models}


def warm_robot(t: float) -> VirtualRobot:
    """Return the virtual robot with the temperatures of a time of the whole test [s]."""
    start = {joint: [np.interp(t, w.t, zone) for zone in w.state.T] for joint, (_, w) in heated().items()}
    warm = {joint: Heating(model, start=start[joint]) for joint, (model, _) in heated().items()}
    return replace(er3a_c60.machine(), thermal=warm)


def later_test(robot: int, test: int) -> list[Estimate]:
    """Return the parameters of a later test; only its training stages are run."""
    stages = [stage for stage in plan().stages if stage.purpose == "training"]
    found = []
    for k in range(0, CYCLES, EVERY):
        t, seed = k * plan().period, 1000 * robot + 100 * test + k
        warm = warm_robot(t)
        logs = [warm.simulate(stage.curve, log_cycle=0.004, seed=seed + i).log for i, stage in enumerate(stages)]
        fit = di.fit_friction(er3a_c60.mechanism(), logs, Polynomial(), {"standstill": 0.1})
        found.append(Estimate.of(fit, f"Robot {robot}", f"test {test}", t))
    return found


@cache
def repetitions() -> Repeatability:
    """Return the repeatability of all parameters over four tests of two robots; the first tests are whole campaigns."""
    rows: list[Estimate] = []
    for robot in (1, 2):
        rows += fits(robot, fault=robot == 2)[0].estimates(f"Robot {robot}", "test 1")
        for test in (2, 3, 4):
            rows += later_test(robot, test)
    return repeatability(rows)


@reproduction(
    "thermal-fig-42", "four tests of two robots", "[Pagani2022, sections 5.1 and 5.2, Figs. 38, 39 and 42]", seconds=250
)
def fig_42() -> Reproduction:
    """The same identification on four days and two robots: differences between cycles, tests and robots."""
    found = repetitions()
    shown = ("my_link_3R", *INERTIAS, "a0_joint_3")
    rows = []
    for name in shown:
        entry = found[name]
        size = 100.0 / abs(entry.spread.mean)
        for what in ("cycles", "tests", "robots"):
            of = f"of {entry.spread.mean:.3g}" if what == "cycles" else ""
            rows.append(Row(f"{name}: spread between {what}", size * getattr(entry.spread, what), None, "%", of))
        chance = f"{name}: probability of such a difference between equal robots"
        rows.append(Row(chance, entry.spread.robots_p, None, "", "equal they are here"))
    notes = (
        "Both virtual robots have the same parameters, noise differs from test to test; the thesis prints no numbers, its "
        "robots are 'quite similar'.",
        f"All {CYCLES} cycles of the first tests, every sixth of the others: inertial parameters must not drift while friction "
        "falls. In the first test of robot 2 the friction of joint 1 grows after 60 min (thermal-fig-43).",
    )
    figures = {f"{name}, all tests together (Figs. 38, 39 and 42)": lambda name=name: found.plot(name) for name in shown}
    return Reproduction((Table("repetitions", tuple(rows)),), figures, notes)


# ---- Fig. 40 -------------------------------------------------------------------------------------------------------------


def friction_test(test: int) -> list[FrictionHistory]:
    """Return the friction of all joints at 60 % of the speed in a test of robot 1; later tests run only some plateaus."""
    if test == 1:
        return [entry.history for entry in study().study.joints]
    stage = next(stage for stage in plan().stages if stage.purpose == "friction")
    begin = next(float(entry["start"]) for entry in plan().schedule() if entry["purpose"] == "friction")
    times = [k * plan().period + begin for k in PLATEAUS]
    logs = [warm_robot(t).simulate(stage.curve, log_cycle=0.004, seed=100 * test + i).log for i, t in enumerate(times)]
    return [entry.history for entry in friction_study(er3a_c60.mechanism(), logs, starts=times).joints]


@reproduction(
    "thermal-fig-40", "friction of four tests, each and mixed", "[Pagani2022, section 5.1, Figs. 39 and 40]", seconds=140
)
def fig_40() -> Reproduction:
    """Equation (158) as a curve through each test, and through all of them."""
    tests = [friction_test(k) for k in (1, 2, 3, 4)]
    laws = zip(er3a_c60.JOINTS, er3a_c60.friction_laws(), er3a_c60.SPEEDS, strict=True)
    shown, rows, gain = {}, [], []
    for j, (joint, law, top) in enumerate(laws):
        histories = [test[j] for test in tests]
        each = [fit_warmup(h.t, h.friction, orders=(2,)) for h in histories]
        together = [np.concatenate([getattr(h, x) for h in histories]) for x in ("t", "friction")]
        mix = fit_warmup(together[0], together[1], orders=(2,))
        warming = heated()[joint][1]
        t = histories[0].t  # at the plateaus: between them the cycle's power lets friction swing
        true = float(law(0.6 * top)) * np.interp(t, warming.t, warming.ratio)
        shown[joint] = histories, each, mix
        errors = [100.0 * float(np.sqrt(np.mean((fit(t) / true - 1.0) ** 2))) for fit in (*each, mix)]
        gain.append(Row(f"{joint}: error of the curve of one test, mean of four", float(np.mean(errors[:-1])), None, "%"))
        gain.append(Row(f"{joint}: error of the mix", errors[-1], None, "%"))
        for name, tau, wanted in zip(("slow", "fast"), mix.time_constants / 60.0, ("20 to 30", "2 to 3"), strict=True):
            rows.append(Row(f"{joint}: {name} time constant of the mix", float(tau), None, "min", f"{wanted} in the thesis"))
    notes = (
        "The four tests are of one virtual robot and differ by sensor noise; of tests 2 to 4 only some plateaus are run, "
        "from the temperatures of the whole test. True friction is that of the virtual robot.",
    )
    tables = (Table("all tests together", tuple(rows)), Table("against the truth, at the plateaus", tuple(gain)))
    return Reproduction(
        tables, {"friction at 60 % of the speed, tests 1 to 4 and mix (Figs. 39 and 40)": partial(mixed, shown)}, notes
    )


def mixed(shown: Mapping[str, Any]) -> Any:
    """Return one panel per joint: the points of every test, its curve, and the curve of all together."""
    figure = new_figure(11.0, 8.4)
    for j, (joint, (histories, each, mix)) in enumerate(shown.items()):
        axes = figure.add_subplot(3, 2, j + 1)
        t = np.linspace(histories[0].t[0], histories[0].t[-1], 300)
        for k, (history, fit) in enumerate(zip(histories, each, strict=True)):
            axes.plot(history.t / 60.0, history.friction, "o", color=CURVES[k], markersize=2.5)
            axes.plot(t / 60.0, fit(t), color=CURVES[k], linewidth=0.8, label=f"test {k + 1}")
        axes.plot(t / 60.0, mix(t), "--", color=INK, linewidth=1.4, label="mix")
        finish(axes, "time since the cold start [min]" if j > 3 else "", "friction [N m]", label(joint))
        axes.legend(frameon=False, fontsize=7, ncols=2)
    figure.tight_layout()
    return figure


# ---- Fig. 37 -------------------------------------------------------------------------------------------------------------


def with_estimated_temperature(log: Log) -> Log:
    """Return a log with temperatures predicted from the speeds by the thermal models, without a sensor."""
    columns = []
    for joint in log.joints:
        entry = study().of(joint)
        model = entry.best.model
        warming = model.simulate(entry.power_t, entry.power)
        kelvin = model.alpha / er3a_c60.AXIS_4["alpha"]  # torque does not determine the scale of the temperature
        columns.append(model.reference + kelvin * (np.interp(log.t, warming.t, warming.temperature) - model.reference))
    return replace(log, temperature=np.column_stack(columns))


@reproduction(
    "thermal-fig-37", "dynamics, friction and thermal model together", "[Pagani2022, section 5.1, Fig. 37]", seconds=110
)
def fig_37() -> Reproduction:
    """Torques of the coldest and of the hottest cycle, with and without the estimated temperature."""
    logs = {}
    for part in read_cycles(campaign()):
        if part.recordings[0].cycle in (0, 3, 11, CYCLES - 1):
            logs[part.recordings[0].cycle] = part.stages()
    robot, options = er3a_c60.mechanism(), {"standstill": 0.1}
    law = TemperatureDependent(Polynomial(), study().heating[0].best.model.reference)
    warm = di.fit_friction(robot, [with_estimated_temperature(x) for k in logs for x in logs[k]["excitation"]], law, options)
    cold = di.fit_friction(robot, logs[0]["excitation"], Polynomial(), options)
    rows = []
    for k, name in ((0, "cold"), (CYCLES - 1, "hot")):
        test = logs[k]["validation"][0]
        rows.append(Row(f"{name}: without temperature", 100.0 * cold.score(test).metrics.relative, None, "%"))
        shown = with_estimated_temperature(test)
        rows.append(Row(f"{name}: with the estimated temperature", 100.0 * warm.score(shown).metrics.relative, None, "%"))
    hot = with_estimated_temperature(logs[CYCLES - 1]["validation"][0])
    notes = (
        "Temperatures come from the speeds alone (Algorithm 1 with the models of thermal-fig-22), as the scheme wants it.",
        "Fig. 37 is a block scheme and is not drawn: models (42), (157) and (154) run beside the robot.",
    )
    figures = {"torques of a hot robot, measured and estimated": lambda: warm.score(hot).plot()}
    return Reproduction((Table("torques on motions that were not fitted, held-out error", tuple(rows)),), figures, notes)


# ---- two postures --------------------------------------------------------------------------------------------------------


@reproduction(
    "thermal-fig-21", "friction does not depend on the posture", "[Pagani2022, section 4.3.1, Figs. 20 and 21]", seconds=1
)
def fig_21() -> Reproduction:
    """The same plateaus of joint 1 with the arm stretched and folded."""
    from dynident_lab.testbench import find_plateaus, friction_curves  # noqa: PLC0415
    from dynident_lab.thermal import cooling_test  # noqa: PLC0415 - only here

    machine, limits = er3a_c60.machine(warm=False), er3a_c60.limits()
    postures = {"stretched": [0.0, -0.9, -0.6, 0.0, 0.0, 0.0], "folded": [0.0, 0.0, 0.9, 0.0, 0.6, 0.0]}
    logs, friction, peak = {}, {}, {}
    for name, posture in postures.items():
        test = cooling_test("ER3A-C60", limits, "joint_1", posture=posture, cycles=2)
        logs[name] = machine.simulate(test.stages[0].curve, log_cycle=0.004).log
        curves = friction_curves(find_plateaus(logs[name], "joint_1"), by="all", gravity=False)
        friction[name] = curves.history().friction[0]
        peak[name] = float(np.abs(logs[name].effort[:, 0]).max())
    true = float(er3a_c60.friction_laws()[0](0.6 * er3a_c60.SPEEDS[0]))
    why = f"{true:.2f} is true of the virtual robot"
    rows = [Row(f"friction at 60 %, {name}", float(f), None, "N m", why) for name, f in friction.items()]
    rows += [Row(f"largest torque, {name}", x, None, "N m") for name, x in peak.items()]

    def torques() -> Any:
        figure, axes = one_axes(
            9.0, 3.6, "time [s]", "torque of joint 1 [N m]", "Two postures: inertia differs, friction does not"
        )
        for (name, log), colour in zip(logs.items(), (BLUE, ORANGE), strict=True):
            axes.plot(log.t, log.effort[:, 0], color=colour, linewidth=0.6, label=name)
        axes.legend(frameon=False, fontsize=8)
        return figure

    return Reproduction((Table("two postures", tuple(rows)),), {"torques of joint 1 (Fig. 21)": torques})


# ---- one ratio for all speeds --------------------------------------------------------------------------------------------

TEMPERATURES = (20.0, 25.0, 30.0, 35.0, 40.0, 45.0)  # degC


def one_ratio(friction: Array, std: Array) -> tuple[Array, float]:
    """Return friction (temperatures x speeds) relative to the first temperature, and the p-value of equal ratios.

    friction = c_speed r_temperature is fitted by weighted least squares; the residual has a chi-squared distribution.
    """
    r, w = np.ones(len(friction)), std**-2.0
    for _ in range(50):
        c = np.sum(w * friction * r[:, None], axis=0) / np.sum(w * r[:, None] ** 2, axis=0)
        r = np.sum(w * friction * c, axis=1) / np.sum(w * c**2, axis=1)
    left = float(np.sum(w * (friction - np.outer(r, c)) ** 2))
    return friction / friction[0], float(scipy.stats.chi2.sf(left, friction.size - r.size - c.size + 1))


@reproduction(
    "thermal-eq-100",
    "normalised friction of all speeds is one curve",
    "[Pagani2022, eq. 100, section 4.3.1, Fig. 22]",
    seconds=4,
    kind="virtual",
)
def eq_100() -> Reproduction:
    """Plateaus of joint 4 at six temperatures: friction over cold friction, speed by speed."""
    from dynident_lab.testbench import find_plateaus, friction_curves  # noqa: PLC0415
    from dynident_lab.thermal import cooling_test  # noqa: PLC0415 - only here

    curve = cooling_test("ER3A-C60", er3a_c60.limits(), "joint_4", cycles=2).stages[0].curve
    model, friction, std = er3a_c60.thermal_models()[3], [], []
    for k, heat in enumerate(TEMPERATURES):
        warm = replace(er3a_c60.machine(), thermal={"joint_4": Heating(model, start=[heat, heat])})
        log = warm.simulate(curve, log_cycle=0.004, seed=k).log
        found = friction_curves(find_plateaus(log, "joint_4"), by="all", gravity=False)
        pairs = np.abs(found.friction).reshape(-1, 2), found.std.reshape(-1, 2)  # both directions of every speed
        friction.append(pairs[0].mean(axis=1))
        std.append(0.5 * np.linalg.norm(pairs[1], axis=1))
    f, s = np.array(friction), np.array(std)
    ratio, p = one_ratio(f, s)
    spread = 100.0 * float(np.max(np.ptp(ratio, axis=1) / ratio.mean(axis=1)))
    text = "a speed whose friction fell by 3 % less in the hottest test would be found"

    def power() -> bool:
        """Return whether the test detects such a speed and accepts the data."""
        other = f.copy()
        other[-1, 2] *= 1.03
        return one_ratio(other, s)[1] < 0.01 < p

    def curves() -> Any:
        figure, axes = one_axes(7.2, 3.6, "temperature [degC]", "friction over cold friction", "Joint 4: six speeds")
        for k, level in enumerate(found.levels):
            axes.plot(TEMPERATURES, ratio[:, k], "o-", markersize=3, linewidth=0.8, label=f"{np.rad2deg(level):.0f} deg/s")
        axes.legend(frameon=False, fontsize=7, ncols=2)
        return figure

    rows = (
        Row("largest spread between the speeds", spread, None, "%"),
        Row("probability of this spread if one ratio holds for all speeds", p, None),
        Row("friction at 45 degC over that at 20 degC", float(ratio[-1].mean()), None),
    )
    return Reproduction(
        (Table("six speeds at six temperatures", rows),),
        {"friction of every speed over that of the cold joint (Fig. 22)": curves},
        (VIRTUAL, text),
        {text: power},
    )
