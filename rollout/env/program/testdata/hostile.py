#!/usr/bin/env python3
"""An environment whose tool calls do what they can to get out of their sandbox, each as its name says."""

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)

# Numbers of system calls on amd64 and arm64.
MACHINES = {
    "x86_64": {"fallocate": 285, "fcntl": 72, "close_range": 436, "clone": 56, "clone3": 435, "prctl": 157, "ptrace": 101, "process_vm_readv": 310, "mount": 165, "bpf": 321,
        "keyctl": 250, "add_key": 248, "unshare": 272, "setns": 308, "io_uring_setup": 425, "userfaultfd": 323,
        "perf_event_open": 298, "memfd_create": 319, "shmget": 29, "msgget": 68, "mq_open": 240, "seccomp": 317,
        "personality": 135, "chroot": 161, "pivot_root": 155, "swapon": 167, "reboot": 169, "init_module": 175,
        "kexec_load": 246, "setuid": 105, "capset": 126, "fchmod": 91, "kcmp": 312, "rt_sigqueueinfo": 129,
        "tkill": 200, "pidfd_send_signal": 424, "pidfd_getfd": 438, "sethostname": 170, "settimeofday": 164,
        "mknod": 133, "sendmsg": 46, "bind": 49, "connect": 42, "vmsplice": 278, "fanotify_init": 300},
    "aarch64": {"fallocate": 47, "fcntl": 25, "close_range": 436, "clone": 220, "clone3": 435, "prctl": 167, "ptrace": 117, "process_vm_readv": 270, "mount": 40, "bpf": 280,
        "keyctl": 219, "add_key": 217, "unshare": 97, "setns": 268, "io_uring_setup": 425, "userfaultfd": 282,
        "perf_event_open": 241, "memfd_create": 279, "shmget": 194, "msgget": 186, "mq_open": 180, "seccomp": 277,
        "personality": 92, "chroot": 51, "pivot_root": 41, "swapon": 224, "reboot": 142, "init_module": 105,
        "kexec_load": 104, "setuid": 146, "capset": 91, "fchmod": 52, "kcmp": 272, "rt_sigqueueinfo": 138,
        "tkill": 130, "pidfd_send_signal": 424, "pidfd_getfd": 438, "sethostname": 161, "settimeofday": 170,
        "mknod": 33, "sendmsg": 211, "bind": 200, "connect": 203, "vmsplice": 75, "fanotify_init": 262},
}
NUMBERS = MACHINES[os.uname().machine]
# Those that are not refused whatever their arguments.
PERMITTED = ("clone", "clone3", "close_range", "fallocate", "fcntl")


def system(number, *arguments):
    """A system call by its number: what it returned, or the name of the error."""
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return result if result >= 0 else os.strerror(ctypes.get_errno())


def tried(*acts):
    """What each of these gave, or which error."""
    said = []
    for act in acts:
        try:
            said.append("did " + str(act()))
        except OSError as e:
            said.append(os.strerror(e.errno))
    return "; ".join(said)


def write(path, mode="w"):
    with open(path, mode) as f:
        f.write("x")
    return path


def fork():
    """Forks for ever, whatever comes of it."""
    while True:
        try:
            if os.fork() == 0:
                os.setsid()
        except OSError:
            time.sleep(0.001)


def memory():
    kept = []
    while True:
        kept.append(b"x" * (1 << 20))


def files():
    for i in range(1 << 20):
        with open(f"file{i}", "wb") as f:
            f.write(b"x" * (1 << 20))


def many():
    for i in range(1 << 20):
        open(f"file{i}", "wb").close()


def removed():
    kept = []
    while True:
        f = open("file", "wb")
        os.unlink("file")
        f.write(b"x" * (8 << 20))
        f.flush()
        kept.append(f)
        time.sleep(0.01)


def big(path):
    """Makes a file of 40 MiB, of which two are more than there may be, and returns it open."""
    f = open(path, "wb")
    for _ in range(40):
        f.write(b"x" * (1 << 20))
    f.flush()
    return f


def waits():
    """Gives whoever counts time to do so."""
    time.sleep(5)
    return "nobody minded"


