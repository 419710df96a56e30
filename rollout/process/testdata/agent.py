"""An agent that does what its task says: the first word is a function, the rest its argument."""

import atexit
import builtins
import json
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading


def say(text):
    """Answers."""
    print("", text, "")


def fail(status):
    print("not an answer")
    print("it went wrong", file=sys.stderr)
    sys.exit(int(status))


def crash(_):
    raise ValueError("a bug")


def die(name):
    os.kill(os.getpid(), getattr(signal, name))


def flood(n):
    """Writes n bytes to standard output, and more than anybody keeps to standard error."""
    sys.stderr.write("x" * 100_000 + "the end")
    print("y" * int(n), end="")


def ignore(_):
    """Answers without its task."""
    os.close(0)
    print("ignored")


def describe(_):
    """Says what it finds."""
    import tempfile

    print(json.dumps({
        "argv": sys.argv[1:], "task": os.environ.get("TASK"), "path": sys.path[0] == os.path.dirname(os.path.realpath(__file__)),
        "work": os.listdir("."), "home": os.listdir(os.environ["HOME"]), "tmp": os.listdir(tempfile.gettempdir()),
        "own": tempfile.gettempdir() == os.environ["TMPDIR"],
        "names": sorted(os.environ), "extra": os.environ.get("EXTRA"), "group": os.getpgrp() == os.getpid(),
        "main": sys.modules["__main__"].describe is describe, "file": os.path.basename(__file__),
        "blocking": [os.get_blocking(fd) for fd in (0, 1, 2)], "terminal": has_terminal(),
        "seekable": [f.seekable() for f in (sys.stdin, sys.stdout, sys.stderr)],
        "descriptors": sorted(int(fd) for fd in os.listdir("/dev/fd"))[:-1] if os.path.isdir("/dev/fd") else [0, 1, 2],
    }))


def hold(_):
    """Answers through a file that is still open, and not flushed, at the end."""
    global held
    held = os.fdopen(os.dup(1), "w")
    print("held", file=held, end="")


def quit(how):
    """Ends in one of the ways in which a script can."""
    endings = {"nothing": None, "text": "a reason", "byte": 256, "truth": True}
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "thread":
        threading.Thread(target=sys.exit, args=(5,)).start()
    elif how == "exit handler":
        atexit.register(print, "the last words")
    elif how == "daemon":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    elif how == "child":
        if (child := os.fork()) == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    else:
        sys.exit(endings[how])


