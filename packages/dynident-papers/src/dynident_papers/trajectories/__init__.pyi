from .four_bar import FourBar as FourBar
from .letters import strokes as strokes
from .letters import write as write
from .sines import workspace_sines as workspace_sines
