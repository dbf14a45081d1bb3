"""What the browser tests of the report and the maker of its pictures share: Chromium without a network, and pages of files."""
import functools
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "serve"), os.path.join(TESTS, "cli")]
import clients  # noqa: E402

clients.need_modules("playwright.sync_api")
from playwright.sync_api import sync_playwright  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or clients.need_program("chromium", "chromium-browser")
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 360, "height": 640}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}


@functools.lru_cache(maxsize=None)
def chromium():
    playwright = sync_playwright().start()
    arguments = ["--host-resolver-rules=MAP * ~NOTFOUND"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses root otherwise
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)

    def end():
        browser.close()
        playwright.stop()

    try:
        unittest.addModuleCleanup(end)
    except AttributeError:  # outside of a test
        pass
    return browser
