"""signals: what was measured (`Log`), and how it becomes motion and effort ready for least squares (`prepare`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard
from dynident.signals.log import EFFORT_KINDS, Log
from dynident.signals.log_parts import MINIMUM_SAMPLES

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
    from dynident.signals.dependence import autocorrelation, effective_samples
    from dynident.signals.filters import Decimator, butterworth
    from dynident.signals.formats import open_parquet
    from dynident.signals.preparation import Prepared, common_cutoff, prepare
    from dynident.signals.quality import Finding, Quality, diagnose, fill_holes, pieces_without_gaps, split_at_gaps
    from dynident.signals.segments import LogSegment, read_segment, seal_segment, segment_frame, segment_start
    from dynident.signals.smoothers import fourier, kalman_smoother, savitzky_golay, smoothing_spline
    from dynident.signals.stream import LogStream
    from dynident.signals.tables import read_table
    from dynident.signals.writers import McapWriter, check_log_file

# Everything but Log needs scipy, which is slow to import: imported on first use.
_LATER = {
    "campaign": "CampaignLog GAP REPEATED Recording campaign_columns is_campaign read_campaign read_cycles read_journal",
    "cutoff": "Cutoff automatic_cutoff",
    "dependence": "autocorrelation effective_samples",
    "filters": "Decimator butterworth",
    "formats": "open_parquet",
    "preparation": "Prepared common_cutoff prepare",
    "quality": "Finding Quality diagnose fill_holes pieces_without_gaps split_at_gaps",
    "segments": "LogSegment read_segment seal_segment segment_frame segment_start",
    "smoothers": "fourier kalman_smoother savitzky_golay smoothing_spline",
    "stream": "LogStream",
    "tables": "read_table",
    "writers": "McapWriter check_log_file",
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
    "check_log_file",
    "common_cutoff",
    "diagnose",
    "effective_samples",
    "fill_holes",
    "fourier",
    "is_campaign",
    "kalman_smoother",
    "open_parquet",
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
