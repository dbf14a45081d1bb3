"""Downloads from a server that cuts, stalls and lies: the cases dl-01, dl-03, dl-04, dl-06 and dl-08."""
import os
import signal
import time

from pulling import PullCase, main, read, sum_of, write


class Dl01WhenComplete(PullCase):
    """A part that is in fact complete is not asked for beyond its end for ever."""

    def after(self, part):
        server = self.serve()
        write(self.part, part)
        self.is_whole(self.pull_out(server, "ok"))
        return server.log()

    def test_dl_01_complete(self):
        self.assertEqual(self.after(self.data), [])

    def test_dl_01_one_byte_longer(self):
        self.assertLessEqual(len(self.after(self.data + b"x")), 3)

    def test_dl_01_complete_and_wrong(self):
        log = self.after(b"\0" + self.data[1:])
        self.assertLessEqual(len(log), 3)
        self.assertIsNone(log[-1]["range"])

    def test_dl_01_wrong_and_longer_where_the_length_is_known(self):
        server = self.serve()
        for part in (self.data + b"x", b"\0" + self.data[1:]):
            write(self.part, part)
            self.is_whole(self.pull(self.entry([server.url("ok")]), "-o", self.out))
            write(self.part, part)  # beside a file that is right, nothing is asked for, and the part goes
            self.is_whole(self.pull(self.entry([server.url("ok")]), "-o", self.out))
            os.unlink(self.out)
        self.assertEqual([x["range"] for x in server.log()], [None, None])


class Dl03WrongRange(PullCase):
    """What the server says that it sends is compared with what was asked for."""

    def test_dl_03_bad_offset(self):
        server = self.serve()
        write(self.part, self.data[:90000])
        self.is_whole(self.pull_out(server, "badoffset"))
        self.assertEqual([x["range"] for x in server.log()], ["bytes=90000-", None])

    def test_dl_03_short_range(self):
        server = self.serve()
        write(self.part, self.data[:90000])
        done = self.pull_out(server, "shortrange", "--retries", "1")
        log = server.log()
        self.assertEqual(log[0]["range"], "bytes=90000-")
        self.assertEqual(log[1]["range"], f"bytes={len(self.data) - 1}-")  # the last byte never comes in this mode
        self.is_refused(done, "byte")
        self.assertEqual(read(self.part), self.data[:-1])
        self.is_whole(self.pull_out(server, "ok"))

    def test_dl_03_416_for_every_range(self):
        server = self.serve()
        write(self.part, self.data[:90000])
        self.is_whole(self.pull_out(server, "range416"))

    def test_dl_03_ranges_are_ignored(self):
        server = self.serve()
        write(self.part, self.data[:90000])
        self.is_whole(self.pull_out(server, "norange"))


