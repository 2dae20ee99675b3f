"""The commands that a script of this folder starts: they end when it does, by a signal too, with all that they
have started themselves.
"""
import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time

# So many seconds a command has to end by itself; after that it is killed, and has as many again: what it
# has asked of a device that is held to a limit must come back first.
TIMEOUT = 20
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_running = []
_starting = False
_signal = None


def end_on_signals():
    """From now on a signal raises SystemExit, by which the commands that run are ended. One that whoever
    started the script had ignored stays so (nohup(1))."""
    atexit.register(_end_all)
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _caught)


def _caught(number, _):
    global _signal
    if _signal is None:
        _signal = number
        # Not while a command is being started: nobody would know of it.
        if not _starting:
            sys.exit(128 + number)


@contextlib.contextmanager
def taking_down():
    """What is taken down here is taken down to its end, whatever signal comes, when no command runs any more."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        _end_all()
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def start(*words, **options):
    """A command whose output is kept unless it is told otherwise, in a process group of its own. Takes the options of subprocess.Popen."""
    global _starting
    before = _signal
    _starting = True
    try:
        # Not a session of its own: the scheduler may share out the processors by session (sched(7)).
        options = {"stdout": subprocess.PIPE} | options
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, process_group=0, **options)
        _running.append(child)
    finally:
        _starting = False
    if _signal != before:
        sys.exit(128 + _signal)
    return child


def output(child, statuses=(0,), timeout=None):
    """What a command printed, once it has ended, and well: with one of these statuses. After so many seconds it is ended:
    subprocess.TimeoutExpired."""
    try:
        text = child.communicate(timeout=timeout)[0]
    finally:
        _end(child)
    if child.returncode not in statuses:
        raise subprocess.CalledProcessError(child.returncode, child.args, text.decode())
    return text.decode()


def run(*words, **options):
    """What a command prints."""
    return output(start(*words, **options))


def _end_all():
    while _running:
        _end(_running[-1])


def _end(child):
    """Ends a command, if it has not, and what it has left behind in its group."""
    # Or it would wait for someone to read what it says.
    if child.stdout:
        child.stdout.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _ends_by(child, number):
            break
    else:
        print(f"processes of the group {child.pid} do not end", file=sys.stderr)
    _running.remove(child)


def _ends_by(child, number):
    """True where nothing of a command's group is left soon after this signal."""
    until = time.monotonic() + TIMEOUT
    try:
        os.killpg(child.pid, number)
        while time.monotonic() < until:
            child.poll()
            os.killpg(child.pid, 0)
            time.sleep(0.05)
    except ProcessLookupError:
        return True
    return False
