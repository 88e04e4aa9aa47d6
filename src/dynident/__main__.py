"""``python -m dynident``: the command line, with every failure told in one sentence."""

from __future__ import annotations

import sys

BAD_INPUT, USAGE, INTERNAL, INTERRUPTED = 1, 2, 70, 130


def main() -> None:
    """Run the command line and exit with its code.

    0: done. 1: bad input (one sentence on standard error). 2: wrong usage. 3: done, but the verdict is not ok
    (with ``--strict``). 70: a bug in dynident. 130: interrupted.
    """
    from dynident.errors import DynidentError  # noqa: PLC0415 - keep the start fast

    try:
        from dynident.cli import run  # noqa: PLC0415 - needs the extra cli
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.stderr.write("dynident: the command line needs typer and rich: run  pip install 'dynident[cli]'\n")
        sys.exit(BAD_INPUT)
    try:
        sys.exit(run())
    except DynidentError as error:
        sys.stderr.write(f"dynident: {' '.join(str(error).split())}\n")
        sys.exit(BAD_INPUT)
    except (OSError, MemoryError, UnicodeError) as error:
        sys.stderr.write(f"dynident: {type(error).__name__}: {error}; check the file and the free space\n")
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.stderr.write("dynident: interrupted; nothing was written halfway\n")
        sys.exit(INTERRUPTED)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        sys.stderr.write(
            f"dynident: internal error ({type(error).__name__}: {error}); please report it with the output of the same "
            "command and --debug\n"
        )
        sys.exit(INTERNAL)


if __name__ == "__main__":
    main()
