"""Starts agents as forks of an interpreter that has imported their modules.

    python preload.py MODULE,MODULE... SCRIPT ARGUMENT...

Descriptor 3 is a socket. When the modules are imported, "ready" and the number of threads go over it. Then each message
on it is one byte and a descriptor, the socket of a guard, which is forked. A guard forks agents, one after the other.

For each agent come over its guard's socket one byte and three descriptors, its standard input, output and error; then a
length of four bytes, big endian, and so many bytes: the working folder and the environment, separated by zero bytes. Back
go the process ids of the agent and of its guard on a line and, after the agent's end, its exit status in Python's form
(negative for a signal) on another. A "t" asks the agent to end, a "k" kills it. At the end of the socket the guard kills
its agent and ends.

An agent has a process group of its own. On Linux what it leaves behind becomes the guard's child, wherever it moved to,
and is killed: a guard that cannot do so ends with its agent. That a guard lasts spares a copy of the interpreter for each
agent.
"""

import atexit
import functools
import gc
import importlib.machinery
import io
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
import types
import weakref

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
        return threading.active_count()


def serve(control):
    """Forks a guard for each message. Returns in an agent only."""
    while True:
        descriptors = handed(control, 1)
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            forked = os.fork()
        except OSError:
            forked = -1  # the socket ends without a word
        if forked == 0:
            control.close()
            guard(socket.socket(fileno=descriptors[0]))
            return
        os.close(descriptors[0])


def handed(link, n):
    """The descriptors of the next message that has n of them. Others, such as what was told to an agent that had just ended,
    are passed over."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(link, 1, n)
        if not message:
            os._exit(0)
        if len(descriptors) == n:
            return descriptors
        for d in descriptors:
            os.close(d)


def guard(talk):
    """Starts one agent after the other. Returns in an agent only."""
    try:
        os.setsid()
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until the agent does what it says
        null = os.open(os.devnull, os.O_RDWR)
        for d in (0, 1, 2):
            os.dup2(null, d)  # the interpreter's own are not to be held open
        os.close(null)
        while True:
            stdio = handed(talk, 3)
            folder, *environ = receive(talk).split(b"\0")
            pid = os.fork()
            if pid == 0:
                break
            oversee(pid, stdio, talk, woken)
    except BaseException:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for d in (woken, wake):
        os.close(d)
    talk.close()
    become(stdio, folder, environ)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def oversee(pid, stdio, talk, woken):
    """Stays with an agent to its end, and ends with it if something of it is left."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # it has done so itself, or has ended
    for d in stdio:
        os.close(d)
    talk.sendall(b"%d %d\n" % (pid, os.getpid()))
    status = watch(pid, talk, woken)
    clean = kill_children(woken)
    talk.sendall(b"%d\n" % status)
    if not clean:
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
    """Kills what became this process's children, and what then becomes its children, and so on, and says whether none is
    left. What cannot be killed does not hold it up for long."""
    until = time.monotonic() + KILLING
    while time.monotonic() < until:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if select.select([woken], [], [], 0.1)[0]:
            os.read(woken, 512)
    return False


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
    rehearse()
    postpone_certificates()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # guards are not waited for
    gc.collect()
    files_at_fork.extend(map(weakref.ref, filter(is_file, gc.get_objects())))
    gc.freeze()


def rehearse():
    """Has libraries do once what they put off until their first call: import more, read type hints, compile schemas. Nothing
    of it can be seen but in how long the first call of an agent takes, so what goes wrong is left to that call."""
    import encodings.idna  # of the first connection

    instrumented = any("instrumentation" in name or name == "agentops" for name in sys.modules)  # and would tell of it
    for library, rehearsal in (("openai", rehearse_openai), ("agents", rehearse_agents)):
        if library in sys.modules and not instrumented:
            try:
                rehearsal(sys.modules[library])
            except Exception:
                pass


def rehearse_agents(agents):
    """Describes a function as a tool, as OpenAI's Agents SDK does."""

    def f(a: str) -> str:
        """d"""

    agents.function_tool(f)


