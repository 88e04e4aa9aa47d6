"""signals: what was measured (`Log`), and how it becomes motion and effort ready for least squares (`prepare`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.signals.log import EFFORT_KINDS, Log

if TYPE_CHECKING:
    from dynident.signals.campaign import (
        GAP,
        REPEATED,
        CampaignLog,
        Recording,
        campaign_columns,
        is_campaign,
        read_campaign,
        read_journal,
    )
    from dynident.signals.cutoff import Cutoff, automatic_cutoff
    from dynident.signals.decimate import Decimator
    from dynident.signals.differentiate import butterworth, fourier, kalman_smoother, savitzky_golay, smoothing_spline
    from dynident.signals.preparation import Prepared, prepare
    from dynident.signals.quality import Finding, Quality, diagnose
    from dynident.signals.resample import split_at_gaps
    from dynident.signals.segments import Segment, read_segment, seal_segment, segment_frame, segment_start

__all__ = [
    "EFFORT_KINDS",
    "GAP",
    "REPEATED",
    "CampaignLog",
    "Cutoff",
    "Decimator",
    "Finding",
    "Log",
    "Prepared",
    "Quality",
    "Recording",
    "Segment",
    "automatic_cutoff",
    "butterworth",
    "campaign_columns",
    "diagnose",
    "fourier",
    "is_campaign",
    "kalman_smoother",
    "prepare",
    "read_campaign",
    "read_journal",
    "read_segment",
    "savitzky_golay",
    "seal_segment",
    "segment_frame",
    "segment_start",
    "smoothing_spline",
    "split_at_gaps",
]

# Everything but Log needs scipy, which is slow to import: loaded at first use (PEP 562).
_HOME = {
    "GAP": "campaign",
    "REPEATED": "campaign",
    "CampaignLog": "campaign",
    "Cutoff": "cutoff",
    "Decimator": "decimate",
    "Finding": "quality",
    "Prepared": "preparation",
    "Quality": "quality",
    "Recording": "campaign",
    "Segment": "segments",
    "automatic_cutoff": "cutoff",
    "butterworth": "differentiate",
    "campaign_columns": "campaign",
    "diagnose": "quality",
    "fourier": "differentiate",
    "is_campaign": "campaign",
    "kalman_smoother": "differentiate",
    "prepare": "preparation",
    "read_campaign": "campaign",
    "read_journal": "campaign",
    "read_segment": "segments",
    "savitzky_golay": "differentiate",
    "seal_segment": "segments",
    "segment_frame": "segments",
    "segment_start": "segments",
    "smoothing_spline": "differentiate",
    "split_at_gaps": "resample",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"dynident.signals.{_HOME[name]}"), name)
    raise AttributeError(f"module 'dynident.signals' has no attribute '{name}'")