def unreadable():
    """Keeps too much in a folder that its owner may not read."""
    os.mkdir("hidden", 0o300)
    for i in range(2):
        big(f"hidden/{i}").close()
    return waits()


def deep():
    """Keeps too much where no path is short enough to lead to."""
    top = os.getcwd()
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    for i in range(2):
        big(str(i)).close()
    os.chdir(top)
    return waits()


def mapped():
    """Keeps files by nothing but a page of each in its memory."""
    import mmap

    address = libc.mmap
    address.restype = ctypes.c_void_p
    for i in range(2):
        f = big(str(i))
        f.close()
        d = os.open(str(i), os.O_RDONLY)
        if address(None, ctypes.c_size_t(4096), 1, 1, d, ctypes.c_long(0)) == ctypes.c_void_p(-1).value:
            raise OSError("mmap")
        os.close(d)
        os.unlink(str(i))
    return waits()


def restless():
    """Keeps too much in a folder that is always somewhere else."""
    os.mkdir("0")
    for i in range(2):
        big(f"0/{i}").close()
    until = time.monotonic() + 5
    i = 0
    while time.monotonic() < until:
        os.rename(str(i), str(i + 1))
        i += 1
    return "nobody minded"


def separate():
    """Wants open files of its own for a thread, where nobody counts those that were removed, and threads that do not stop."""
    vm, sighand, thread, files, vfork = 0x100, 0x800, 0x10000, 0x400, 0x4000
    return tried_calls(
        ("close_range", 1000, 2000, 2),
        ("clone", vm | sighand | thread),
        ("clone", vm | sighand | thread | files | vfork),
    )


def tried_calls(*calls):
    return "; ".join(str(system(NUMBERS[name], *arguments, 0, 0, 0)) for name, *arguments in calls)


def leaderless():
    """Keeps removed files open when its first thread has ended."""
    def keep():
        time.sleep(0.2)
        kept = []
        for i in range(2):
            kept.append(big(str(i)))
            os.unlink(str(i))
        line(json.dumps({"result": waits()}) + "\n")

    threading.Thread(target=keep).start()
    libc.syscall(ctypes.c_long({"x86_64": 60, "aarch64": 93}[os.uname().machine]), 0)  # exit, of this thread alone


def reserve():
    """Takes room without writing to it, more than a file may have."""
    keep_size = 1
    with open("file", "wb") as f:
        return tried_calls(("fallocate", f.fileno(), ctypes.c_long(keep_size), ctypes.c_long(0), ctypes.c_long(1 << 30)))


def descriptors():
    """The descriptors that it has."""
    return " ".join(str(d) for d in range(1 << 12) if system(NUMBERS["fcntl"], d, 1) != os.strerror(9))


def threads():
    threading.stack_size(32 << 10)
    while True:
        threading.Thread(target=time.sleep, args=(1000,)).start()
        time.sleep(0.005)


def compute():
    """Computes on when it has answered."""
    threading.Thread(target=loop, daemon=True).start()
    return "answered"


def compute_deaf():
    """The same, and the system's word that it is enough is not heard."""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    return compute()


def loop():
    while True:
        pass


def survive():
    """Starts what is to outlive the episode."""
    return tried(
        os.fork,
        os.setsid,
        lambda: os.setpgid(0, 0),
        lambda: subprocess.Popen(["/bin/sleep", "1000"]).pid,
        lambda: os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}),
    ) + "; " + str([system(NUMBERS[name], flags, 0, 0, 0, 0, 0) for name, flags in (("clone", 17), ("clone3", 0), ("prctl", 1))])


def network():
    def connect(family, kind, address):
        s = socket.socket(family, kind)
        s.connect(address)

    def send():
        a, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        a.sendto(b"x", b"/dev/log")

    a, b = socket.socketpair()
    a.send(b"pair")
    return tried(
        lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(arguments))),
        lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 53)),
        lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 80)),
        lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0abstract"),
        lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        send,
        lambda: b.recv(9),
    )


def read():
    """Reads files that are none of its business."""
    return tried(*(lambda path=path: open(path).read(1) for path in json.loads(arguments)))


def folders():
    return tried(*(lambda path=path: len(os.listdir(path)) for path in json.loads(arguments)))


