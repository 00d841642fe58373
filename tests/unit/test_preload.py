"""When the server is idle: all pages' code is loaded, without the engine, and set apart."""

import subprocess
import sys

CODE = """
import gc, sys, time
import streamlit
from plain_app.server import preload
preload.IDLE_DELAY, preload.is_served = 0.1, True
preload.preload_when_idle(); preload.preload_when_idle()
awaited = {"plain_app.views.tune.search", "core.formats.readers.arff"}
awaited |= {"plain_app.services.workspace"}
end = time.monotonic() + 240
while not gc.get_freeze_count() and time.monotonic() < end:
    time.sleep(0.05)
print(sorted(awaited - set(sys.modules)), sorted({"torch", "faiss"} & set(sys.modules)))
frozen = gc.get_freeze_count()
preload.preload([])  # what sessions left since is not set apart too
print(frozen > 100_000, gc.get_freeze_count() == frozen)
"""


def test_pages_are_loaded_without_the_engine():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[] []", "True True"]
