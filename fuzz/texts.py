"""Good texts, one or more of every format that people write by hand: what the mutations start from."""

from __future__ import annotations

URDF = """<?xml version="1.0"?>
<robot name="arm2">
  <link name="base"/>
  <link name="link1">
    <inertial><origin xyz="0.2 0 0.01"/><mass value="3.0"/>
      <inertia ixx="0.02" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="link2">
    <inertial><origin xyz="0.1 0.02 0"/><mass value="1.5"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="joint1" type="revolute"><parent link="base"/><child link="link1"/>
    <origin xyz="0 0 0.3" rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="5" effort="100"/></joint>
  <joint name="joint2" type="revolute"><parent link="link1"/><child link="link2"/>
    <origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="5" effort="50"/></joint>
</robot>
"""
XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="length" default="0.4"/>
  <xacro:property name="half" value="${$(arg length) / 2.0}"/>
  <xacro:macro name="link" params="name mass:=2 *origin">
    <link name="${name}"><inertial><xacro:insert_block name="origin"/><mass value="${mass}"/>
      <inertia ixx="0.1" iyy="${0.1 + 0.1 * half}" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  </xacro:macro>
  <link name="base"/>
  <xacro:link name="link1" mass="${2 if half > 0 else 1}"><origin xyz="${half} 0 0"/></xacro:link>
  <xacro:if value="${half > 0.1}"><joint name="joint1" type="continuous"><parent link="base"/><child link="link1"/>
    <axis xyz="0 1 0"/></joint></xacro:if>
</robot>
"""
MJCF = """<mujoco model="arm2">
  <compiler angle="degree"/>
  <default><joint damping="0.1"/></default>
  <worldbody>
    <body name="link1" pos="0 0 0.3" euler="90 0 0">
      <joint name="joint1" type="hinge" axis="0 0 1" range="-90 90"/>
      <inertial pos="0.2 0 0.01" mass="3.0" diaginertia="0.02 0.05 0.05"/>
      <body name="link2" pos="0.4 0 0">
        <joint name="joint2" type="hinge" axis="0 0 1" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04" density="900"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m1" joint="joint1" gear="50"/></actuator>
</mujoco>
"""
SDF = """<?xml version="1.0"?>
<sdf version="1.9"><model name="arm2">
  <joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
  <link name="base"/>
  <link name="link1"><pose relative_to="joint1"/><inertial><mass>3.0</mass><pose>0.2 0 0.01 0 0 0</pose>
    <inertia><ixx>0.02</ixx><iyy>0.05</iyy><izz>0.05</izz></inertia></inertial></link>
  <link name="link2"><pose relative_to="joint2"/><inertial><mass>1.5</mass>
    <inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.02</izz></inertia></inertial></link>
  <joint name="joint1" type="revolute"><pose relative_to="base">0 0 0.3 1.57 0 0</pose><parent>base</parent><child>link1</child>
    <axis><xyz>0 0 1</xyz><limit><lower>-3</lower><upper>3</upper><effort>100</effort></limit></axis></joint>
  <joint name="joint2" type="revolute"><pose relative_to="link1">0.4 0 0 0 0 0</pose><parent>link1</parent>
    <child>link2</child><axis><xyz expressed_in="link1">0 0 1</xyz>
    <dynamics><damping>0.5</damping><friction>0.2</friction></dynamics></axis></joint>
</model></sdf>
"""
MOVEIT = """default_velocity_scaling_factor: 0.5
joint_limits:
  joint1:
    has_velocity_limits: true
    max_velocity: 3.15
    has_acceleration_limits: true
    max_acceleration: 10.0
  joint2: {max_velocity: 2.0, max_acceleration: 12.5, min_position: -1.5, max_position: 1.5}
"""
FLEET = """[robots.arm]
description = "robot.urdf"
terms = ["fv", "fc"]
[fleet]
logs = ["logs.csv"]
[reading]
effort = "joint_torque"
units = { position = "rad" }
[prepare]
cutoff = 4.0
[questions]
false_alarms = 0.01
periods = "month"
"""
TABLE_OF_LOGS = """robot,serial,date,log,temperature,load,use
arm,S1,2026-01-03,run.csv,31.5,0.0,fit
arm,S1,2026-02-03,other.csv,,,validate
arm,S2,2026-01-04,log.npz,30,2.5,fit
"""
LINKAGE = """<robot name="linkage"><link name="base"/>
  <link name="a"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="c"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="q1" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
  <joint name="q2" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.2 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="q3" type="continuous"><parent link="base"/><child link="c"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/></joint>
</robot>
"""
LOOPS = """independent = ["q1"]
[home]
q1 = 1.2
q2 = -1.2
q3 = 1.2
[[loop]]
name = "pin"
kind = "revolute"
body_a = "b"
xyz_a = [0.4, 0.0, 0.0]
body_b = "c"
xyz_b = [0.2, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]
[[actuator]]
name = "m"
coupling = { q1 = 1.0 }
[[force]]
name = "spring"
joint = "q1"
expression = "sin(q) - 0.3"
value = 4.0
[[friction]]
joint = "q1"
law = "stribeck + viscous"
[joint_terms]
q2 = ["fv"]
[known]
masses = { a = [1.0, 0.05] }
"""
SCHEMA = """time = "t"
joints = ["joint1", "joint2"]
position = ["q_joint1", "q_joint2"]
effort = ["tau_joint1", "tau_joint2"]
effort_kind = "joint_torque"
gain = [1.0, 1.0]
[unit]
position = "rad"
"""
SIDECAR = """gravity = [0.0, 0.0, -9.81]
terms = ["ia", "fv", "fc"]
[[coupling]]
joint = "joint2"
of = { joint1 = -1.0 }
offset = 0.1
[[actuator]]
name = "motor1"
coupling = { joint1 = 1.0 }
ratio = 50.0
gain = 0.2
"""
LIMITS = """margin = 0.02
bandwidth = 5.0
[default]
acceleration = 10.0
[joints.joint1]
lower = -1.5
upper = 1.5
[tool]
frame = "link2"
height = -2.0
x = [-3.0, 3.0]
[[polygon]]
joints = ["joint1", "joint2"]
vertices = [[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]]
[[capsule]]
link = "link2"
from = [0.0, 0.0, 0.0]
to = [0.2, 0.0, 0.0]
radius = 0.05
[[capsule]]
link = "base"
from = [0.0, 0.0, 0.0]
to = [0.0, 0.0, 0.1]
radius = 0.05
"""
