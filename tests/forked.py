"""Command lines without their start: a process with everything loaded forks for each. Run as a script it serves."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace


class Server:
    """Runs commands one after another, each in a process and a directory of its own."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, folder, *arguments):
        """Exit code, output and errors of a command line typed in `folder`."""
        self._process.stdin.write(json.dumps([str(folder), arguments]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        said, errors = ((Path(folder) / name).read_text() for name in ("out.txt", "err.txt"))
        return SimpleNamespace(returncode=code, stdout=said, stderr=errors)

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def serve():
    import delaysim.cli.commands
    import delaysim.cli.compose  # noqa: F401 - loaded once, before the forks
    from delaysim.__main__ import entry

    for line in sys.stdin:
        folder, arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            for stream, name in ((1, "out.txt"), (2, "err.txt")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            code = 1
            try:
                code = entry(arguments)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
