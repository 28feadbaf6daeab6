"""Runs one server for as long as somebody holds the other end of its standard input.

Usage: python watchdog.py SIGNAL FOLDER COMMAND...   (a script of its own: it imports nothing of QueryCloak)

It prints the server's process id. When the input ends before the server does, whoever wanted the server has
died: the server gets SIGNAL, seconds later SIGKILL, and FOLDER is removed, if one is named. If the watchdog
itself is killed, the kernel kills the server: `setpriv --pdeathsig` in the command sees to that.
"""

import os
import select
import shutil
import signal
import subprocess
import sys

#: Seconds that a server has to stop by itself.
PATIENCE = 10


def main(orphaned: str, folder: str, *command: str) -> int:
    """Start the server, and wait for its end or for that of its owner."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    print(server.pid, flush=True)
    ended = os.pidfd_open(server.pid)
    ready, _, _ = select.select([sys.stdin, ended], [], [])
    if ended not in ready:
        server.send_signal(signal.Signals[orphaned])
        if not select.select([ended], [], [], PATIENCE)[0]:
            server.kill()
        server.wait()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    status = server.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
