"""Draws a terminal recording as an SVG picture.

    script -q -c scripts/demo recording && python3 docs/images/render.py recording docs/images/run.svg

Escape sequences are dropped, "\\r" returns to the start of the line as on a terminal, long lines wrap at COLUMNS. A line that
begins with "$ " is what was typed.
"""
import html
import re
import sys

COLUMNS, FONT_PX, LINE_PX, CHAR_PX, MARGIN = 96, 14, 20, 8.43, 18
STYLE = ("text{font:%dpx ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre;fill:#d8dee9}"
         ".typed{fill:#a3be8c;font-weight:bold}.note{fill:#7b88a1}" % FONT_PX)
ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")


def screen_lines(recording):
    """What stays visible: text after a carriage return overwrites the line."""
    lines = []
    for line in ESCAPE.sub("", recording).replace("\r\n", "\n").split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part):]
        lines.append(shown.rstrip())
    return [line for line in lines if not line.startswith(("Script started", "Script done"))]


def wrap(line):
    """After spaces and semicolons, as a reader would like it."""
    while len(line) > COLUMNS:
        cut = max(line.rfind(" ", 0, COLUMNS + 1), line.rfind(";", 0, COLUMNS) + 1)
        cut = cut if cut > 0 else COLUMNS
        yield line[:cut]
        line = line[cut:].lstrip(" ")
    yield line


def style_of(line):
    if line.startswith("$ "):
        return "typed"
    return "note" if re.match(r"(demo: |fetching |ttft_ms=)", line) else "plain"


def draw(lines):
    rows = [(style_of(line), row) for line in lines for row in wrap(line)]
    width, height = int(COLUMNS * CHAR_PX + 2 * MARGIN), len(rows) * LINE_PX + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f"<style>{STYLE}</style>", f'<rect width="{width}" height="{height}" rx="8" fill="#2e3440"/>']
    for i, (style, row) in enumerate(rows):
        y = MARGIN + i * LINE_PX + FONT_PX
        out.append(f'<text x="{MARGIN}" y="{y}" class="{style}" xml:space="preserve">{html.escape(row, quote=False)}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8", newline="") as f:
        lines = screen_lines(f.read())
    while lines and not lines[-1]:
        lines.pop()
    with open(target, "w", encoding="utf-8") as f:
        f.write(draw(["$ scripts/demo"] + lines))


if __name__ == "__main__":
    main()
