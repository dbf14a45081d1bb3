"""Prints {execution provider: nodes} of an ONNX model as a session of ONNX Runtime assigns them.

    partition.py MODEL.onnx
"""
import collections
import json
import os
import sys

import onnxruntime


def main(path):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    counts = collections.Counter()
    for subgraph in session.get_provider_graph_assignment_info():
        counts[subgraph.ep_name] += len(subgraph.get_nodes())
    return counts


if __name__ == "__main__":
    answer = os.dup(1)  # ONNX Runtime may print
    os.dup2(2, 1)
    os.write(answer, json.dumps(main(sys.argv[1])).encode())
