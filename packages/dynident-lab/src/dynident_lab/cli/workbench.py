"""The command workbench."""

from __future__ import annotations

from pathlib import Path

from dynident.cli.consoles import out
from dynident.errors import DynidentError, MissingExtraError


def workbench(
    folder: Path = Path(),
    /,
    *,
    port: int = 8770,
    no_browser: bool = False,
) -> int:
    """Open a page in the browser that leads from a robot description to a verdict, in six stages.

    Example: dynident workbench my_robot/

    The page is for this computer only. The printed address holds a token; through an SSH tunnel use the same port:
    ssh -L 8770:127.0.0.1:8770 HOST.

    Parameters
    ----------
    folder
        Folder of the project, with the same files that the commands write; made when it does not exist.
    port
        Port of the page; 0 for any that is free.
    no_browser
        Only print the address.
    """
    if not 0 <= port <= 65535:
        raise DynidentError(f"--port is {port}; give a number from 0 to 65535")
    if folder.exists() and not folder.is_dir():
        raise DynidentError(f"'{folder}' is a file; give the folder of a project")
    try:
        from dynident_lab.workbench.app import serve  # noqa: PLC0415 - an extra
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] in ("nicegui", "fastapi", "uvicorn", "starlette"):
            raise MissingExtraError(
                f"the workbench needs {error.name}; install it with pip install 'dynident-lab[workbench]'"
            ) from error
        raise
    serve(folder, port, not no_browser, lambda address: out.print(f"workbench: {address}\nstop with Ctrl-C"))
    return 0
