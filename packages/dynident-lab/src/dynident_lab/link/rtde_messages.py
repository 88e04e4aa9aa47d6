"""RTDE, the real-time data exchange of Universal Robots, protocol version 2 [UniversalRobots2024]: messages and our program.

    uint16 size (all bytes) | uint8 type | payload                                                       big endian

A client requests named fields and gets a recipe: number and types of a data package. The robot runs `PROGRAM`, which
the client sends to the script port. They exchange these registers; those from 24 on belong to external clients:

    input int 24     heartbeat, changes with every package        output int 24   number of the executed setpoint, -1 none
    input int 25     number of the setpoint, -1 hold, -2 stop     output int 25   state of the program
    input double 24  six joint positions [rad]                    output int 26   number of the newest setpoint wanted
    input double 30  speed scale: share of `TOP_SPEED` that setpoints may use
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.errors import LinkError
from dynident_lab.link.simple_messages import Framer

VERSION, CONTROL_VERSION, TEXT, DATA, OUTPUTS, INPUTS, START, PAUSE = b"VvMUOISP"
PROTOCOL = 2
RTDE_PORT, SCRIPT_PORT = 30004, 30002
TYPES: dict[str, tuple[Any, ...]] = {  # as fields of NumPy
    **{"VECTOR6D": (">f8", 6), "VECTOR3D": (">f8", 3), "VECTOR6INT32": (">i4", 6), "VECTOR6UINT32": (">u4", 6)},
    **{"DOUBLE": (">f8",), "UINT64": (">u8",), "UINT32": (">u4",), "INT32": (">i4",), "UINT8": ("u1",), "BOOL": ("?",)},
}
NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
_BY_TYPE = {
    "VECTOR6D": "target_q target_qd target_qdd target_current target_moment actual_q actual_qd actual_current "
    "actual_current_as_torque joint_control_output actual_TCP_pose actual_TCP_speed actual_TCP_force target_TCP_pose "
    "target_TCP_speed joint_temperatures actual_joint_voltage ft_raw_wrench payload_inertia",
    "VECTOR3D": "actual_tool_accelerometer payload_cog elbow_position elbow_velocity",
    "DOUBLE": "timestamp actual_execution_time speed_scaling target_speed_fraction actual_momentum actual_main_voltage "
    "actual_robot_voltage actual_robot_current payload tcp_force_scalar tool_temperature tool_output_current "
    "standard_analog_input0 standard_analog_input1 standard_analog_output0 standard_analog_output1",
    "UINT64": "actual_digital_input_bits actual_digital_output_bits",
    "UINT32": "runtime_state robot_status_bits safety_status_bits analog_io_types "
    "output_bit_registers0_to_31 output_bit_registers32_to_63",
    "INT32": "robot_mode safety_mode safety_status tool_mode",
    "VECTOR6INT32": "joint_mode",
}
FIELDS = {
    **{name: kind for kind, names in _BY_TYPE.items() for name in names.split()},
    **dict.fromkeys((f"output_int_register_{i}" for i in range(48)), "INT32"),
    **dict.fromkeys((f"output_double_register_{i}" for i in range(48)), "DOUBLE"),
    **dict.fromkeys((f"output_bit_register_{i}" for i in range(64, 128)), "BOOL"),
}
INPUT_FIELDS = {
    **dict.fromkeys((f"input_int_register_{i}" for i in range(48)), "INT32"),
    **dict.fromkeys((f"input_double_register_{i}" for i in range(48)), "DOUBLE"),
}
SPEED = "dynident_speed"  # only our virtual robots have this field: seconds of the robot per second of the host

# ---- the program -----------------------------------------------------------------------------------------------------

HOLD, STOP = -1, -2  # special numbers of setpoints
RUNNING, SILENT, JUMPED = 1, 2, 3  # states of the program; 0 while it does not run
SILENCE = 0.038  # time without a heartbeat after which the program brakes: 40 ms in whole cycles of 2 or 8 ms [s]
BRAKE = 0.05  # braking time [s]
TOP_SPEED = 3.2  # [rad/s]
SENT = ("input_int_register_24", "input_int_register_25", *(f"input_double_register_{24 + i}" for i in range(7)))
EXECUTED, STATE, WANTED = (f"output_int_register_{i}" for i in (24, 25, 26))
PROGRAM = f"""\
def dynident():
  def brake():
    v = get_target_joint_speeds()
    i = 0
    a = 1.0
    while i < 6:
      if norm(v[i]) > a * {BRAKE}:
        a = norm(v[i]) / {BRAKE}
      end
      i = i + 1
    end
    return a
  end
  step = get_steptime()
  q = get_target_joint_positions()
  beat = read_input_integer_register(24)
  silent = 0
  wanted = 1
  moving = False
  state = {RUNNING}
  write_output_integer_register(24, {HOLD})
  write_output_integer_register(25, state)
  write_output_integer_register(26, wanted)
  while state == {RUNNING}:
    missed = silent
    if read_input_integer_register(24) == beat:
      silent = silent + 1
    else:
      silent = 0
    end
    beat = read_input_integer_register(24)
    number = read_input_integer_register(25)
    if silent * step > {SILENCE}:
      state = {SILENT}
    elif number >= 0:
      i = 0
      next = q
      largest = 0.0
      while i < 6:
        next[i] = read_input_float_register(24 + i)
        if norm(next[i] - q[i]) > largest:
          largest = norm(next[i] - q[i])
        end
        i = i + 1
      end
      if largest > read_input_float_register(30) * {TOP_SPEED} * step * (missed + 2):
        state = {JUMPED}
      else:
        q = next
        moving = True
        wanted = wanted + 1
        write_output_integer_register(24, number)
        write_output_integer_register(26, wanted)
        servoj(q, t=step, lookahead_time=0.03, gain=1000)
      end
    else:
      wanted = 1
      write_output_integer_register(24, {HOLD})
      write_output_integer_register(26, wanted)
      if number == {STOP} and moving:
        stopj(brake())
        q = get_target_joint_positions()
        moving = False
      end
      servoj(q, t=step, lookahead_time=0.03, gain=1000)
    end
  end
  write_output_integer_register(24, {HOLD})
  write_output_integer_register(25, state)
  stopj(brake())
