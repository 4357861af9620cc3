"""The entry point: a first word without `=` is a command, anything else goes to Hydra. No torch."""

import os
import sys

from delaysim.errors import UserError


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(entry(sys.argv[1:]))


def entry(arguments: list[str]) -> int:
    """0 done, 1 a run failed, 2 bad configuration or input, 130 interrupted."""
    debug = os.environ.get("DELAYSIM_DEBUG") == "1"
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:
        print("interrupted; finished cells and checkpoints are kept, the same command goes on", file=sys.stderr)
        return 130
    except UserError as error:
        if debug:
            raise
        print(f"delaysim: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _dispatch(arguments: list[str]) -> int:
    from delaysim.cli.commands import COMMANDS, command

    word = arguments[0] if arguments else ""
    if word in COMMANDS:
        return command(word)(arguments[1:])
    if word and word[0] not in "+~-" and "=" not in word:
        raise UserError(
            f"{word!r} is neither a command ({', '.join(COMMANDS)}) nor a setting (KEY=VALUE); see delaysim --help"
        )
    from delaysim.cli.compose import run_translated

    return run_translated(arguments)


if __name__ == "__main__":
    main()
