"""Published results of DualV (Tables 2 to 4) and the table of essential parameters in the paper's form."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dynident.errors import DynidentError
from dynident.identify import Fit

PAYLOAD_WEIGHED = 5.37
"""Mass of the payload on the scales [kg]."""

TABLE_2: dict[str, dict[str, tuple[float, float]]] = {
    "case 1": {
        "Izz_link1_1R": (4.45e-2, 1.58),
        "Izz_link1_2R": (4.81e-2, 1.39),
        "Izz_link1_3R": (4.81e-2, 1.41),
        "Izz_link1_4R": (5.07e-2, 1.38),
        "Izz_platform": (2.06e-2, 1.37),
        "m_platform": (1.92, 1.08),
        "Izz_payload": (1.61e-2, 1.71),
        "mx_payload": (-1.27e-1, 0.76),
        "m_payload": (5.42, 0.30),
    },
    "case 2": {
        "Izz_link1_1R": (4.12e-2, 3.14),
        "Izz_link1_2R": (4.62e-2, 3.09),
        "Izz_link1_3R": (4.57e-2, 2.54),
        "Izz_link1_4R": (5.79e-2, 1.89),
        "Izz_platform": (2.05e-2, 2.23),
        "m_platform": (1.96, 1.48),
        "Izz_payload": (1.64e-2, 3.04),
        "mx_payload": (-1.27e-1, 1.51),
        "m_payload": (5.52, 0.29),
    },
}
"""Table 2: essential parameters (SI) with relative standard deviations [%].

The paper leaves the regrouping into the platform unmarked: its m_4 holds m_4 + sum mx_2i / d3, about half of the
distal links. Its case 2 stops at a ratio of 10.8, above the ratio 10 it states.
"""

RELATIVE_ERROR_NORM: dict[str, float] = {"case 1": 0.110, "case 2": 0.091}
"""||residual|| / ||Y|| of the fits of Table 2."""

TABLE_3: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "case 1": ((9.1, 8.5, 7.5, 8.9), (9.8, 8.5, 7.6, 10.5)),
    "case 2": ((9.1, 8.5, 8.0, 8.6), (10.0, 8.6, 8.2, 11.7)),
}
"""Table 3: relative torque errors [%] of motors 1 to 4 on trajectories 1 and 2; the means are 8.8 and 9.09 (9.2 in print)."""

TABLE_4: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "PD": ((6.35, 6.50, 8.00, 8.25), (7.70, 7.65, 9.40, 7.60)),
    "case 1": ((2.79, 2.15, 1.95, 2.10), (2.90, 2.65, 2.20, 2.05)),
    "case 2": ((2.80, 2.11, 2.06, 2.04), (2.83, 2.67, 2.25, 2.10)),
}
"""Table 4: largest tracking errors [1e-3 rad] of motors 1 to 4 on trajectories 1 and 2, with PD and with computed torque."""

_BODY = {"m": "m", "mx": "mx", "my": "my", "Izz": "zz"}


def paper_symbol(name: str) -> str:
    """Return the paper's symbol of a parameter, as in zz_11R for ``Izz_link1_1R`` and m_5 for ``m_payload``.

    Parameters
    ----------
    name : str
        Name of a standard or base parameter of `dynident.robots.dualv.mechanism`.

    Returns
    -------
    str
        Symbol: index 4 is the platform, 5 the payload; fs is Coulomb friction.
    """
    found = re.fullmatch(r"(?P<symbol>[A-Za-z]+)_(?:link|q)(?P<joint>\d)_(?P<leg>\d)(?P<tail>R?)", name)
    if found:
        symbol = _BODY.get(found["symbol"], found["symbol"])
        return f"{'fs' if symbol == 'fc' else symbol}_{found['joint']}{found['leg']}{found['tail']}"
    found = re.fullmatch(r"(?P<symbol>[A-Za-z]+)_(?P<body>platform|payload)(?P<tail>R?)", name)
    if found:
        return f"{_BODY.get(found['symbol'], found['symbol'])}_{4 if found['body'] == 'platform' else 5}{found['tail']}"
    return name


def _rows(name: str, given: Fit | Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    if isinstance(given, Fit):
        percent = 100.0 * given.relative_std
        chosen = zip(given.base.names, given.values, percent, given.active, strict=True)
        return {label: (float(value), float(sigma)) for label, value, sigma, active in chosen if active}
    if not isinstance(given, Mapping):
        raise DynidentError(
            f"DualV: '{name}' is a {type(given).__name__}; give a Fit, or a mapping of name to (value, percent)"
        )
    return dict(given)


def essential_table(cases: Mapping[str, Fit | Mapping[str, tuple[float, float]]] | None = None) -> str:
    """Return a table like the paper's Table 2: one row per essential parameter, value and relative deviation per case.

    Parameters
    ----------
    cases : mapping of str to Fit or to a mapping of name to (value, percent), optional
        What each case found; the published Table 2 when omitted.

    Returns
    -------
    str
        Lines of equal width; parameters that a case dropped are marked by a dash.
    """
    columns = {label: _rows(label, given) for label, given in (cases or TABLE_2).items()}
    names = list(dict.fromkeys(name for rows in columns.values() for name in rows))
    head = f"{'param.':<9}" + "".join(f"{label:>13}{'%sigma':>9}" for label in columns)
    lines = [head, "-" * len(head)]
    for name in names:
        line = f"{paper_symbol(name):<9}"
        for rows in columns.values():
            line += f"{rows[name][0]:>13.3g}{rows[name][1]:>9.2f}" if name in rows else f"{'-':>13}{'-':>9}"
        lines.append(line)
    return "\n".join(lines)
