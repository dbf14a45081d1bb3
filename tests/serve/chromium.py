"""Debian's Chromium through Playwright, for the tests of the server's page and of reports. Skips the program without them."""
import functools
import os
import unittest

import clients

clients.need_modules("playwright.sync_api")
from playwright.sync_api import Error, sync_playwright  # noqa: E402

CHROMIUM = os.environ.get("CHROMIUM") or clients.need_program("chromium", "chromium-browser")
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 360, "height": 640}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}


@functools.lru_cache(maxsize=None)
def launch(reachable=""):
    """The browser of all tests of a program; it can reach nothing but the one address, if any. Where it cannot start the program
    ends: so ask for it before a server is started."""
    playwright = sync_playwright().start()
    arguments = ["--host-resolver-rules=MAP * ~NOTFOUND" + (f", EXCLUDE {reachable}" if reachable else "")]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses root otherwise
    try:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
    except Error as e:
        playwright.stop()
        clients.lack(f"a Chromium that starts ({CHROMIUM}: {str(e).splitlines()[0]})")

    def end():
        browser.close()
        playwright.stop()

    try:
        unittest.addModuleCleanup(end)
    except AttributeError:  # outside of a test
        pass
    return browser
