"""Broken descriptions: a reader gives a Mechanism or a DynidentError, never anything else."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynident.errors import DynidentError
from dynident.mechanism import Mechanism
from dynident.mechanism.dh import read_dh
from dynident.mechanism.mjcf import read_mjcf
from dynident.mechanism.urdf import read_urdf

ROBOTS = Path(__file__).parent / "robots"
SETTINGS = settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

WORDS = st.sampled_from(
    [
        "",
        " ",
        "0",
        "-1",
        "1e30",
        "1e-320",
        "nan",
        "inf",
        "1e999",
        "x",
        "0 0 0",
        "1 2",
        "é",
        "\U0001f916",
        "true",
        "world",
        "a/b",
        "&lt;",
    ]
)


def mutations(text: str):
    """Texts near a good one: cut, doubled, with attribute values and tags exchanged."""
    parts = text.split('"')

    @st.composite
    def change(draw):
        changed = list(parts)
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.integers(0, 5))
            i = draw(st.integers(0, len(changed) - 1))
            if kind <= 2:
                changed[i | 1 if i | 1 < len(changed) else i] = draw(WORDS)
            elif kind == 3:
                changed[i] = changed[draw(st.integers(0, len(changed) - 1))]
            elif kind == 4:
                del changed[i]
            else:
                changed = changed[: i + 1]
        result = '"'.join(changed)
        tags = ["joint", "link", "body", "inertial", "geom", "mimic", "mass", "default", "worldbody", "parent", "origin"]
        if draw(st.booleans()):
            result = result.replace(draw(st.sampled_from(tags)), draw(st.sampled_from(tags)), draw(st.integers(1, 3)))
        return result

    return change()


def attempt(reader, name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            robot = reader(path)
        except DynidentError as error:
            assert "\n" not in str(error)
            return
        assert isinstance(robot, Mechanism)
        try:
            assert len(robot.parameters) >= 0
        except DynidentError:
            return


@given(mutations((ROBOTS / "rich.urdf").read_text()))
@SETTINGS
def test_broken_urdf(text):
    attempt(read_urdf, "r.urdf", text.encode())


@given(mutations((ROBOTS / "rich.xml").read_text()))
@SETTINGS
def test_broken_mjcf(text):
    attempt(read_mjcf, "r.xml", text.encode())


@given(st.binary(max_size=200))
@SETTINGS
def test_binary_garbage(data):
    attempt(read_urdf, "r.urdf", data)
    attempt(read_mjcf, "r.xml", data)


@given(
    st.lists(
        st.one_of(
            st.tuples(*[st.floats()] * 4),
            st.dictionaries(
                st.sampled_from(["a", "alpha", "kind", "limits", "q"]), st.one_of(st.none(), st.floats(), st.text(max_size=3))
            ),
            st.none(),
        ),
        max_size=3,
    )
)
@SETTINGS
def test_broken_dh_tables(rows):
    for convention in ("standard", "modified"):
        try:
            assert isinstance(read_dh(rows, convention), Mechanism)
        except DynidentError:
            continue


@given(st.text(alphabet='[]{}="\n.abc123 truenan', max_size=60))
@SETTINGS
def test_broken_sidecars(text):
    attempt(lambda path: read_urdf(ROBOTS / "rich.urdf", sidecar=path), "s.toml", text.encode())


@pytest.mark.parametrize("reader", [read_urdf, read_mjcf])
@pytest.mark.parametrize("path", [3.5, None, [], "", "/", "\0"])
def test_paths_that_are_none(reader, path):
    with pytest.raises(DynidentError if isinstance(path, str) else TypeError):
        reader(path)
