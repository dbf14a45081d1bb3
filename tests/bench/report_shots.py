"""Draws docs/images/report-*.png anew, of the runs in a file:

    MICA_BIN=build/release/bin/mica python3 tests/bench/report_shots.py bench.db docs/images
"""
import os
import sys
import tempfile

from report_browser import DESKTOP, PHONE, chromium
from climica import mica


def draw(html, path, scheme, window, height):
    context = chromium().new_context(color_scheme=scheme, **{**window, "viewport": {**window["viewport"], "height": height}})
    page = context.new_page()
    page.goto("file://" + html)
    page.wait_for_timeout(1000)
    page.screenshot(path=path)
    context.close()


def main():
    runs, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        html = os.path.join(temporary, "report.html")
        done = mica("report", runs, "--out", html)
        if done.code != 0:
            sys.exit(done.message)
        draw(html, os.path.join(folder, "report-light.png"), "light", DESKTOP, 1160)
        draw(html, os.path.join(folder, "report-phone.png"), "dark", PHONE, 1160)


if __name__ == "__main__":
    main()
