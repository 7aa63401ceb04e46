"""Answers a question of the ask strategy: who starts, and where.

Reads one JSON object from standard input and writes one to standard output:
the shortest queue first, each gang on the nodes with the fewest free devices
that hold it, so that large holes are kept for large gangs.
"""

import json
import sys


def place(job, free):
    """Return [[node, workers], ...] for a gang, or None if there is no room."""
    left, on = job["workers"], []
    for node in sorted(free, key=lambda n: (free[n], n)):
        workers = min(left, free[node] // max(1, job["devices"]))
        if workers > 0:
            on.append([node, workers])
            left -= workers
    return on if left == 0 else None


def decide(question):
    """Return the operations that start every job there is room for."""
    free = {n["node"]: n["free"] for n in question["nodes"]}
    ops = []
    for job in sorted(question["jobs"], key=lambda j: (j["workers"], j["job"])):
        on = place(job, free)
        if on is None:
            continue
        for node, workers in on:
            free[node] -= workers * job["devices"]
        ops.append({"op": "start", "job": job["job"], "on": on})
    return {"id": question["id"], "ops": ops}


if __name__ == "__main__":
    json.dump(decide(json.load(sys.stdin)), sys.stdout)
