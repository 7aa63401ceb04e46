#!/usr/bin/env python3
"""Shortest remaining work first, as a script beside Muster (docs/external.md).

    muster simulate --strategy script:docs/examples/external/shortest_first.py+oracle
    muster up --strategy script:docs/examples/external/shortest_first.py

It reads one question a line from its standard input and answers each with one line.
Whatever else it has to say belongs on its standard error.
"""
import json
import sys


def work_left(job):
    """Device seconds that are left; a job of unknown length goes last."""
    if job["left_s"] is None:
        return float("inf")
    return job["left_s"] * job["workers"] * job["devices_per_worker"]


def say(line):
    print(json.dumps(line), flush=True)


def main():
    say({"hello": "shortest-first", "protocol": 1})
    for line in sys.stdin:
        question = json.loads(line)
        jobs = sorted(question["jobs"], key=lambda job: (work_left(job), job["id"]))
        say({"order": [job["id"] for job in jobs if job["run"] is None]})


if __name__ == "__main__":
    main()
