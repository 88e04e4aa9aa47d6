"""signals: what was measured (`Log`), and how it becomes motion and effort ready for least squares (`prepare`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.signals.log import EFFORT_KINDS, MINIMUM_SAMPLES, Log

if TYPE_CHECKING:
    from dynident.signals.campaign import (
        GAP,
        REPEATED,
        CampaignLog,
        Recording,
        campaign_columns,
        is_campaign,
        read_campaign,
        read_cycles,
        read_journal,
    )
    from dynident.signals.cutoff import Cutoff, automatic_cutoff
    from dynident.signals.decimate import Decimator
    from dynident.signals.dependence import autocorrelation, effective_samples
    from dynident.signals.differentiate import butterworth, fourier, kalman_smoother, savitzky_golay, smoothing_spline
    from dynident.signals.preparation import Prepared, common_cutoff, prepare
    from dynident.signals.quality import Finding, Quality, diagnose
    from dynident.signals.readers import read_table
    from dynident.signals.resample import fill_holes, pieces_without_gaps, split_at_gaps
    from dynident.signals.segments import LogSegment, read_segment, seal_segment, segment_frame, segment_start
    from dynident.signals.stream import LogStream
    from dynident.signals.writers import McapWriter

# Everything but Log needs scipy, which is slow to import: imported on first use.
_LATER = {
    "CampaignLog": "campaign",
    "Cutoff": "cutoff",
    "Decimator": "decimate",
    "Finding": "quality",
    "GAP": "campaign",
    "Prepared": "preparation",
    "Quality": "quality",
    "REPEATED": "campaign",
    "Recording": "campaign",
    "LogSegment": "segments",
    "LogStream": "stream",
    "McapWriter": "writers",
    "autocorrelation": "dependence",
    "automatic_cutoff": "cutoff",
    "butterworth": "differentiate",
    "campaign_columns": "campaign",
    "common_cutoff": "preparation",
    "diagnose": "quality",
    "effective_samples": "dependence",
    "fill_holes": "resample",
    "fourier": "differentiate",
    "is_campaign": "campaign",
    "kalman_smoother": "differentiate",
    "pieces_without_gaps": "resample",
    "prepare": "preparation",
    "read_campaign": "campaign",
    "read_cycles": "campaign",
    "read_journal": "campaign",
    "read_segment": "segments",
    "read_table": "readers",
    "savitzky_golay": "differentiate",
    "seal_segment": "segments",
    "segment_frame": "segments",
    "segment_start": "segments",
    "smoothing_spline": "differentiate",
    "split_at_gaps": "resample",
}

__all__ = [
    "EFFORT_KINDS",
    "GAP",
    "MINIMUM_SAMPLES",
    "REPEATED",
    "CampaignLog",
    "Cutoff",
    "Decimator",
    "Finding",
    "Log",
    "LogSegment",
    "LogStream",
    "McapWriter",
    "Prepared",
    "Quality",
    "Recording",
    "autocorrelation",
    "automatic_cutoff",
    "butterworth",
    "campaign_columns",
    "common_cutoff",
    "diagnose",
    "effective_samples",
    "fill_holes",
    "fourier",
    "is_campaign",
    "kalman_smoother",
    "pieces_without_gaps",
    "prepare",
    "read_campaign",
    "read_cycles",
    "read_journal",
    "read_segment",
    "read_table",
    "savitzky_golay",
    "seal_segment",
    "segment_frame",
    "segment_start",
    "smoothing_spline",
    "split_at_gaps",
]

guard(globals(), later=_LATER)
