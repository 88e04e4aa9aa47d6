"""The CFT-transposer robot of [Rodriguez2002]: its tables, from the numbers of dynident.robots.cft."""

from __future__ import annotations

import dynident as di
from dynident.reproduce.registry import Reproduction, Row, Table, reproduction

TRUNCATED = "printed with the last digit cut off, not rounded"


@reproduction("cft-table-6", "motor gains K_T of both set-ups", "[Rodriguez2002, Table 6]")
def cft_table_6() -> Reproduction:
    """K_T = K_a K_t / (K_g K_c)."""
    cft = di.robots.cft
    printed = {
        "TUEdACS": (430.2725, 430.2725, 31.7814, 107.5681),
        "dSPACE": (107.5681, 107.5681, 7.9453, 26.8920),
    }
    units = ("N/V", "N/V", "N m/V", "N/V")
    tables = []
    for setup, gains in printed.items():
        rows = []
        for i, (ours, known, unit) in enumerate(zip(cft.motor_gains(setup), gains, units, strict=True), 1):
            reason = (
                TRUNCATED if i == 3 else "printed in N m/V, but the rail moves straight" if (setup, i) == ("dSPACE", 4) else ""
            )
            rows.append(Row(f"K_T of m{i}", float(ours), known, unit, reason))
        tables.append(Table(f"set-up with {setup}", tuple(rows)))
    return Reproduction(tuple(tables))
