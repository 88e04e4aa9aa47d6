"""signals: what was measured (`Log`), and how it becomes motion and effort ready for least squares (`prepare`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.signals.log import EFFORT_KINDS, Log

if TYPE_CHECKING:
    from dynident.signals.cutoff import Cutoff, automatic_cutoff
    from dynident.signals.decimate import Decimator
    from dynident.signals.differentiate import butterworth, fourier, kalman_smoother, savitzky_golay, smoothing_spline
    from dynident.signals.preparation import Prepared, prepare
    from dynident.signals.quality import Finding, Quality, diagnose
    from dynident.signals.resample import split_at_gaps

__all__ = [
    "EFFORT_KINDS",
    "Cutoff",
    "Decimator",
    "Finding",
    "Log",
    "Prepared",
    "Quality",
    "automatic_cutoff",
    "butterworth",
    "diagnose",
    "fourier",
    "kalman_smoother",
    "prepare",
    "savitzky_golay",
    "smoothing_spline",
    "split_at_gaps",
]

# Everything but Log needs scipy, which is slow to import: loaded at first use (PEP 562).
_HOME = {
    "Cutoff": "cutoff",
    "Decimator": "decimate",
    "Finding": "quality",
    "Prepared": "preparation",
    "Quality": "quality",
    "automatic_cutoff": "cutoff",
    "butterworth": "differentiate",
    "diagnose": "quality",
    "fourier": "differentiate",
    "kalman_smoother": "differentiate",
    "prepare": "preparation",
    "savitzky_golay": "differentiate",
    "smoothing_spline": "differentiate",
    "split_at_gaps": "resample",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"dynident.signals.{_HOME[name]}"), name)
    raise AttributeError(f"module 'dynident.signals' has no attribute '{name}'")
