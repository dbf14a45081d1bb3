"""Writes a registry file for mica pull: what a model's file is, and where it can be fetched.

    registry-entry FILE URL... [--name NAME] [--licence TEXT] [--description TEXT] [--chunk-bytes N] > NAME.json

With chunk hashes (the default) a download that was damaged on the way fetches only the damaged chunk again.
"""
import argparse
import hashlib
import json
import os
import sys

from fetch_common import Failure, run

CHUNKS = 65536


def hashes(path, chunk_bytes):
    """SHA-256 of the whole, and of each chunk."""
    whole, chunks = hashlib.sha256(), []
    with open(path, "rb") as f:
        for start in range(0, os.path.getsize(path), chunk_bytes or 1 << 22):
            block = f.read(chunk_bytes or 1 << 22)
            whole.update(block)
            if chunk_bytes:
                chunks.append(hashlib.sha256(block).hexdigest())
    return whole.hexdigest(), chunks


def main(arguments):
    parser = argparse.ArgumentParser(prog="registry-entry", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--name", help="default: the file's name without .gguf")
    parser.add_argument("--licence")
    parser.add_argument("--description")
    parser.add_argument("--chunk-bytes", type=int, default=4 << 20,
                        help="from 65536 to 2^30; 0: no hashes of chunks; default: 4 MiB")
    o = parser.parse_args(arguments)
    size = os.path.getsize(o.file)
    if o.chunk_bytes and not 65536 <= o.chunk_bytes <= 1 << 30:
        raise Failure(f"--chunk-bytes {o.chunk_bytes} is not from 65536 to {1 << 30}")
    if o.chunk_bytes and (size + o.chunk_bytes - 1) // o.chunk_bytes > CHUNKS:
        raise Failure(f"{o.file} has more than {CHUNKS} such chunks: give a larger --chunk-bytes")
    name = o.name or os.path.basename(o.file)[:-5 if o.file.endswith(".gguf") else None]
    digest, chunks = hashes(o.file, o.chunk_bytes)
    entry = {"schema": 1, "name": name, "description": o.description, "licence": o.licence, "urls": o.urls, "bytes": size,
             "sha256": digest}
    if chunks:
        entry.update(chunk_bytes=o.chunk_bytes, chunks=chunks)
    json.dump({k: v for k, v in entry.items() if v is not None}, sys.stdout, indent=2, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    run("registry-entry", main)
