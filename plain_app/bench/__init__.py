"""Measures the app in a real browser, from a checkout: driven as the browser tests drive it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
