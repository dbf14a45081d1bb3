"""The time of day jumps by a day, forward and back, at any moment of a run: texts, receipts, the queue, campaigns and rates are as ever,
because what is measured or waited for goes by the monotonic clock."""
import json
import math
import unittest

import subjects
from faults import Fault, main, pick

DAY = 86400
INF = 2**62


class Clocks(unittest.TestCase):
    def jumps(self, kind, most):
        """(subject, done) of runs whose clock jumps at a moment, in both directions."""
        with kind() as s:
            fault = Fault(["clock"])
            good = s.run(fault)
            fault.end()
            expected, state = s.result(good), s.state()
        self.assertGreater(fault.seen, 0)
        for number in pick(fault.seen, most):
            for jump in (DAY, -DAY):
                with kind() as s, self.subTest(subject=kind.name, number=number, jump=jump):
                    fault = Fault(["clock"], 1, number, INF, jump)
                    done = s.run(fault)
                    fault.end()
                    self.assertEqual((done.code, s.result(done)), (0, expected), done)
                    self.assertEqual(s.state(), state)
                    yield s, done

    def test_receipts(self):
        for s, _ in self.jumps(subjects.RunKept, 5):
            lines = s.read("receipts.jsonl").decode().splitlines()
            times = json.loads(lines[-1])["times"]
            for name, value in times.items():
                if name != "started_unix_ms":
                    self.assertTrue(0 <= value < 60000, times)

    def test_queue(self):
        for kind in (subjects.Hold, subjects.Drain, subjects.Decide):
            for _ in self.jumps(kind, 4):
                pass

    def test_campaign(self):
        for s, _ in self.jumps(subjects.Campaign, 4):
            status = subjects.execute(Status(s))
            self.assertEqual(status.code, 0, status)
            found = json.loads(status.out)
            self.assertEqual((found["state"], found["part"], found["tokens"]), ("done", 1, 300))
            for name in ("seconds", "tok_s"):
                if found.get(name) is not None:
                    self.assertTrue(0 < found[name] < 1e9 and math.isfinite(found[name]), found)
            self.assertLess(found["seconds"], 600, found)

    def test_server(self):
        """Before, in and after a request."""
        with subjects.Serve() as s:
            fault = Fault(["clock"])
            expected = s.run(fault)
            fault.end()
        for number in pick(fault.seen, 6):
            for jump in (DAY, -DAY):
                with Status.Serve() as s, self.subTest(number=number, jump=jump):
                    fault = Fault(["clock"], 1, number, INF, jump)
                    done = s.run(fault)
                    fault.end()
                    self.assertEqual((done.code, done.out), (0, expected.out), done)
                    self.assertTrue(0 <= s.uptime < 600, s.uptime)


class Status:
    """mica campaign status in another subject's folder."""
    stdin = b""

    def __init__(self, other):
        self.folder, self.env = other.folder, other.env

    def command(self):
        return ["campaign", "status", "--db", "c.db", "--format", "json"]

    class Serve(subjects.Serve):
        def converse(self, process, address):
            with subjects.urllib.request.urlopen(address + "/v1/mica/status", timeout=60) as f:
                self.uptime = json.load(f)["uptime_s"]
            return super().converse(process, address)


if __name__ == "__main__":
    main()
