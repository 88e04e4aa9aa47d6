from .acceleration import Acceleration as Acceleration
from .acceleration import largest_acceleration as largest_acceleration
from .workspace import Singularity as Singularity
from .workspace import WorkspaceMap as WorkspaceMap
from .workspace import singularity_indices as singularity_indices
from .workspace import workspace_map as workspace_map
