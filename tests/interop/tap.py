"""Runs a stdio server and keeps a record of every line that passes, for wire.py to judge.

    python tap.py DIR -- COMMAND ARGS…

Writes DIR/<pid>.jsonl and DIR/<pid>.err, one pair per start: some clients start a server twice.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

folder, _, *command = sys.argv[1:]
base = pathlib.Path(folder) / str(os.getpid())
record = open(f"{base}.jsonl", "w", encoding="utf-8")
lock = threading.Lock()
begun = time.monotonic()


def note(**entry) -> None:
    with lock:
        record.write(json.dumps({"at": round(time.monotonic() - begun, 4), **entry}) + "\n")
        record.flush()


with open(f"{base}.err", "wb") as stderr:
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)


def forward(number, _frame) -> None:
    note(signal=number)
    child.send_signal(number)


def inward() -> None:
    try:
        for line in sys.stdin.buffer:
            note(inward=line.decode("utf-8", "replace"))
            child.stdin.write(line)
            child.stdin.flush()
        note(end="the client closed stdin")
        child.stdin.close()
    except OSError as trouble:
        note(end=f"stdin: {trouble}")


def outward() -> None:
    for line in child.stdout:
        note(outward=line.decode("utf-8", "replace"))
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except OSError:
            pass  # the client left; go on recording


signal.signal(signal.SIGTERM, forward)
signal.signal(signal.SIGINT, forward)
note(command=command)
threading.Thread(target=inward, daemon=True).start()
reader = threading.Thread(target=outward)
reader.start()
code = child.wait()
reader.join()
note(exit=code)
os._exit(code if code >= 0 else 128 - code)