def rehearse_openai(openai):
    """Makes one call of each API and kind of client, to a transport that answers without a network."""
    http = next(c for c in openai.DefaultHttpxClient.__mro__ if not c.__module__.startswith("openai")).__module__
    http = sys.modules[http.partition(".")[0]]
    arguments = '{"a":"b"}'
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "prompt_tokens": 1, "completion_tokens": 1,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    message = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call", "type": "function", "function": {"name": "f", "arguments": arguments}}]}
    chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage, "choices": [
        {"index": 0, "finish_reason": "tool_calls", "message": message, "logprobs": None}]}
    called = {"type": "function_call", "id": "fc", "call_id": "call", "name": "f", "arguments": arguments, "status": "completed"}
    said = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [
        {"type": "output_text", "text": "t", "annotations": [], "logprobs": []}]}
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    function = {"name": "f", "description": "d", "parameters": schema}
    # What the gateway answers has a value in each of these fields, and a type is read when its first value comes.
    response = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [called, said],
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [{"type": "function", "strict": True, **function}],
                "metadata": {}, "text": {"format": {"type": "text"}}, "truncation": "disabled", "usage": usage}
    transport = http.MockTransport(lambda q: http.Response(200, json=response if q.url.path.endswith("/responses") else chat))
    asked = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    answered = [*asked, {**message, "content": "t"}, {"role": "tool", "tool_call_id": "call", "content": "t"}]
    for_chat = {"model": "m", "messages": answered, "tools": [{"type": "function", "function": function}]}
    for_responses = {"model": "m", "instructions": "i", "tools": [{"type": "function", **function}], "input": [
        *asked, called, {"type": "function_call_output", "call_id": "call", "output": "t"}]}
    # Of the APIs only those that were preloaded: to import another would take more memory, and each fork longer.
    apis = [(name, call) for name, module, call in (
        ("chat.completions", "openai.resources.chat", for_chat), ("responses", "openai.resources.responses", for_responses),
    ) if module in sys.modules]

    def create(client, name):
        for part in name.split("."):
            client = getattr(client, part)
        return client.create

    def spell_out(answer):  # each type makes what writes it out when it is first written out
        for part in [answer, *getattr(answer, "output", ()), *(c.message for c in getattr(answer, "choices", ()))]:
            part.model_dump()

    client = {"api_key": "k", "base_url": "http://127.0.0.1/v1", "max_retries": 0}
    direct = {"transport": transport, "trust_env": False}  # whatever proxies there are
    with openai.OpenAI(**client, http_client=openai.DefaultHttpxClient(**direct)) as c:
        for name, call in apis:
            spell_out(create(c, name)(**call))
    if "anyio._backends._asyncio" not in sys.modules:  # what asynchronous clients need was not preloaded
        return
    import asyncio

    async def asynchronously():
        async with openai.AsyncOpenAI(**client, http_client=openai.DefaultAsyncHttpxClient(**direct)) as c:
            for name, call in apis:
                spell_out(await create(c, name)(**call))

    asyncio.run(asynchronously())


def postpone_certificates():
    """Lets an SSL context read the system's certificates, or those of certifi, when something is first asked of them: every
    client that is made has a context and reads them, which takes longer than all its calls of a policy on this machine,
    which go without SSL. Only files that can be read, and have not changed since, are put off, so that errors come when
    they would."""
    ssl, certifi = sys.modules.get("ssl"), sys.modules.get("certifi")
    if not ssl:
        return

    def stamp(file):
        s = os.stat(file)
        return s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns

    load, good = ssl.SSLContext.load_verify_locations, {}
    for file in filter(None, (ssl.get_default_verify_paths().openssl_cafile, certifi and certifi.where())):
        try:
            load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), file)
            good[file] = stamp(file)
        except OSError:
            pass  # also what is wrong with its contents
    postponed, lock = weakref.WeakKeyDictionary(), threading.RLock()

    @functools.wraps(load)
    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        if cadata is None and isinstance(cafile, str) and cafile in good and good[cafile] == stamp(cafile):
            with lock:
                postponed.setdefault(self, []).append(cafile)
            cafile = None
            if capath is None:
                return
        load(self, cafile, capath, cadata)

    def catch_up_before(method):
        @functools.wraps(method)
        def catch_up(self, *args, **kwargs):
            with lock:
                for file in postponed.pop(self, ()):
                    load(self, file)
            return method(self, *args, **kwargs)

        return catch_up

    ssl.SSLContext.load_verify_locations = load_verify_locations
    for name in ("_wrap_socket", "_wrap_bio", "get_ca_certs", "cert_store_stats"):
        setattr(ssl.SSLContext, name, catch_up_before(getattr(ssl.SSLContext, name)))


def is_file(o):
    return isinstance(o, (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom))


files_at_fork = []  # references to the files that were open then
statuses = []  # of an agent whose script has ended


def leave():
    """Ends an agent's process, when everything else that runs at an interpreter's exit has. To take the interpreter apart
    would be to write to nearly all of the memory that is shared with the one it was forked from, which takes longer than
    most agents work. Files are flushed, as they are then; other objects that still exist end with the process."""
    if not statuses:
        return  # no agent, or one that is to die of SIGINT
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        return  # the interpreter has more to say about it
    files = [f for r in files_at_fork if (f := r()) is not None] + list(filter(is_file, gc.get_objects()))
    for f in sorted(files, key=lambda f: not isinstance(f, io.TextIOWrapper)):  # they write to the others
        try:
            f.flush()
        except Exception:
            pass  # it is closed, or cannot be written
    os._exit(statuses[0])


def play(script):
    """Runs a script and notes the exit status that it leads to."""
    try:
        run(script)
        statuses.append(0)
    except SystemExit as e:
        statuses.append(0 if e.code is None else e.code & 0xFF if isinstance(e.code, int) else 1)
        raise
    except KeyboardInterrupt:
        raise
    except BaseException:
        statuses.append(1)
        raise


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
    atexit.register(leave)  # before all others, so that it is the last to be called
    link = socket.socket(fileno=3)
    os.set_inheritable(3, False)
    prepare()
    link.sendall(b"ready %d\n" % threads())
    serve(link)
    del link
    play(sys.argv[0])
