"""Reproductions: the registry and its page; tables of [Rodriguez2002] and [Kostic2002] against the published numbers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import dynident as di
from dynident_papers.cli.reproduce import _run
from dynident_papers.reproduce import Reproduction, Row, Table, entries, entry_of, reproduce, reproduction, write_page
from dynident_papers.reproduce import names as all_names
from dynident_papers.reproduce.cft import fixed_offsets
from dynident_papers.reproduce.er3a_campaign import at_the_next_plateaus, of_conductances
from dynident_papers.reproduce.registry import KINDS, nearer
from dynident_papers.robots import cft

NAMES = all_names()

DEAR = {  # those that take long, beside what of their reasons is tried without them
    "cft-excitation": lambda: fixed_offsets()[0] < 190.0 and fixed_offsets()[1] >= 0.0,
    "thermal-fig-22": of_conductances,
    "thermal-fig-43": at_the_next_plateaus,
    **dict.fromkeys(("thermal-fig-37", "thermal-fig-38", "thermal-fig-40", "thermal-fig-42"), None),
}


@cache
def made(name: str) -> Reproduction:
    return reproduce(name)


def values(name: str, table: int = 0) -> dict[str, Row]:
    return {row.name: row for row in made(name).tables[table].rows}


# ---- registry and page ----------------------------------------------------------------------------------------------------


def test_names_are_unique_and_sorted_as_people_count() -> None:
    names = all_names()
    assert len(set(names)) == len(names)
    assert set(DEAR) < set(names)
    tables = [name for name in names if name.startswith("cft-table-") and "-0" not in name]
    assert [name for name in tables if not name.startswith("cft-table-0")] == [
        "cft-table-2",
        "cft-table-4",
        "cft-table-5",
        "cft-table-6",
    ]
    assert all(entry.source.startswith("[") and entry.title and entry.seconds > 0 for entry in entries())


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(di.DynidentError, match="there is no reproduction 'cft-tabel-6'; the nearest are cft-table-6"):
        reproduce("cft-tabel-6")
    with pytest.raises(di.DynidentError, match=r"'???'; see  dynident reproduce --list".replace("?", r"\?")):
        reproduce("???")


@pytest.mark.parametrize(
    ("asked", "made_by"),
    [
        ("thermal-fig-14", "thermal-fig-22"),
        ("thermal-fig-24", "thermal-eq-130"),
        ("thermal-table-5", "thermal-table-4"),
        ("five-bar-fig-4-10", "five-bar-moves"),
        ("cft-eq-50", "cft-table-5"),
        ("prs3-table-2", "flexures-table-2"),
    ],
)
def test_what_is_made_with_others_is_found_by_its_printed_number(asked: str, made_by: str) -> None:
    assert entry_of(asked).name == made_by


def test_a_name_is_taken_once_but_a_cell_may_run_again() -> None:
    def mine() -> Reproduction:
        return Reproduction()

    for _ in range(2):
        assert reproduction("cft-table-0", "t", "[Rodriguez2002]")(mine)().title == "t"
    assert "cft-table-0" in all_names()
    with pytest.raises(di.DynidentError, match="two reproductions 'cft-table-6'"):
        reproduction("cft-table-6", "t", "[Rodriguez2002]")(mine)


def test_a_row_agrees_when_it_rounds_to_what_is_printed() -> None:
    assert Row("x", 31.78149, 31.7815).agrees is True
    assert Row("x", 31.78149, 31.7814).agrees is False
    assert Row("x", 0.1 + 0.2, 0.3).agrees is True
    assert Row("x", 2.0).agrees is None and Row("x", 2.0).difference is None
    assert Row("x", "yes", "yes").agrees is True and Row("x", "no", "yes").agrees is False
    assert Row("x", 1.1, 1.0).relative == pytest.approx(0.1)
    table = Table.of("t", ["a", "b"], [1.0, 2.0], [1.0, 2.5], "m", "noise")
    assert [row.reason for row in table.rows] == ["", "noise"]  # one reason for all is told where they differ
    assert "same" in table.summary() and "noise" in table.summary()
    assert "agrees" in Table.of("t", ["a"], [1.0], [1.0], kind="derived").summary()


def test_only_derived_numbers_count_as_agreement() -> None:
    def mine() -> Reproduction:
        rows = (
            Row("a", 1.0, 1.0),
            Row("b", 1.0, 1.0, kind="round trip"),
            Row("c", 2.0, 1.0, "", "z", "virtual"),
            Row("d", 1.0),
        )
        return Reproduction((Table("t", rows),), experiments={"z": lambda: True})

    found = reproduction("cft-table-00", "t", "[Rodriguez2002]")(mine)()
    assert found.agreeing == (1, 1)
    assert [len(found.of_kind(kind)) for kind in KINDS] == [1, 1, 1]
    with pytest.raises(di.DynidentError, match="kind is 'guessed'"):
        reproduction("cft-table-000", "t", "[Rodriguez2002]", kind="guessed")


@pytest.mark.filterwarnings("ignore::dynident.errors.DynidentWarning")  # machines at their limits, as the documents have them
@pytest.mark.parametrize("name", [name for name in NAMES if name not in DEAR])
def test_a_number_that_differs_has_a_reason_which_an_experiment_confirms(name: str) -> None:
    found = made(name)  # refused where a number differs without such a reason
    assert all(row.published is None or row.kind in KINDS for row in found.rows)
    for reason, experiment in found.experiments.items():
        assert experiment(), reason
    assert set(found.experiments) <= {row.reason for row in found.rows} | set(found.notes)


@pytest.mark.parametrize("name", [name for name, tried in DEAR.items() if tried is not None])
def test_reasons_of_reproductions_that_take_long_hold(name: str) -> None:
    tried = DEAR[name]
    assert tried is not None and tried()


def test_a_number_that_differs_without_a_tested_reason_is_refused() -> None:
    def mine() -> Reproduction:
        return Reproduction((Table("t", (Row("a", 2.0, 1.0, "", "other motions", "virtual"),)),))

    with pytest.raises(di.DynidentError, match="'a' differs; give its reason as an experiment"):
        reproduction("cft-table-0000", "t", "[Rodriguez2002]")(mine)()


def test_a_cause_explains_what_loses_half_of_its_difference_without_it() -> None:
    rows = [Row("a", 2.0, 1.0), Row("b", 3.0, 1.0), Row("c", 1.0, 1.0)]
    assert nearer(rows, [1.4, 0.5, 7.0])  # what agrees needs no explanation
    assert not nearer(rows, [1.6, 0.5, 1.0]) and not nearer(rows, [3.0, 1.0, 1.0])
    assert nearer([Row("d", 1.04, 1.02)], [1.0221])  # or comes to agree


def test_a_number_for_a_cause_that_is_not_known_is_counted() -> None:
    def mine() -> Reproduction:
        rows = (Row("a", 2.0, 1.0, "", "not explained: x", "virtual"), Row("b", 2.0, 1.0, "", "y", "virtual"))
        return Reproduction((Table("t", rows),), experiments={"not explained: x": lambda: True, "y": lambda: True})

    found = reproduction("cft-table-00000", "t", "[Rodriguez2002]")(mine)()
    assert [row.name for row in found.unexplained] == ["a"]
    assert "2 numbers differ, 1 of them for a cause that is not known" in found.summary()


def test_written_and_read_back(tmp_path: Path) -> None:
    found = made("cft-table-6")
    again = di.load(found.save(tmp_path / "found.json"))
    assert again.tables == found.tables
    assert (again.name, again.source) == ("cft-table-6", "[Rodriguez2002, Table 6]")
    with pytest.raises(di.DynidentError, match="nothing to plot"):
        found.plot()


def test_the_page_holds_everything_and_loads_nothing(tmp_path: Path) -> None:
    text = write_page(tmp_path / "page.html", [made("cft-definiteness"), made("cft-table-6")], {"x": "why"}).read_text()
    assert "430.2725" in text and "could not be made: why" in text and 'id="cft-definiteness"' in text
    assert text.count("<img") == 1 and 'src="http' not in text and "<script" not in text


def test_the_command_prints_lists_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    from dynident.__main__ import main

    def run(*args: str) -> int:
        monkeypatch.setattr("sys.argv", ["dynident", "reproduce", *args])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0)

    assert run("cft-table-6", "cft-table-5", "-o", str(tmp_path / "out")) == 0
    assert "6 of 8 derived numbers agree" in capsys.readouterr().out
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"reproduce.html", "cft-table-6.json", "cft-table-5.json"}
    assert run("--list", "--json") == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)} == set(all_names())
    assert run("cft-table-6", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["tables"][0]["rows"][0]["published"] == 430.2725
    assert run() == 1 and "give a name, or --all" in capsys.readouterr().err
    assert run("cft-table-9") == 1 and "the nearest are" in capsys.readouterr().err


# ---- published numbers ----------------------------------------------------------------------------------------------------


def test_condition_number_of_the_published_excitation() -> None:
    row = values("cft-jk")["J_k"]
    assert row.ours == pytest.approx(277.4, abs=0.1)
    assert values("cft-jk", 1)["literal (43), 0.4 Hz"].ours == pytest.approx(159.07, abs=0.01)


def test_appendix_b_and_table_2_differ_only_where_they_are_misprinted() -> None:
    rows = made("cft-appendix-b").tables[0].rows
    assert {row.name for row in rows if row.reason} == {f"M_{i},{i}, as printed" for i in (2, 3, 4)}
    assert all(row.ours < 1e-12 for row in made("cft-appendix-b").tables[1].rows)
    off = {row.name: abs(row.ours) for row in made("cft-table-2").tables[0].rows if "minus" in row.name}
    assert {name for name, x in off.items() if x > 1e-12} == {"y_T, (59) minus chain"}


def test_gains_and_encoders() -> None:
    assert {row.name for row in made("cft-table-6").rows if not row.agrees} == {"K_T of m3"}
    assert all(abs(row.relative) < 0.006 for row in made("cft-table-5").rows if row.relative is not None)


def test_friction_and_inertias_come_back() -> None:
    for i, table in enumerate(made("cft-ekf").tables):
        errors = {row.name: row.ours for row in table.rows if row.published is None}
        assert errors["error of the curve, m(q) and g(q) known"] < (2.5 if i == 0 else 0.2)
    for row, deviation in zip(made("cft-table-4").tables[0].rows, made("cft-table-4").tables[1].rows, strict=True):
        assert abs(row.difference) < 4.0 * deviation.ours


def test_operations_and_base_parameters_of_the_rrr_robot() -> None:
    steps, *counts = made("rrr-operations").tables[0].rows
    assert steps.ours < 3.0  # along the path the start is near
    assert all(row.ours < row.published for row in counts)
    assert made("rrr-base-parameters").agreeing == (1, 1)
    errors = [row.ours for row in made("rrr-base-parameters").tables[1].rows]
    assert errors[0] < 1e-12 and errors[1] > 0.1


def test_all_numbers_of_table_4_come_from_one_log_of_the_motors() -> None:
    """The motors of the nuts drive a loop; the laws are those of the joints of the arm, both tanh terms of each."""
    table, spread, curves = made("cft-log").tables
    assert [row.published for row in table.rows] == pytest.approx(cft.THETA.tolist())
    assert len(spread.rows) >= 24  # of q1 and q2 the sum of both terms is known
    errors = {row.name: row.ours for row in curves.rows}
    assert all(x < 0.5 for name, x in errors.items() if "curve" in name)  # % of the height
    assert errors["held-out error, another motion [%]".removesuffix(" [%]")] < 1.0


def test_a_lost_scheduler_is_one_note(capsys: pytest.CaptureFixture[str]) -> None:
    class FutureCancelledError(Exception):
        """What a client of Dask raises for every task when the scheduler is gone."""

    class Client:
        def submit(self, *_: object) -> Client:
            return self

        def result(self) -> object:
            raise FutureCancelledError("scheduler-connection-lost")

    results, failed = _run(["prs3-table-3", "prs3-table-4", "prs3-table-5"], None, None, Client())
    assert results == []
    assert len(failed) == 3
    assert capsys.readouterr().err.count("the connection to the scheduler was lost") == 1