def certificates(_):
    """Says what certificates of the system an SSL context has in the end, and which are refused."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file = ssl.get_default_verify_paths().openssl_cafile
    if os.path.exists(file):
        context.load_verify_locations(file)
    try:
        context.load_verify_locations("/no/such/file")
    except FileNotFoundError:
        print(context.cert_store_stats(), len(context.get_ca_certs()), end="")


class Thing:
    """Something that can be found by its name."""


def outlive(_):
    """Answers from a thread, after all else has ended."""

    def answer():
        threading.main_thread().join()
        print(pickle.loads(pickle.dumps(Thing)).__module__)

    threading.Thread(target=answer).start()


def has_terminal():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
        return True
    except OSError:
        return False


def soil(_):
    """Leaves its mark on all that a rollout must have for itself, and says which marks it found."""
    import asyncio

    found = []

    def mark(name, there):
        if there:
            found.append(name)

    early = sys.modules.get("early")
    mark("global", "soiled" in globals())
    mark("builtin", hasattr(builtins, "soiled"))
    mark("module", "soiled" in sys.modules)
    mark("environment", "SOILED" in os.environ)
    mark("child's environment", b"SOILED" in subprocess.check_output(["env"]))
    mark("folder", os.listdir(".") or os.listdir(os.environ["HOME"]) or os.listdir(os.environ["TMPDIR"]))
    mark("path", "/soiled" in sys.path)
    mark("arguments", "soiled" in sys.argv)
    mark("signal", signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL or signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL)
    mark("interrupt", signal.getsignal(signal.SIGINT) is not signal.default_int_handler)
    mark("threads", threading.active_count() != 1)
    mark("preloaded state", early and early.state)
    mark("tracing of an import", early and early.tracing)
    mark("mask", signal.pthread_sigmask(signal.SIG_BLOCK, []))
    mark("umask", os.umask(0o77) == 0o11)
    try:
        asyncio.get_running_loop()
        mark("running loop", True)
    except RuntimeError:
        pass
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    mark("loop", loop.run_until_complete(asyncio.sleep(0, "")))

    globals()["soiled"] = builtins.soiled = True
    sys.modules["soiled"] = sys
    os.environ["SOILED"] = "1"
    for folder in (".", os.environ["HOME"], os.environ["TMPDIR"]):
        os.mkdir(os.path.join(folder, "soiled"), 0o500)
    os.chdir("/")
    sys.path.append("/soiled")
    sys.argv.append("soiled")
    for name in ("SIGTERM", "SIGUSR1", "SIGINT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    os.umask(0o11)
    if early:
        early.state.append("soiled")
    threading.Thread(target=loop.run_forever, daemon=True).start()
    print(json.dumps({"found": found, "lot": random.random(), "imported_in": early.imported_in if early else 0}))


def ask(times):
    """Asks the policy so many times, and fails with the last error's code."""
    # Only here: it takes longer than all that other tasks need.
    import urllib.error
    import urllib.request

    for _ in range(int(times)):
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps({"model": "any", "messages": [{"role": "user", "content": "go"}]}).encode(),
            {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
        )
        try:
            with urllib.request.urlopen(request) as response:
                said = json.load(response)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as e:
            sys.exit("refused: " + json.load(e)["error"]["code"])
    print(said)


def connect():
    """A connection to the test, which sees with its end that this process and all that share it have ended."""
    link = socket.create_connection(os.environ["METER"].rsplit(":", 1))
    link.sendall(b"here\n")
    return link


def hang(how):
    """Runs until it is stopped: at the first SIGTERM, not at any, with an answer, in silence, or in spite of what its
    group is told."""
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif how == "answering":
        signal.signal(signal.SIGTERM, lambda *_: (print("in time", flush=True), os._exit(0)))
    elif how == "silently":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    elif how == "elsewhere":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            os.setpgid(0, os.getpgid(os.getppid()))
        except OSError:
            pass  # where the parent is in another session
    link = connect()
    while True:
        signal.pause()
    del link


def leave(how):
    """Starts a process that would outlive it, and answers."""
    child = (
        "import os, signal, socket\n"
        "link = socket.create_connection(os.environ['METER'].rsplit(':', 1))\n"
        "link.sendall(b'here\\n')\n"
        "os.write(3, b'.')\n"
        "os.close(3)\n"
        "while True: signal.pause()\n"
    )
    ready, go = os.pipe()
    if os.fork() == 0:
        if how != "group":
            os.setsid()
        if how == "daemon" and os.fork() != 0:
            os._exit(0)
        for _ in range(120 if how == "chain" else 0):
            if os.fork() != 0:
                signal.pause()
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.dup2(go, 3)
        environ = {"METER": os.environ["METER"]} if how in ("stripped", "chain") else os.environ
        os.execve(sys.executable, [sys.executable, "-c", child], environ)
    os.close(go)
    os.read(ready, 1)
    print("left one")


def murder(whom):
    """Kills what it was forked from."""
    import early

    os.kill(early.imported_in if whom == "interpreter" else os.getppid(), signal.SIGKILL)
    if whom == "guard":
        hang("stubborn")
    print("killed", early.imported_in)


def guard(_):
    """Says what it was forked from."""
    print(os.getppid())


def stop(_):
    """Stops what it was forked from."""
    os.kill(os.getppid(), signal.SIGSTOP)
    hang("stubborn")


if __name__ == "__main__":
    given = os.environ["TASK"] if os.environ.get("TASK", "").startswith("ignore") else sys.stdin.read()
    what, _, rest = given.partition(" ")
    globals()[what](rest)
