"""Cheap reproductions of [Pagani2022]: what must agree with print does, what is recovered is near it."""

from __future__ import annotations

import pytest

from dynident_papers.reproduce import Row, reproduce


def rows(name: str) -> dict[str, Row]:
    found = reproduce(name)
    return {f"{table.title}: {row.name} [{row.unit}]": row for table in found.tables for row in table.rows}


def test_reduction_agrees_with_tables_1_to_3():
    first = rows("thermal-table-1")
    assert all(row.agrees for key, row in first.items() if "column of V" in key or "dropped" in key)
    assert first["dependence: condition number after []"].ours < 100.0
    second = rows("thermal-table-2")
    assert all(row.agrees for key, row in second.items() if key.startswith("parameters seen"))
    third = rows("thermal-table-3")
    assert all(row.agrees is not False for row in third.values())
    assert third["selected parameters: rank of all joints together []"].ours == 64.0


def test_limits_are_those_of_table_4():
    assert all(row.agrees for key, row in rows("thermal-table-4").items() if "joint_" in key)


def test_the_second_model_beats_the_first_as_in_table_6():
    found = rows("thermal-table-6")
    for label in ("abs mean", "abs max", "steady state"):
        first, second = (found[f"{model} model: {label} [N m]"] for model in ("first", "second"))
        assert second.ours < 0.5 * first.ours and second.published < 0.2 * first.published
    assert found["second model: abs mean [N m]"].ours < found["second model: abs mean [N m]"].published


def test_parameters_of_eq_130_are_recovered():
    for row in rows("thermal-eq-130").values():
        assert row.ours == pytest.approx(row.published, rel=0.06)


def test_time_constants_of_table_8_are_recovered():
    for key, row in rows("thermal-table-8").items():
        assert row.ours == pytest.approx(row.published, rel=0.15 if "axis 4" in key else 0.03)
