"""What docs/campaign.md says of items and shards, written a second time: which prompts a campaign asks, how long they are, and the hashes of its
shards, from the manifest alone."""
import hashlib
import json
import struct

MASK = 2**64 - 1


def splitmix(x):
    """(next state, number)"""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return x, z ^ (z >> 31)


class Xoshiro:
    def __init__(self, seed):
        self.s = []
        for _ in range(4):
            seed, z = splitmix(seed)
            self.s.append(z)

    def next(self):
        def turn(x, by):
            return ((x << by) | (x >> (64 - by))) & MASK

        s = self.s
        result = (turn((s[1] * 5) & MASK, 7) * 9) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turn(s[3], 45)
        return result


def length(choices, rng):
    choices = choices if isinstance(choices, list) else [choices]
    at = rng.next() % sum(c.get("weight", 1) for c in choices)
    for c in choices:
        if at < c.get("weight", 1):
            break
        at -= c.get("weight", 1)
    low, high = c.get("tokens", c.get("min")), c.get("tokens", c.get("max"))
    return low + rng.next() % (high - low + 1)


def items(manifest, n_prompts):
    """(index, prompt, prompt tokens, reply tokens) of each item, in order."""
    left, index = manifest["tokens"], 0
    while left:
        rng = Xoshiro(splitmix(manifest.get("seed", 1))[1] ^ index)
        prompt_n, reply_n = length(manifest["lengths"]["prompt"], rng), length(manifest["lengths"]["reply"], rng)
        prompt = rng.next() % n_prompts
        prompt_n = min(prompt_n, left - 1)
        reply_n = min(reply_n, left - prompt_n)
        reply_n += prompt_n + reply_n == left - 1
        yield index, prompt, prompt_n, reply_n
        left -= prompt_n + reply_n
        index += 1


def campaign_id(manifest, model_sha256):
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode() + b"\0" + model_sha256.encode()).hexdigest()


def shard(campaign, seq, its_items):
    """(id, input) of a shard."""
    h = hashlib.sha256(campaign.encode() + struct.pack("<q", seq))
    name = h.hexdigest()[:32]
    for item in its_items:
        h.update(struct.pack("<qQqq", *item))
    return name, h.hexdigest()


if __name__ == "__main__":
    print("not a test by itself: test_campaign.py uses it")
