from .flexures import FlexureRequirements as FlexureRequirements
from .flexures import flexure_requirements as flexure_requirements
from .hinges import FlexureHinge as FlexureHinge
