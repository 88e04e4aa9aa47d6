from .log import GAP as GAP
from .log import REPEATED as REPEATED
from .log import CampaignLog as CampaignLog
from .log import Recording as Recording
from .log import campaign_columns as campaign_columns
from .log import is_campaign as is_campaign
from .log import read_campaign as read_campaign
from .log import read_cycles as read_cycles
from .log import read_journal as read_journal
from .segments import LogSegment as LogSegment
from .segments import read_segment as read_segment
from .segments import seal_segment as seal_segment
from .segments import segment_frame as segment_frame
from .segments import segment_start as segment_start

__all__ = [
    "GAP",
    "REPEATED",
    "CampaignLog",
    "LogSegment",
    "Recording",
    "campaign_columns",
    "is_campaign",
    "read_campaign",
    "read_cycles",
    "read_journal",
    "read_segment",
    "seal_segment",
    "segment_frame",
    "segment_start",
]
