"""Starts agents as forks of an interpreter that has imported their modules.

    python preload.py MODULE,MODULE... SCRIPT ARGUMENT...

Descriptor 3 is a socket. When the modules are imported, "ready" and the number of threads go over it. Then each message
on it is one byte and four descriptors: the agent's standard input, output and error, and a socket for this one agent.
From that one come a length of four bytes, big endian, and so many bytes: the working folder and the environment,
separated by zero bytes. Back go the process ids of the agent and of its guard on a line and, after the agent's end, its
exit status in Python's form (negative for a signal) on another. A "t" on it asks the agent to end; a "k", or the end of
the socket, kills it.

For each agent two processes are forked: a guard, and from it the agent, in a process group of its own. On Linux what
an agent leaves behind becomes the guard's child, wherever it moved to, and is killed.
"""

import gc
import importlib.machinery
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import time
import types

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILLING = 10  # how long a guard tries to kill what an agent left, in seconds


def prctl_function():
    """prctl, or one that does nothing where there is none."""
    if sys.platform != "linux":
        return lambda *_: 0
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda *_: 0


prctl = prctl_function()


def threads():
    """How many threads this process has, as far as the system says."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        threading = sys.modules.get("threading")
        return threading.active_count() if threading else 1


def serve(control):
    """Forks a guard for each message. Returns, in an agent, what is to be run in it; else never."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 4)
        if not message:
            os._exit(0)
        if len(descriptors) != 4:
            for d in descriptors:
                os.close(d)
            continue
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            forked = os.fork()
        except OSError:
            forked = -1  # the socket ends without a word
        if forked == 0:
            control.close()
            guard(descriptors)
            return
        for d in descriptors:
            os.close(d)


def guard(descriptors):
    """Starts an agent and ends with it. Returns in the agent."""
    talk = socket.socket(fileno=descriptors[3])
    try:
        folder, *environ = receive(talk).split(b"\0")
        os.setsid()
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until the agent does what it says
        pid = os.fork()
    except BaseException:
        os._exit(1)
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for d in (woken, wake):
            os.close(d)
        talk.close()
        become(descriptors[:3], folder, environ)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    try:
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # it has done so itself, or has ended
        for d in descriptors[:3]:
            os.close(d)
        null = os.open(os.devnull, os.O_RDWR)
        for d in (0, 1, 2):
            os.dup2(null, d)  # the interpreter's own are not to be held open
        talk.sendall(b"%d %d\n" % (pid, os.getpid()))
        status = watch(pid, talk, woken)
        kill_children(woken)
        talk.sendall(b"%d\n" % status)
    finally:
        os._exit(0)


def receive(talk):
    def exactly(n):
        data = bytearray()
        while len(data) < n:
            piece = talk.recv(min(n - len(data), 1 << 16))
            if not piece:
                os._exit(1)  # given up before it began
            data += piece
        return bytes(data)

    return exactly(struct.unpack(">I", exactly(4))[0])


def watch(pid, talk, woken):
    """Does what it is told until an agent has ended, and returns its exit status."""
    listening = [talk, woken]
    while (status := reap(pid)) is None:
        ready, _, _ = select.select(listening, [], [])
        if woken in ready:
            os.read(woken, 512)
        if talk in ready:
            told = talk.recv(16)
            if b"t" in told:
                tell_group(pid, signal.SIGTERM)
            if not told or b"k" in told:
                kill_agent(pid)
            if not told:
                listening.remove(talk)
    return status


def reap(pid):
    """The exit status of an agent that has ended, else None. What is left of its group is killed: before the agent's
    number can be another's, where the system has waitid."""
    if hasattr(os, "waitid"):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            return None
        kill_agent(pid)
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    if not hasattr(os, "waitid"):
        tell_group(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def tell_group(pid, what):
    try:
        os.killpg(pid, what)
    except OSError:
        pass


def kill_agent(pid):
    """Kills an agent that nobody has waited for yet, also if it moved to another group, and all of its own."""
    tell_group(pid, signal.SIGKILL)
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def kill_children(woken):
    """Kills what became this process's children, and what then becomes its children, and so on. What cannot be killed
    does not hold it up for long."""
    until = time.monotonic() + KILLING
    while time.monotonic() < until:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if select.select([woken], [], [], 0.1)[0]:
            os.read(woken, 512)


def children():
    """This process's children, as a list that the kernel keeps where it does. It may miss some while others end."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as f:
            yield from map(int, f.read().split())
        return
    except OSError:
        pass
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", "rb") as f:
                if name.isdigit() and int(f.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    yield int(name)
        except OSError:
            pass


def become(stdio, folder, environ):
    """Makes this process look like an interpreter that was started for the agent alone."""
    os.setpgid(0, 0)
    guard_id = os.getppid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guard_id:
        os._exit(1)
    for number, d in enumerate(stdio):
        os.dup2(d, number)
        os.close(d)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.chdir(folder)
    os.environ.clear()
    for entry in environ:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed()
    asyncio = sys.modules.get("asyncio")
    if asyncio and sys.version_info < (3, 14):
        asyncio.set_event_loop_policy(None)
    elif asyncio:
        asyncio.set_event_loop(None)
    gc.enable()


def prepare():
    """Imports the modules."""
    modules, script = sys.argv[1], sys.argv[2]
    sys.argv[:] = sys.argv[2:]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    gc.disable()
    for module in modules.split(","):
        __import__(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards are not waited for
    gc.collect()
    gc.freeze()


def run(script):
    """Runs a script in a module that stays __main__ until the interpreter has ended, as one that is started with it."""
    if script.endswith(".pyc") or pkgutil.get_importer(script):  # compiled, or a folder or an archive
        runpy.run_path(script, run_name="__main__")
        return
    loader = importlib.machinery.SourceFileLoader("__main__", script)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__, main.__cached__, main.__loader__ = script, None, loader
    exec(loader.source_to_code(loader.get_data(script), script), vars(main))


if __name__ == "__main__":
    link = socket.socket(fileno=3)
    os.set_inheritable(3, False)
    prepare()
    link.sendall(b"ready %d\n" % threads())
    serve(link)
    del link
    run(sys.argv[0])
