from .four_bar import FourBar as FourBar
from .letters import strokes as strokes
from .letters import write as write
from .multiprofile import velocity_multiprofile as velocity_multiprofile
from .sines import sines_within as sines_within
from .sines import workspace_sines as workspace_sines
