"""litert-torch imports TensorFlow's schema module without declaring TensorFlow; gives it the same module of ai-edge-litert.

    schema_shim.py SITE_PACKAGES
"""
import os
import sys

folder = sys.argv[1]
for part in ("tensorflow", "lite", "python"):
    folder = os.path.join(folder, part)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "__init__.py"), "w", encoding="ascii"):
        pass
with open(os.path.join(folder, "schema_py_generated.py"), "w", encoding="ascii") as f:
    f.write("from ai_edge_litert.schema_py_generated import *  # noqa\n")
