"""Reads small GGUF files for tests, independently of the program: keys, and tensors as (type, dimensions, bytes)."""
import struct

FORMATS = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
           14: "Q6_K", 20: "IQ4_NL", 23: "IQ4_XS", 30: "BF16"}
BLOCKS = {"F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24),
          "Q8_0": (32, 34), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
          "IQ4_NL": (32, 18), "IQ4_XS": (256, 136)}
NUMBERS = "BbHhIifB..QqdX"


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value[0]

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            element, count = self.take("I"), self.take("Q")
            return [self.value(element) for _ in range(count)]
        return self.take(NUMBERS[kind])


def read(path):
    with open(path, "rb") as f:
        r = Reader(f.read())
    assert r.data[:4] == b"GGUF"
    r.at = 4
    assert r.take("I") == 3
    n_tensors, n_keys = r.take("Q"), r.take("Q")
    keys, places = {}, []
    for _ in range(n_keys):
        key = r.text()
        assert key not in keys, key
        keys[key] = r.value(r.take("I"))
    for _ in range(n_tensors):
        name = r.text()
        dims = [r.take("Q") for _ in range(r.take("I"))]
        places.append((name, dims, FORMATS[r.take("I")], r.take("Q")))
    start = r.at + -r.at % keys.get("general.alignment", 32)
    tensors = {}
    for name, dims, form, offset in places:
        weights, size = BLOCKS[form]
        n = size
        for i, d in enumerate(dims):
            n *= d // weights if i == 0 else d
        assert offset % 32 == 0 and start + offset + n <= len(r.data)
        tensors[name] = (form, dims, r.data[start + offset:start + offset + n])
    return keys, tensors


def floats(tensor):
    assert tensor[0] == "F32"
    return struct.unpack(f"<{len(tensor[2]) // 4}f", tensor[2])
