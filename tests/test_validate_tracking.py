"""The proof in closed loop: arithmetic against the papers' tables, then real proofs on virtual robots."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from dynident.errors import DynidentError
from dynident.robots import dualv, rrr
from dynident.validate.tracking_result import ALONE, CATALOGUE, IDENTIFIED, TrackingProof, Trial

T = np.linspace(0.0, 1.0, 200)
FIT = SimpleNamespace(condition=12.0, values=np.ones(40), training_relative=0.03)


def made(controller: str, motion: str, largest, model=0.0, feedback=1.0) -> Trial:
    """A trial whose errors are sines with given largest values and whose efforts have given RMS values."""
    k = len(largest)
    wave = np.sin(2.0 * np.pi * T)[:, None]
    flat = np.where(np.arange(T.size) % 2, 1.0, -1.0)[:, None]
    error = wave / np.abs(wave).max() * np.asarray(largest)
    return Trial(controller, motion, T, error, flat * np.broadcast_to(model, k), flat * np.broadcast_to(feedback, k))


@pytest.fixture(scope="module")
def table_4() -> TrackingProof:
    """Table 4 of document 1 as a proof: PD, and computed torque with the parameters of the two cases."""
    rows = ((ALONE, "PD"), (CATALOGUE, "case 2"), (IDENTIFIED, "case 1"))
    trials = tuple(
        made(name, f"trajectory {i + 1}", 1e-3 * np.array(dualv.TABLE_4[label][i]), 1.0) for i in (0, 1) for name, label in rows
    )
    motors = tuple(f"motor_{i}" for i in range(1, 5))
    return TrackingProof("DualV", motors, ("rad",) * 4, "N m", trials, FIT, "computed torque")


def test_reductions_are_those_the_paper_prints(table_4: TrackingProof) -> None:
    """Digest B8: recomputed from the rounded rows, the printed reductions agree within 0.16 points."""
    printed_b = [[55.9, 66.9, 75.6, 74.6], [62.3, 65.4, 76.6, 73.0]]
    printed_c = [[56.0, 67.6, 74.3, 75.2], [63.2, 65.1, 76.1, 72.3]]
    np.testing.assert_allclose(100.0 * table_4.reduction(), printed_b, atol=0.17)
    np.testing.assert_allclose(100.0 * table_4.reduction(CATALOGUE), printed_c, atol=0.17)
    np.testing.assert_allclose(table_4.reduction(of="rms"), table_4.reduction())  # sines: the same shape


def test_effort_ratios_are_those_of_document_2() -> None:
    """(16): u_n 0.25, 1.98, 0.78 V and u_c 0.11, 0.24, 0.17 V; the digest gives 2.3, 8.3, 4.6."""
    trials = tuple(
        made(name, "writing", [1e-3] * 3, rrr.RMS_FEEDFORWARD, rrr.RMS_FEEDBACK) for name in (ALONE, CATALOGUE, IDENTIFIED)
    )
    proof = TrackingProof("RRR", rrr.JOINTS, ("rad",) * 3, "V", trials, FIT)
    np.testing.assert_allclose(proof.effort_ratio, [[2.3, 8.3, 4.6]], atol=0.06)
    model, feedback = proof.trial(IDENTIFIED, "writing").shares
    np.testing.assert_allclose(model, rrr.RMS_FEEDFORWARD)
    np.testing.assert_allclose(feedback, rrr.RMS_FEEDBACK)


def test_table_and_json_hold_the_numbers(table_4: TrackingProof) -> None:
    text = table_4.table(dualv.TABLE_4)
    assert "trajectory 2" in text and "8.25 (" in text and "published: case 2" in text and "9.4" in text
    assert len({len(line) for line in text.splitlines() if "motor_1" in line}) == 1
    data = json.loads(table_4.to_json())
    assert data["format"] == "dynident-tracking-1" and len(data["trials"]) == 6
    row = next(r for r in data["trials"] if r["controller"] == IDENTIFIED and r["motion"] == "trajectory 1")
    np.testing.assert_allclose(row["largest"], 1e-3 * np.array(dualv.TABLE_4["case 1"][0]))
    np.testing.assert_allclose(row["reduction_largest"], [56.06, 66.92, 75.63, 74.55], atol=0.01)
    assert "reduction_largest" not in data["trials"][0]


def test_figures_show_every_controller_and_actuator(table_4: TrackingProof) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    figures = table_4.figures(dualv.TABLE_4)
    assert set(figures) == {"errors_1", "errors_2", "largest_errors", "efforts"}
    over_time = figures["errors_1"].axes
    assert len(over_time) == 4
    assert [line.get_label() for line in over_time[0].lines[1:]] == [ALONE, CATALOGUE, IDENTIFIED]
    drawn = np.abs(over_time[3].lines[1].get_ydata()).max()
    assert drawn == pytest.approx(dualv.TABLE_4["PD"][0][3], rel=1e-6)
    heights = [bar.get_height() for bar in figures["largest_errors"].axes[0].patches]
    np.testing.assert_allclose(heights[:4], dualv.TABLE_4["PD"][0])


def test_wrong_questions_are_one_sentence(table_4: TrackingProof) -> None:
    with pytest.raises(DynidentError, match="no trial of 'magic'"):
        table_4.trial("magic", "trajectory 1")
    with pytest.raises(DynidentError, match="'largest' or 'rms'"):
        table_4.reduction(of="mean")
