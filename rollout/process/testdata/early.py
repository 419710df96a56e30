"""A module that is worth preloading: it remembers where it was imported."""

import asyncio
import os
import random
import signal
import socket
import tempfile

imported_in = os.getpid()
lot = random.random()
state = []
tracing = os.environ.get("OPENAI_AGENTS_DISABLE_TRACING") != "1"
tempfile.gettempdir()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.close()
if "EARLY_METER" in os.environ:
    # Ends with all that share it: the interpreter, guards, and agents.
    link = socket.create_connection(os.environ["EARLY_METER"].rsplit(":", 1))
    link.sendall(b"here\n")
