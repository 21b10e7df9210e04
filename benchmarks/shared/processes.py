"""Work in processes of its own, and the memory that a process or a call has in use."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path


def run_module(name: str, *arguments: object) -> dict:
    """Run `python -m name arguments` in another process, and read the JSON of its last line."""
    command = [sys.executable, "-m", name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def memory(field: str) -> int:
    """Bytes of this process, by Linux' name of the field."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def restart_peak() -> int:
    """Let the highest memory, VmHWM, begin here; bytes of this process now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return memory("VmRSS")


def peak(call: Callable[[], object]) -> int:
    """Bytes that a call has at most in use; compiled code of ours takes none by itself."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
