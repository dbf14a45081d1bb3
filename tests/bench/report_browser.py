"""What the browser tests of the report and the maker of its pictures share: Chromium without a network, and pages of files."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "serve"), os.path.join(TESTS, "cli")]
import chromium as browsers  # noqa: E402
from chromium import DESKTOP, PHONE  # noqa: E402, F401


def chromium():
    return browsers.launch()
