"""DualV's published numbers: what agrees to the printed digits, and what the virtual machine must reach."""

from __future__ import annotations

from dynident_papers.reproduce import reproduce


def test_table_1_comes_back() -> None:
    found = reproduce("dualv-table-1")
    assert found.agreeing == (0, 0)  # lengths that were put in are no agreement
    assert all(row.agrees for row in found.of_kind("round trip"))


def test_the_identified_models_lower_the_errors_of_the_pd_by_80_percent() -> None:
    found = reproduce("dualv-table-4")
    lower = [float(row.ours) for row in found.rows if "lower by" in row.name]
    assert len(lower) == 16
    assert min(lower) > 80.0  # published: 55.9 to 76.6, on another machine and other motions
    assert all(experiment() for experiment in found.experiments.values())
    pd = [float(row.ours) for row in found.rows if "PD (a)" in row.name]
    assert 5.0 < sum(pd) / len(pd) < 11.0  # published: 7.68 mrad


def test_raw_torque_errors_are_about_the_printed_ones_and_friction_alone_can_be_their_cause() -> None:
    """[Briot2015, Table 3]: 8.8 and 9.2 % on measured torques as they are."""
    found = reproduce("dualv-table-3")
    means = [row for row in found.rows if row.name == "mean"]
    assert all(abs(row.difference) < 1.0 for row in means)
    assert all(experiment() for experiment in found.experiments.values())


def test_only_the_payload_of_case_2_is_not_explained() -> None:
    names = ("dualv-acceleration", "dualv-payload", "dualv-table-2", "dualv-table-3", "dualv-table-4")
    assert [row.name for name in names for row in reproduce(name).unexplained] == ["m_5, case 2"]
