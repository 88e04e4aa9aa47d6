"""Laws that were chosen must take energy out: one that does not is no friction, however well it predicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.friction import TemperatureDependent, dissipation, law_of, law_text
from dynident.identify.fit import Fit
from dynident.identify.friction.choice import loses_least
from dynident.identify.friction.laws import FrictionChoice

SPEED = 3.0  # times the RMS speed of the data: up to there a chosen law must take energy out
ROOM = 20.0  # degree Celsius, at which laws of temperature are looked at


def passive_instead(choice: FrictionChoice, fit: Fit) -> FrictionChoice | None:
    """Return the choice without laws that feed energy as fitted, up to `SPEED` times the speeds of the data; None if none does.

    The contender that loses least takes the place of such a law, with the temperature if that law had it. Where every law
    feeds energy the data are wrong, not the law: the simplest one stays, and the verdict says so.
    """
    laws, choices = dict(choice.laws), dict(choice.choices)
    for joint, friction in fit.friction.items():
        held = {"q": 0.0, "tau": 0.0, "T": ROOM}
        at = {name: value for name, value in held.items() if name in friction.law.looks_at}
        speed = SPEED * fit.speeds.get(joint, 0.0)
        if joint not in choices or speed <= 0.0 or dissipation(friction, speed, **at).dissipative:
            continue
        own, text = choices[joint], law_text(laws[joint])
        said = f"feeds energy within {SPEED:g} times the speeds of the data"
        marked = tuple(replace(c, failed=c.failed or said) if c.name in (text, own.best) else c for c in own.contenders)
        left = [c for c in marked if not c.failed]
        simplest = min(own.contenders, key=lambda c: (c.parameters or np.inf, c.name))
        best = loses_least(left).name if left else simplest.name
        if best != own.best:
            old, new = laws[joint], law_of(best)
            laws[joint] = replace(old, law=new) if isinstance(old, TemperatureDependent) else new
        choices[joint] = replace(own, contenders=marked, best=best)
    if all(law_text(laws[joint]) == law_text(law) for joint, law in choice.laws.items()):
        return None
    return FrictionChoice(laws, choices)
