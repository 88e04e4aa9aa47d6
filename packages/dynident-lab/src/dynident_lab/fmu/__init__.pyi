from .fmu import torque_driven as torque_driven
from .fmu import write_fmu as write_fmu