def change():
    """Changes a file that it may read, and one that it may not, in all ways, and makes files outside."""
    own, other, outside = __file__, *json.loads(arguments)
    acts = [lambda: write(outside), lambda: os.mkdir(outside), lambda: os.symlink("/", outside), lambda: os.mkfifo("fifo")]
    for path in (own, other):
        acts += [
            lambda path=path: write(path, "a"),
            lambda path=path: os.open(path, os.O_RDONLY | os.O_TRUNC),
            lambda path=path: os.open(path, 3 | os.O_TRUNC),
            lambda path=path: os.truncate(path, 0),
            lambda path=path: os.chmod(path, 0),
            lambda path=path: os.chown(path, 0, 0),
            lambda path=path: os.utime(path, (0, 0)),
            lambda path=path: os.setxattr(path, "user.x", b"x"),
            lambda path=path: os.unlink(path),
            lambda path=path: os.rename(path, "here"),
            lambda path=path: os.link(path, "here"),
        ]
    return tried(*acts)


def parent():
    """Reaches for the node's process."""
    node = int(arguments)
    return tried(
        lambda: os.kill(node, signal.SIGKILL),
        lambda: os.kill(node, 0),
        lambda: os.kill(-1, signal.SIGKILL),
        lambda: os.kill(0, 0),
        lambda: open(f"/proc/{node}/environ").read(),
        lambda: open(f"/proc/{node}/mem", "rb").read(1),
        lambda: resource.prlimit(node, resource.RLIMIT_NOFILE, (1, 1)),
        lambda: os.sched_setaffinity(node, {0}),
        lambda: os.setpriority(os.PRIO_PROCESS, node, 19),
        lambda: os.pidfd_open(node),
    )


def calls():
    """The system calls that are not refused, of those that nobody needs who only computes."""
    refused = os.strerror(1)
    return str([name for name in NUMBERS if name not in PERMITTED and system(NUMBERS[name], 0, 0, 0, 0, 0, 0) != refused])


def raise_limits():
    def lift(what):
        resource.setrlimit(what, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    said = []
    for what in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        try:
            lift(what)
            said.append("did")
        except (OSError, ValueError):
            said.append("no")
    return " ".join(said)


def limits():
    names = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_MEMLOCK")
    return " ".join(str(resource.getrlimit(getattr(resource, n))[1]) for n in names)


def variables():
    return " ".join(sorted(os.environ))


def work():
    """What sound programs do: files, threads, pipes."""
    import sqlite3
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(folder + "/x.db")
        db.execute("create table t(x)")
        db.execute("insert into t values (41)")
        db.commit()
        (x,) = db.execute("select max(x) from t").fetchone()
        db.close()
    done = []
    t = threading.Thread(target=lambda: done.append(x + 1))
    t.start()
    t.join()
    os.makedirs("a/b")
    write("a/b/c")
    os.rename("a/b/c", "a/d")
    return f"{done[0]} {len(os.urandom(4))} {os.getcwd() == os.environ['HOME']} {os.path.exists('a/d')}"


def line(text):
    sys.stdout.write(text)
    sys.stdout.flush()


acts = {
    "echo": lambda: arguments,
    "repeat": lambda: "x" * int(arguments),
    "output": lambda: "x" * (2 << 20),
    "endless": lambda: [line("x" * 4096) for _ in iter(int, 1)],
    "errors": lambda: [sys.stderr.write("x" * 4096) for _ in iter(int, 1)],
    "exit": lambda: (sys.stderr.write("that is enough\n"), os._exit(3)),
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "sleep": lambda: time.sleep(1000),
    "raw": lambda: line(arguments),
    "pid": lambda: str(os.getpid()),
    "ignore": lambda: ([signal.signal(s, signal.SIG_IGN) for s in (2, 15, 24)], time.sleep(1000)),
}

for text in sys.stdin:
    request = json.loads(text)
    match request["op"]:
        case "reset":
            answer = {"messages": [{"role": "user", "content": "Do your worst."}]}
        case "call":
            arguments = request["arguments"]
            act = acts.get(request["name"]) or globals()[request["name"]]
            answer = {"result": act()}
        case "score":
            line(request["answer"] + "\n")
            continue
    line(json.dumps(answer) + "\n")
