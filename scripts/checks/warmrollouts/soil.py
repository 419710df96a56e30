"""Leaves its mark on all that a rollout must have for itself, and prints which marks it found."""

import asyncio
import builtins
import gc
import os
import random
import signal
import sys
import tempfile
import threading

FOLDERS = (".", os.environ["HOME"], os.environ["TMPDIR"], tempfile.gettempdir())
libraries = [m for name in ("openai", "httpx2", "pydantic", "langchain", "agents", "autogen_agentchat") if (m := sys.modules.get(name))]


def running():
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def current():
    """The loop that was set, in a Python that tells without making one."""
    return getattr(asyncio.get_event_loop_policy()._local, "_loop", None) if sys.version_info < (3, 14) else None


def is_soiled(descriptor):
    try:
        return "soiled" in os.readlink("/dev/fd/" + descriptor)
    except OSError:
        return False


marks = {
    "a global": "soiled" in globals(),
    "a builtin": hasattr(builtins, "soiled"),
    "a module": "soiled" in sys.modules,
    "a library": any(hasattr(m, "soiled") for m in libraries),
    "a method": getattr(asyncio.AbstractEventLoop, "soiled", False),
    "a variable": "SOILED" in os.environ,
    "a file": any(os.listdir(folder) for folder in FOLDERS),
    "a path": "/soiled" in sys.path,
    "an argument": "soiled" in sys.argv,
    "a signal": signal.getsignal(signal.SIGTERM) != signal.SIG_DFL,
    "the umask": os.umask(0o77) == 0o11,
    "a thread": threading.active_count() > 1,
    "a running loop": running(),
    "a loop": current(),
    "the collector": not gc.isenabled(),
    "an open file": any(map(is_soiled, os.listdir("/dev/fd"))),
}
found = [name for name, there in marks.items() if there]
lot = random.random()

globals()["soiled"] = builtins.soiled = True
sys.modules["soiled"] = sys
for library in libraries:
    library.soiled = True
asyncio.AbstractEventLoop.soiled = True
os.environ["SOILED"] = os.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:9/soiled"
for folder in FOLDERS:
    with open(os.path.join(folder, "soiled"), "w") as file:
        file.write("soiled")
held = open("soiled")
sys.path.insert(0, "/soiled")
sys.argv.append("soiled")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.umask(0o11)
random.seed(1)
threading.Thread(target=threading.Event().wait, daemon=True).start()
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.call_soon(loop.stop)
loop.run_forever()
gc.disable()
print("found", ", ".join(found) or "nothing", "drew", lot)
