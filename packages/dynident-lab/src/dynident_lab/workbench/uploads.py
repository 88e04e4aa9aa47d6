"""Uploaded files: plain names only, bounded sizes, limited archives."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from dynident.errors import DynidentError
from dynident.files import visible, write_atomic

LARGEST = 500_000_000  # bytes of one upload
UNPACKED = 1_000_000_000  # bytes of all files of an archive
FILES = 5_000  # files of an archive
ROBOTS = (
    ".urdf",
    ".xacro",
    ".xml",
    ".mjcf",
    ".sdf",
    ".json",
    ".toml",
    ".yaml",
    ".yml",
    ".stl",
    ".glb",
    ".gltf",
    ".dae",
    ".obj",
)
DESCRIPTIONS = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".json")
LOGS = (".csv", ".gz", ".txt", ".npz", ".mat", ".parquet", ".h5", ".hdf5", ".mcap", ".bag", ".db3", ".toml", ".yaml")


class UploadError(DynidentError):
    """A refused file; nothing was changed."""


def safe_name(name: str) -> str:
    """Return the name of an upload after checking that it is a plain file name."""
    if not name or name != PurePosixPath(name.replace("\\", "/")).name or name in (".", "..") or name.startswith("."):
        raise UploadError(f"'{visible(name)}' is not a plain file name; rename the file and drop it again")
    if not name.isprintable() or len(name.encode()) > 200 or any(c in '<>:"|?*' for c in name):
        raise UploadError(f"'{visible(name)}' has characters that a file name cannot have everywhere; rename the file")
    return name


def save_upload(folder: Path, name: str, data: bytes, endings: Sequence[str]) -> list[Path]:
    """Write an uploaded file, or the files of an uploaded archive, into a folder; return the written files.

    A file with the same name and other content is kept: the new one gets a number.
    """
    plain = safe_name(name)
    if len(data) > LARGEST:
        raise UploadError(f"'{plain}' is larger than {LARGEST // 1_000_000} MB; copy it into '{folder}' instead")
    if plain.lower().endswith(".zip"):
        return _unpack(folder, plain, data, endings)
    _check_ending(plain, endings)
    if not data:
        raise UploadError(f"'{plain}' is empty; drop the file again when it is complete")
    target = folder / plain
    for number in range(2, 1000):
        if not target.exists() or (target.is_file() and target.read_bytes() == data):
            break
        target = folder / f"{Path(plain).stem}_{number}{Path(plain).suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    return [write_atomic(target, data)]


def _check_ending(name: str, endings: Sequence[str]) -> None:
    if not name.lower().endswith(tuple(endings)):
        raise UploadError(f"'{visible(name)}' has an unsupported type; drop {', '.join(endings)} or .zip")


def _unpack(folder: Path, name: str, data: bytes, endings: Sequence[str]) -> list[Path]:
    """Unpack an archive into a new folder of its name, limiting the actual size of its content."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise UploadError(f"'{name}' is not a zip archive ({error}); pack the files again") from error
    if len(entries) > FILES:
        raise UploadError(f"'{name}' contains {len(entries)} files; the limit is {FILES}")
    contents: list[tuple[PurePosixPath, bytes]] = []
    left = UNPACKED
    for entry in entries:
        path = PurePosixPath(entry.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in entry.filename or stat.S_ISLNK(entry.external_attr >> 16):
            raise UploadError(
                f"'{name}' contains '{visible(entry.filename)}', a path outside the archive; pack it without such paths"
            )
        if path.suffix.lower() not in endings:
            continue  # documents and pictures of a package are skipped
        try:
            with archive.open(entry) as file:
                content = file.read(min(left, LARGEST) + 1)
        except (zipfile.BadZipFile, RuntimeError, OSError, EOFError, ValueError, NotImplementedError) as error:
            raise UploadError(f"'{name}' cannot be unpacked at '{visible(entry.filename)}' ({error})") from error
        left -= len(content)
        if left < 0 or len(content) > LARGEST:
            raise UploadError(f"'{name}' unpacks to more than {UNPACKED // 1_000_000} MB; drop the files one by one")
        contents.append((path, content))
    if not contents:
        raise UploadError(f"'{name}' contains no supported file; supported types are {', '.join(endings)}")
    target = folder / Path(name).stem
    for number in range(2, 1000):
        if not target.exists():
            break
        target = folder / f"{Path(name).stem}_{number}"
    written = []
    for path, content in contents:
        place = target.joinpath(*path.parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        written.append(write_atomic(place, content))
    return written
