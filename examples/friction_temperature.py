"""Friction and temperature: an axis warms itself up; its friction law is identified at the same time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dynident.figures import BLUE, INK, ORANGE, new_figure, plain_axes
from dynident.friction import Stribeck, Viscous
from dynident.identify import Axis, fit_friction
from dynident_papers.robots import er3a_c60

AXIS = 3  # the fourth, whose thermal model is printed


def main() -> Figure:
    """Draw the warming of axis 4 [Pagani2022, eq. 130], and a Stribeck law fitted to noisy torques cold and hot."""
    model = er3a_c60.thermal_models()[AXIS]
    t = np.linspace(0.0, 3.0 * 3600.0, 400)
    duty = {share: model.simulate(t, np.full(t.size, share * er3a_c60.POWER_4)) for share in (0.25, 0.5, 1.0)}

    law = Stribeck(2.0) + Viscous()
    cold = law.using(fc=9.0, fs=14.0, vs=0.3, fv=4.0)
    time = np.arange(0.0, 30.0, 0.01)
    v = 2.5 * np.sin(0.8 * time) * np.sin(0.11 * time)
    rng = np.random.default_rng(0)
    ratio = {"cold": 1.0, "after 3 h": float(duty[1.0].ratio[-1])}
    speeds = np.linspace(0.01, 2.5, 200)

    figure = new_figure(9.6, 3.7)
    left, right = figure.subplots(1, 2)
    for (share, warming), colour in zip(duty.items(), ("#A6D3EE", BLUE, INK), strict=True):
        left.plot(t / 60.0, 100.0 * warming.ratio, color=colour, label=f"{100 * share:.0f} % duty")
    left.set(xlabel="t [min]", title="friction left, in per cent of cold")
    for (name, share), colour in zip(ratio.items(), (BLUE, ORANGE), strict=True):
        torque = share * cold(v) + rng.normal(0.0, 0.8, v.size)
        fit = fit_friction(None, Axis(torque, v), law)
        friction = fit.friction["axis"]
        known = dict(zip(friction.parameters, friction.values, strict=True))
        right.plot(np.abs(v[::6]), (torque * np.sign(v))[::6], ".", color=colour, ms=2, alpha=0.35)
        right.plot(speeds, friction(speeds), color=colour, label=f"{name}: breakaway {known['stribeck.fs']:.1f} N m")
        print(name, {k: round(float(x), 3) for k, x in known.items()})
        assert abs(known["stribeck.fs"] / (14.0 * share) - 1.0) < 0.1
    right.set(xlabel="speed [rad/s]", title="friction torque [N m]", ylim=(0.0, 22.0))
    for axes in (left, right):
        plain_axes(axes)
        axes.legend(fontsize=8, frameon=False)
        axes.title.set_fontsize(9)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("friction_temperature.png", dpi=80)
