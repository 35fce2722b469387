"""Audit a Python source tree with a parallel graph: `python -m examples.audit [PATH]`."""
