"""Draws docs/images/page-*.png anew, with a real model:

    MICA_BIN=build/release/bin/mica python3 tests/serve/page/shots.py docs/images
"""
import os
import sys

from browser import DESKTOP, PHONE, Server, chromium
from serving import models_dir

MODEL = os.path.join(models_dir(), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
CODE = "Write a Python function that reverses a linked list, then a table of its time and memory cost."
WARM = ("Name three rivers, with a word about each.", "What is a heap?")


def ask(page, text):
    n = page.locator(".foot").count()
    page.fill("#prompt", text)
    page.keyboard.press("Enter")
    page.locator(".foot").nth(n).wait_for(timeout=300000)


def draw(server, path, scheme, window, panel=False):
    context = chromium().new_context(color_scheme=scheme, **window)
    page = context.new_page()
    page.goto("http://{}:{}/".format(*server.address))
    page.evaluate("document.querySelector('[name=temperature]').value = 0; document.querySelector('[name=max_tokens]').value = 160")
    for text in WARM if window is DESKTOP or panel else ():
        ask(page, text)
    if not panel:
        page.click("#new")
        ask(page, CODE)
        page.evaluate("document.getElementById('log').scrollTop = 0")
    else:
        page.click("#toggle")
    page.wait_for_timeout(3000)
    page.screenshot(path=path)
    context.close()


def main():
    folder = sys.argv[1]
    chromium()
    server = Server("--parallel", 4, "--ctx", 4096, model=MODEL)
    try:
        draw(server, os.path.join(folder, "page-dark.png"), "dark", DESKTOP)
        draw(server, os.path.join(folder, "page-light.png"), "light", DESKTOP)
        draw(server, os.path.join(folder, "page-phone.png"), "light", PHONE)
        draw(server, os.path.join(folder, "page-phone-panel.png"), "dark", PHONE, panel=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
