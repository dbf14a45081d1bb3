"""Runs pytest on the files named, in the environment of scripts/fetch-python; exit status 77 (skipped) where that cannot be had."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOTHING_RAN = 5  # of pytest: every test was left out


def environment():
    """The Python of the virtual environment, or None and why not."""
    done = subprocess.run([os.path.join(ROOT, "scripts", "fetch-python")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    return (os.path.join(done.stdout.strip(), "venv", "bin", "python3"), "") if done.returncode == 0 else (None, done.stderr)


def main():
    python, why = environment()
    if not python:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(77)
    paths = [os.path.join(ROOT, "bindings", "python"), os.path.join(ROOT, "tests", "python")]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([python, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", *sys.argv[1:]], env=env, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    all_skipped = done.returncode == 0 and " passed" not in done.stdout and " skipped" in done.stdout
    sys.exit(77 if all_skipped or done.returncode == NOTHING_RAN else done.returncode)


if __name__ == "__main__":
    main()
