#!/usr/bin/env python3
"""A whole scheduler as a script: the jobs that were served least run, and take the
devices of those that were served more (least attained service, docs/external.md).

    muster simulate --strategy script:docs/examples/external/whole_scheduler.py
"""
import json
import sys

LEVEL_S = 3600  # service is compared in steps of an hour, or jobs would swap all the time


def fits(job, free):
    """The device model with the most left of what the job needs, and what it needs."""
    need = job["workers"] * job["devices_per_worker"]
    names = [n for n in job.get("models", free) if free.get(n, 0) >= need]
    return (max(names, key=lambda n: (free[n], n)) if names else None), need


def decide(question):
    free = {m["name"]: m["devices"] for m in question["models"]}
    wishes = []
    for job in sorted(question["jobs"], key=lambda j: (j["service_device_s"] // LEVEL_S, j["id"])):
        model, need = fits(job, free)
        if job["run"] and free.get(job["run"]["model"], 0) >= need:
            model = job["run"]["model"]  # it stays where it is
        if model is not None:
            free[model] -= need
            wishes.append({"job": job["id"], "workers": job["workers"], "models": [model]})
    return {"wishes": wishes, "again_s": 600}


print(json.dumps({"hello": "least-served", "protocol": 1}), flush=True)
for line in sys.stdin:
    print(json.dumps(decide(json.loads(line))), flush=True)
