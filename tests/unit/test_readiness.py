"""The first quiet moment: all pages' code is loaded, without the engine, and set aside."""

import subprocess
import sys

CODE = """
import gc, sys, time
import streamlit
from plain_app import readiness
readiness.QUIET_SECONDS = 0.1
readiness.get_ready_soon(); readiness.get_ready_soon()
end = time.monotonic() + 60
while not gc.get_freeze_count() and time.monotonic() < end:
    time.sleep(0.05)
kept = gc.get_freeze_count()
print("plain_app.components.study_part" in sys.modules, kept > 50_000, sum(gc.get_count()) < kept)
print(sorted({"torch", "faiss"} & set(sys.modules)))
"""


def test_pages_are_loaded_and_set_aside_without_the_engine():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True True True", "[]"]
