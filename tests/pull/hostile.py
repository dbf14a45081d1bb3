"""A server for what the cases' server does not do, in a thread of the test: silence, limited ranges, other validators, lies
about chunks, TLS. GET /MODE/name; requests are noted as (path, headers)."""
import http.server
import socketserver
import ssl
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, body=b"", length=None, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # the client has seen enough

    def ranged(self, data, **headers):
        asked = self.headers.get("Range")
        start = int(asked.split("=")[1].rstrip("-")) if asked else 0
        if asked:
            self.answer(206, data[start:], Content_Range=f"bytes {start}-{len(data) - 1}/{len(data)}", **headers)
        else:
            self.answer(200, data, **headers)

    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers.items())))
        mode = self.path.split("/")[1]
        getattr(self, "mode_" + mode, self.mode_ok)()

    def mode_ok(self):
        self.ranged(self.server.data, ETag='"a"')

    def mode_stall(self):
        """Half of it, and then nothing for longer than anybody waits."""
        data = self.server.data
        self.answer(200, data[:len(data) // 2], length=len(data), ETag='"a"')
        self.wfile.flush()
        self.server.done.wait(20)

    def mode_limited(self):
        """Answers to ranges have at most 50,000 bytes, and the total is not told before the last."""
        data = self.server.data
        asked = self.headers.get("Range")
        if not asked:
            self.answer(200, data[:50000], length=len(data), ETag='"a"')
            self.close_connection = True
            return
        start = int(asked.split("=")[1].rstrip("-"))
        if start >= len(data):
            self.answer(416, Content_Range=f"bytes */{len(data)}")
            return
        end = min(start + 50000, len(data))
        self.answer(206, data[start:end], Content_Range=f"bytes {start}-{end - 1}/*", ETag='"a"')

    def mode_weak(self):
        """The first answer breaks off; then the file is another one, and the tag is a weak one that says so."""
        first = len([1 for path, _ in self.server.seen if "/weak/" in path]) == 1
        data = self.server.data if first else self.server.other
        if first:
            self.answer(200, data[:90000], length=len(data), ETag='W/"1"')
            self.close_connection = True
        else:
            self.ranged(data, ETag='W/"2"')

    def mode_dated(self):
        """No tag, but a date, which If-Range may have."""
        first = len([1 for path, _ in self.server.seen if "/dated/" in path]) == 1
        data = self.server.data
        when = {"Last_Modified": "Tue, 01 Jul 2025 10:00:00 GMT"}
        if first:
            self.answer(200, data[:90000], length=len(data), **when)
            self.close_connection = True
        else:
            self.ranged(data, **when)

    def mode_tagged(self):
        """Does not heed If-Range, but tells another tag."""
        first = len([1 for path, _ in self.server.seen if "/tagged/" in path]) == 1
        data = self.server.data if first else self.server.other
        if first:
            self.answer(200, data[:90000], length=len(data), ETag='"1"')
            self.close_connection = True
        else:
            self.ranged(data, ETag='"2"')

    def mode_mended(self):
        """The second chunk is wrong the first time."""
        first = len([1 for path, _ in self.server.seen if "/mended/" in path]) == 1
        data = bytearray(self.server.data)
        if first:
            data[70000] ^= 1
        self.ranged(bytes(data), ETag='"a"')

    def mode_gzip(self):
        self.ranged(self.server.data, Content_Encoding="gzip")

    def mode_html(self):
        self.answer(200, b"<html>" + b" " * 500, Content_Type="text/html; charset=utf-8")

    def mode_bomb(self):
        """An error page without an end."""
        self.send_response(404)
        self.end_headers()
        try:
            for _ in range(2000):
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.server.bomb_cut = True
        self.close_connection = True

    def mode_retry(self):
        first = len([1 for path, _ in self.server.seen if "/retry/" in path]) == 1
        if first:
            self.answer(429, Retry_After="2")
        else:
            self.mode_ok()

    def mode_forbidden(self):
        self.answer(403)

    def mode_down(self):
        self.answer(302, Location=self.server.other_url)

    def mode_farther(self):
        self.answer(302, Location="file:///etc/hostname")

    def mode_headers(self):
        """Fields that are long, binary and senseless."""
        self.send_response(200)
        self.send_header("ETag", '"' + "x" * 3000 + '"')
        self.wfile.write(b"".join(self._headers_buffer) + b"Last-Modified: \x01\x02\xff\r\nContent-Range: bytes 9-1/0\r\n")
        self._headers_buffer = []
        self.send_header("Content-Length", str(len(self.server.data)))
        self.end_headers()
        self.wfile.write(self.server.data)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class Hostile:
    def __init__(self, test, data, other=b"", tls=None):
        """tls: (certificate, key) files."""
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.data, self.server.other, self.server.seen, self.server.done = data, other, [], threading.Event()
        self.server.bomb_cut, self.server.other_url = False, ""
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if tls else "http"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        test.addCleanup(self.stop)

    def stop(self):
        self.server.done.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, mode, name="name.gguf"):
        return f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}/{mode}/{name}"

    @property
    def ranges(self):
        return [headers.get("Range") for _, headers in self.server.seen]

    @property
    def if_ranges(self):
        return [headers.get("If-Range") for _, headers in self.server.seen]

    def wait_for(self, what, seconds=10):
        end = time.monotonic() + seconds
        while not what(self.server) and time.monotonic() < end:
            time.sleep(0.02)
        return what(self.server)