class Dl04Cut(PullCase):
    """An early end is not the end of the file."""

    def test_dl_04_short(self):
        server = self.serve()
        done = self.pull_out(server, "short", "--retries", "1")
        self.is_refused(done, "byte")
        self.assertEqual(read(self.part), self.data[:-1])  # of the last byte the server sends half: none
        ranges = [x["range"] for x in server.log()]
        self.assertEqual(ranges[:3], [None, f"bytes={len(self.data) // 2}-", f"bytes={3 * len(self.data) // 4}-"])
        self.assertEqual({x["if_range"] for x in server.log()[1:]}, {'"v1"'})
        self.is_whole(self.pull_out(server, "ok"))

    def test_dl_04_wrong_length(self):
        server = self.serve()
        self.is_whole(self.pull_out(server, "wronglength"))

    def test_dl_04_wrong_length_without_a_checksum(self):
        server = self.serve()
        self.is_whole(self.pull(server.url("wronglength"), "-o", self.out))
        self.assertEqual(server.log()[-1]["range"], f"bytes={len(self.data)}-")  # 416: that is the end

    def test_dl_04_busy(self):
        server = self.serve()
        start = time.monotonic()
        self.is_whole(self.pull_out(server, "e500"))
        self.assertEqual(len(server.log()), 3)
        self.assertGreater(time.monotonic() - start, 1.4)  # half a second, then one

    def test_dl_04_busy_for_longer_than_we_try(self):
        server = self.serve()
        self.is_refused(self.pull_out(server, "e500", "--retries", "1"), "500")
        self.assertEqual(len(server.log()), 2)

    def test_dl_04_no_length(self):
        server = self.serve()
        self.is_whole(self.pull_out(server, "nolength"))

    def kill_half_way(self, server, number):
        process = self.start("pull", server.url("slow"), "--sha256", self.sum, "-o", self.out)
        self.wait_for_size(self.part, len(self.data) // 2)
        self.assertFalse(os.path.exists(self.out))
        process.send_signal(number)
        process.wait()
        return process

    def test_dl_04_killed(self):
        server = self.serve()
        self.kill_half_way(server, signal.SIGKILL)
        size = os.path.getsize(self.part)
        self.assertLess(size, len(self.data))
        self.assertEqual(read(self.part), self.data[:size])
        self.is_whole(self.pull_out(server, "slow"))
        last = server.log()[-1]
        self.assertEqual((last["range"], last["if_range"]), (f"bytes={size}-", '"v1"'))

    def test_dl_04_interrupted(self):
        server = self.serve()
        process = self.kill_half_way(server, signal.SIGINT)
        self.assertEqual(process.returncode, 130)
        self.assertIn("the same command goes on there", process.stderr.read().decode())
        self.is_whole(self.pull_out(server, "slow"))
        self.assertIsNotNone(server.log()[-1]["range"])


class Dl06Redirect(PullCase):
    """The token is for the host that it was given for."""

    def test_dl_06_token_stays_with_its_host(self):
        server = self.serve()
        self.is_whole(self.pull_out(server, "redirect", env=self.env(MICA_PULL_TOKEN="secret")))
        log = server.log()
        self.assertEqual([x["path"] for x in log], ["/redirect/name.gguf", "/ok/name.gguf"])
        self.assertEqual(log[0]["auth"], "Bearer secret")
        self.assertIsNone(log[1]["auth"])
        self.assertTrue(log[1]["host"].startswith("localhost"), log)

    def test_dl_06_token_from_a_file(self):
        server = self.serve()
        token = write(self.path("token"), b"of a file\n")
        self.is_whole(self.pull_out(server, "ok", "--token-file", token, env=self.env(MICA_PULL_TOKEN="secret")))
        self.assertEqual(server.log()[0]["auth"], "Bearer of a file")

    def test_dl_06_loop(self):
        server = self.serve()
        self.is_refused(self.pull_out(server, "redirectloop"), "more than 10 times")
        self.assertEqual(len(server.log()), 11)

    def test_dl_06_token_in_the_clear(self):
        done = self.pull("http://host.invalid/x.gguf", "-o", self.out, env=self.env(MICA_PULL_TOKEN="secret"))
        self.is_refused(done, "https")
        self.assertNotIn("secret", done.message)


class Dl08Changed(PullCase):
    """Two versions of a file are not joined."""

    def setUp(self):
        super().setUp()
        self.second = bytes(b ^ 1 for b in self.data)

    def part_of_first(self, server):
        """As a pull leaves it that was killed; and the server has its second version from now on."""
        url = server.url("etagchange")
        write(self.part, self.data[:90000])
        write(self.part + ".from", f'{url}\n"v1"\n'.encode())
        self.assertEqual(server.get("/etagchange/name.gguf"), self.data)
        return url

    def test_dl_08_second_version_was_wanted(self):
        server = self.serve()
        url = self.part_of_first(server)
        self.is_whole(self.pull(url, "--sha256", sum_of(self.second), "-o", self.out), self.second)
        self.assertEqual(server.log()[-1]["if_range"], '"v1"')
        self.assertEqual(len(server.log()), 2)

    def test_dl_08_without_a_checksum(self):
        server = self.serve()
        self.is_whole(self.pull(self.part_of_first(server), "-o", self.out), self.second)

    def test_dl_08_first_version_was_wanted(self):
        server = self.serve()
        done = self.pull(self.part_of_first(server), "--sha256", self.sum, "-o", self.out)
        self.is_refused(done, "another file", self.sum[:16])

    def test_dl_08_part_of_another_address(self):
        server = self.serve()
        process = self.start("pull", server.url("slow"), "--sha256", self.sum, "-o", self.out)
        self.wait_for_size(self.part, 90000)
        process.kill()
        process.wait()
        server.get("/etagchange/name.gguf")
        self.is_whole(self.pull(server.url("etagchange"), "--sha256", sum_of(self.second), "-o", self.out), self.second)

    def test_dl_08_part_of_unknown_origin_and_no_checksum(self):
        server = self.serve()
        write(self.part, b"something else")
        self.is_whole(self.pull(server.url("ok"), "-o", self.out))
        self.assertEqual([x["range"] for x in server.log()], [None])

    def test_dl_08_two_at_once(self):
        server = self.serve()
        first = self.start("pull", server.url("slow"), "--sha256", self.sum, "-o", self.out)
        self.wait_for_size(self.part, 1)
        second = self.pull_out(server, "ok")
        self.is_whole(second)
        self.assertIn("waiting for another", second.message)
        self.assertEqual(first.wait(), 0)
        self.assertEqual(len(server.log()), 1)  # the second found the work done


if __name__ == "__main__":
    main()