end
"""


# ---- frames ----------------------------------------------------------------------------------------------------------


def frame(kind: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a message."""
    return struct.pack(">HB", 3 + len(payload), kind) + payload


def framer() -> Framer:
    """Return the framer that divides a stream into messages; `message` reads one."""
    return Framer("big", "H", more=0, least=3)


def message(data: bytes) -> tuple[int, bytes]:
    """Return type and payload of a whole message."""
    return data[2], data[3:]


class Recipe:
    """The fields of data packages as a NumPy record, to pack and read many at once."""

    def __init__(self, number: int, names: Sequence[str], types: Sequence[str]) -> None:
        if len(set(names)) != len(types) or not set(types) <= set(TYPES):
            raise LinkError(f"a recipe of {len(names)} fields has the types {', '.join(types)}; the versions of RTDE differ")
        self.number, self.names = number, tuple(names)
        self.body = np.dtype([("recipe", "u1"), *((name, *TYPES[kind]) for name, kind in zip(names, types, strict=True))])
        self._whole = np.dtype([("size", ">u2"), ("kind", "u1"), ("body", self.body)])

    def pack(self, count: int, values: Mapping[str, Any]) -> bytes:
        """Return data packages with one value per field and package; fields without a value are zero."""
        rows = np.zeros(count, self._whole)
        rows["size"], rows["kind"], rows["body"]["recipe"] = self._whole.itemsize, DATA, self.number
        for name in self.names:
            if name in values:
                rows["body"][name] = values[name]
        return rows.tobytes()

    def unpack(self, payloads: Sequence[bytes]) -> Any:
        """Return data packages as a record array."""
        if any(len(one) != self.body.itemsize or one[0] != self.number for one in payloads):
            raise LinkError(f"a data package is not of its recipe, which has {self.body.itemsize} bytes")
        return np.frombuffer(b"".join(payloads), self.body)
