from .block import Block as Block
from .block import tool_block as tool_block
from .fmu import torque_driven as torque_driven
from .fmu import write_fmu as write_fmu
