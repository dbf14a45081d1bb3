"""The governor on the real machine: mica runs in a control group whose CPU quota reacts to load as a phone's clocks do to heat.

A thermometer follows the CPU time that the group takes; above a limit the quota is cut to a part of one CPU, and comes back only well
below it. Two threads reach the limit within seconds; one never does. The governor sees nothing of this but the rate of its tokens."""
import json
import os
import subprocess
import sys
import threading
import time

from climica import BIN, TestCase, environment, main_with_models, models_dir, write_temporary

SMOLLM2 = "smollm2-135m-instruct-q4_1.gguf"
SECONDS = int(os.environ.get("MICA_QUOTA_SECONDS", "20"))  # of each run; the longer, the less the governor tries in vain
PERIOD_US = 20000
CUT = 0.3              # CPUs while it is hot
TAU_S = 3.0            # of the thermometer, in CPUs
LIMIT, RELEASE = 1.15, 0.5
POLICY = {"version": 1, "objective": "sustained", "name": "quick", "period_s": 0.25, "probe_s": 0.5, "trial_s": 1, "dwell_s": 1}


class Group:
    """A group of version 2 or 1 below this process's own."""

    def __init__(self):
        self.path = None
        for mount, controller in (("/sys/fs/cgroup", ""), ("/sys/fs/cgroup/cpu", "cpu"), ("/sys/fs/cgroup/cpu,cpuacct", "cpu")):
            self.v2 = not controller
            if not self.make(mount, controller, "governor"):
                continue
            try:
                self.allow(None)
                self.write(*(("cpu.weight", 10000) if self.v2 else ("cpu.shares", 262144)))  # the quota is to be what limits
                return
            except OSError:
                self.remove()
        if not self.path:
            raise OSError("no control group can be made here")

    def make(self, mount, controller, name):
        """A group of this name is there now, `path`; False: none can be made there."""
        path = os.path.join(mount + self.own(controller), f"mica-{name}-{os.getpid()}")
        try:
            os.mkdir(path)
        except OSError:
            return False
        if not os.path.exists(os.path.join(path, "cgroup.procs")):  # a folder like any other
            os.rmdir(path)
            return False
        self.path = path
        return True

    @staticmethod
    def own(controller):
        with open("/proc/self/cgroup", encoding="utf-8") as f:
            for line in f:
                _, names, path = line.rstrip("\n").split(":", 2)
                if controller in names.split(","):
                    return "" if path == "/" else path
        return ""

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as f:
            f.write(str(text))

    def allow(self, cpus):
        quota = None if cpus is None else int(cpus * PERIOD_US)
        if self.v2:
            self.write("cpu.max", f"{'max' if quota is None else quota} {PERIOD_US}")
        else:
            self.write("cpu.cfs_period_us", PERIOD_US)
            self.write("cpu.cfs_quota_us", -1 if quota is None else quota)

    def remove(self):
        if self.path:
            os.rmdir(self.path)
        self.path = None


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Heat(threading.Thread):
    """Follows the process and sets the quota; `hot_s` is how long it was cut."""

    def __init__(self, group, pid):
        super().__init__(daemon=True)
        self.group, self.pid, self.level, self.hot, self.hot_s = group, pid, 0.0, False, 0.0

    def run(self):
        before, at = cpu_seconds(self.pid), time.monotonic()
        while True:
            time.sleep(0.1)
            try:
                used, now = cpu_seconds(self.pid), time.monotonic()
            except (OSError, IndexError):
                return
            dt = now - at
            self.level += ((used - before) / dt - self.level) * min(1, dt / TAU_S)
            before, at = used, now
            hot = self.level > (RELEASE if self.hot else LIMIT)
            self.hot_s += dt if hot else 0
            if hot != self.hot:
                self.group.allow(CUT if hot else None)
            self.hot = hot


def generate(group, *args):
    """Tokens of so many seconds, the token ids, and how it went."""
    group.allow(None)
    command = [BIN, "run", "-m", os.path.join(models_dir(), SMOLLM2), "--temp", "0", "--ignore-eos", "--json", "--no-chat", "--no-tuned",
               "-p", "The sea", "-n", "100000", "--full", "shift", "-c", "512", *args]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    group.write("cgroup.procs", p.pid)
    heat = Heat(group, p.pid)
    heat.start()
    ids, end, last = [], time.monotonic() + SECONDS, None
    for line in p.stdout:
        last = json.loads(line)
        if "token" in last:
            ids.append(last["token"])
        if time.monotonic() > end and p.poll() is None:
            end = float("inf")
            counted = len(ids)
            p.send_signal(2)  # it ends the reply and tells how it went
    p.stdout.close()
    p.wait()
    heat.join()
    return counted, ids, last, heat


class Quota(TestCase):
    def test_against_all_cores(self):
        group = Group()
        self.addCleanup(group.remove)
        path = write_temporary(self, json.dumps(POLICY), ".json")
        n_all, ids_all, _, heat_all = generate(group, "-t", "2")
        n, ids, end, heat = generate(group, "-t", "2", "--governor", path)
        print(f"{SECONDS} s: two threads {n_all} tokens, {heat_all.hot_s:.1f} s hot; "
              f"governor {n}, {heat.hot_s:.1f} s, {end['governor']['changes']} changes", file=sys.stderr)
        common = min(len(ids), len(ids_all))
        self.assertEqual(ids[:common], ids_all[:common])
        if heat_all.hot_s < 2:
            print("skipped: two threads never got hot: the machine is busy with other things", file=sys.stderr)
            group.remove()
            os._exit(77)
        self.assertGreaterEqual(end["governor"]["changes"], 2)
        self.assertLess(heat.hot_s, 0.85 * heat_all.hot_s)
        self.assertGreater(n, 0.9 * n_all)  # it has tried the two threads again, in vain, once or twice
        if SECONDS >= 60:
            self.assertGreater(n, 1.1 * n_all)
        self.assertLess(end["governor"]["changes"], 40)


if __name__ == "__main__":
    try:
        if len(os.sched_getaffinity(0)) < 2:
            raise OSError("it needs two CPUs")
        Group().remove()
    except OSError as why:
        print(f"skipped: {why}", file=sys.stderr)
        sys.exit(77)
    main_with_models(SMOLLM2)
