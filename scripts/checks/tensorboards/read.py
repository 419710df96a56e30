"""Compares the event files of a folder, as TensorBoard reads them, with its metrics.jsonl."""

import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

SCALARS = {
    "reward/mean": "reward_mean",
    "reward/solved": "solved",
    "reward/advantage_std": "advantage_std",
    "policy/entropy": "entropy",
    "policy/kl_behaviour": "kl_behaviour",
    "policy/clipped": "clipped",
    "policy/effective_samples": "effective_samples",
    "policy/ratio_max": "ratio_max",
    "update/gradient_norm": "gradient_norm",
    "update/learning_rate": "learning_rate",
    "update/loss": "loss",
    "update/trained_tokens": "trained_tokens",
    "time/waited_seconds": "waited_seconds",
    "time/trained_seconds": "trained_seconds",
    "groups/used": "groups",
    "groups/learned": "learned",
    "groups/yield": "yield",
    "groups/waiting": "waiting",
    "groups/peers": "peers",
}

folder = pathlib.Path(sys.argv[1])
lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
steps = {line["version"]: line for line in lines if line["type"] == "step"}
assert len(steps) == sum(line["type"] == "step" for line in lines), "a step has two lines"
events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0}).Reload()

read = {}
for tag in events.Tags()["scalars"]:
    read[tag] = {e.step: e.value for e in events.Scalars(tag)}
for tag in events.Tags()["histograms"]:
    read[tag] = {e.step: sum(e.histogram_value.bucket) for e in events.Histograms(tag)}

compared = 0


def same(tag, version, want):
    global compared
    got = read[tag][version]
    assert math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-9), f"{tag} of version {version} is {got}, want {want}"
    compared += 1


for version, step in steps.items():
    for tag, field in SCALARS.items():
        if version in read.get(tag, {}):
            same(tag, version, step[field])
        else:
            assert step["trained_tokens"] == 0, f"{tag} of version {version} is missing"
    for part in step["environments"]:
        if part["rollouts"]:
            same(f"environment/{part['name']}/solved", version, part["solved"])
        for agent in part["agents"]:
            if agent["rollouts"]:
                same(f"agent/{part['name']}/{agent['name']}/calls", version, agent["calls"])
    if step["lags"]:
        same("groups/lag", version, sum(step["lags"].values()))
    for kind in ("sampled", "trained"):
        if step[f"{kind}_lengths"]:
            same(f"lengths/{kind}", version, sum(step[f"{kind}_lengths"]))
for line in lines:
    if line["type"] == "evaluation":
        same("held_out/" + line["purpose"].removeprefix("evaluate-"), line["version"], line["success"])
assert compared > 20 * min(len(steps), 2), f"only {compared} values"
print(json.dumps({"steps": len(steps), "curves": len(read), "values": compared}))
