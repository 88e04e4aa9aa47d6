"""Which files a robot description may name: those below its own folder, its package, or a named search path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dynident.errors import DescriptionError

MAX_MANIFEST = 100_000
"""Bytes of a package.xml that are looked at."""


class Folders:
    """The folders a description may read from."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        search: Sequence[str | os.PathLike[str]] = (),
        package: bool = False,
    ) -> None:
        # A description may be a link into a workspace: both its places are its own.
        try:
            places = {Path(path).absolute().parent, Path(path).resolve().parent}
        except (OSError, RuntimeError, ValueError) as error:  # loops of links, NUL characters
            raise DescriptionError(f"{str(path)!r} cannot be found ({error}); give the path of a robot file") from None
        self.search = [_folder(folder) for folder in _listed(search)]
        self.above = [folder for place in places for folder in (place, *place.parents)]
        packages = [next((f for f in (p, *p.parents) if _package_name(f)), p) for p in places] if package else []
        self.found: dict[str, Path | None] = {}
        self.roots = [folder.resolve() for folder in (*places, *packages, *self.search)]

    def allowed(self, target: Path, what: str) -> Path:
        """Return the resolved path of a file that may be read; `what` names it in the refusal."""
        try:
            real = target.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise DescriptionError(f"{what} cannot be found ({error}); correct the name") from None
        if any(real.is_relative_to(root) for root in self.roots):
            return real
        raise DescriptionError(
            f"{what} is outside the robot's folder; move it there, or name its folder with --search (search=[...])"
        )

    def package(self, name: str) -> Path | None:
        """Return the folder of a ROS package, found by its name without running anything; it may then be read from."""
        if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,200}", name):
            raise DescriptionError(f"'{name[:60]}' is no name of a package; give letters, digits, _ and -")
        if name not in self.found:
            self.found[name] = next((folder for folder in self._candidates(name) if _is_folder(folder)), None)
            if (folder := self.found[name]) is not None:
                self.roots.append(folder.resolve())
        return self.found[name]

    def _candidates(self, name: str) -> Iterator[Path]:
        for folder in self.search:
            if folder.name == name or _package_name(folder) == name:
                yield folder
            yield from (folder / name, folder / "share" / name)
        for folder in self.above:
            if _package_name(folder) == name:
                yield folder
            if _package_name(folder / name) == name:  # a neighbour in the same workspace
                yield folder / name
        for folder in self.above:
            # Without a manifest the name alone must do, but never for home or what holds it: that is no package.
            if folder.name == name and folder.parent != Path(folder.anchor) and not _home().is_relative_to(folder):
                yield folder


def _home() -> Path:
    return Path(os.path.expanduser("~")).absolute()  # noqa: PTH111 - Path.home raises where there is none


def _listed(search: Sequence[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    folders = [search] if isinstance(search, str | os.PathLike) else search
    if not isinstance(folders, Sequence) or not all(isinstance(folder, str | os.PathLike) for folder in folders):
        raise DescriptionError(f"search is {search!r}; give a list of folders")
    return list(folders)


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path).absolute()
    if not _is_folder(folder):
        raise DescriptionError(f"search path '{path}' is no folder; give a folder that exists")
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _package_name(folder: Path) -> str:
    """Return the name in a folder's package.xml, or nothing."""
    manifest = folder / "package.xml"
    try:
        if not manifest.is_file():
            return ""
        with manifest.open("rb") as stream:
            text = stream.read(MAX_MANIFEST).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
    found = re.search(r"<name>\s*([\w.-]+)\s*</name>", text)
    return found[1] if found else ""
