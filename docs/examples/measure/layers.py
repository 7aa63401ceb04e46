"""Measure the layers of a PyTorch model and print them as a job that Muster plans.

    from layers import measure
    model = torch.nn.Sequential(...).cuda()     # or any list of modules, each fed with what the one before made
    print(measure(model, batch, name="mine", stages=4, microbatches=16))

    $ python train.py > job.yaml
    $ muster plan job.yaml --memory 80GiB --bandwidth 25Gbps

Give it one microbatch. Each layer runs alone: `warmup` times unseen, then `runs` times, of which the median counts. What a
layer keeps for its backward pass is what autograd saves, its parameters left out.
"""

import statistics
import time


def measure(model, batch, name="job", stages=2, microbatches=8, runs=10, warmup=3):
    """Run the layers one by one on a microbatch, and return the job."""
    import torch

    layers, x = [], batch
    for label, module in named(model):
        inputs = detached(torch, x)
        forward, backward = [], []
        for run in range(warmup + runs):
            fresh = detached(torch, inputs)
            kept = {}
            module.zero_grad(set_to_none=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: keep(kept, t), lambda t: t):
                begin = clock(torch)
                y = module(*fresh) if isinstance(fresh, tuple) else module(fresh)
                end = clock(torch)
            outputs = [t for t in tensors(torch, y) if t.requires_grad]
            gradients = [torch.ones_like(t) for t in outputs]
            start_back = clock(torch)
            if outputs:
                torch.autograd.backward(outputs, gradients)
            if run >= warmup:
                forward.append(end - begin)
                backward.append(clock(torch) - start_back)
        own = {p.data_ptr() for p in module.parameters()}
        layers.append({
            "name": label,
            "forward": statistics.median(forward),
            "backward": statistics.median(backward),
            "params": sum(size(p) for p in module.parameters()),
            "output": sum(size(t) for t in tensors(torch, y)),
            "activations": sum(n for at, n in kept.items() if at not in own),
        })
        x = detached(torch, y)
    return job(name, layers, stages, microbatches)


def job(name, layers, stages, microbatches):
    """Write a job with these layers; times are in seconds, sizes in bytes."""
    lines = [f"name: {name}", f"workers: {stages}", "pipeline:", f"  stages: {stages}", f"  microbatches: {microbatches}", "  layers:"]
    for layer in layers:
        sizes = ", ".join(f"{what}: {-(-layer[what] // 1024)}KiB" for what in ("params", "output", "activations"))
        quoted = '"' + layer["name"].replace("\\", "\\\\").replace('"', '\\"') + '"'
        lines.append(f"    - {{name: {quoted}, forward: {micros(layer['forward'])}us, backward: {micros(layer['backward'])}us, {sizes}}}")
    return "\n".join(lines)


def named(model):
    """The layers in the order in which they run, with their names."""
    if hasattr(model, "named_children"):
        return list(model.named_children())
    return [(f"{i} {type(module).__name__}", module) for i, module in enumerate(model)]


def tensors(torch, x):
    """All tensors in x, which may be a tuple."""
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for part in x for t in tensors(torch, part)] if isinstance(x, (tuple, list)) else []


def detached(torch, x):
    """x as a layer gets it from another device: the same figures, with a gradient to be sent back."""
    if isinstance(x, (tuple, list)):
        return tuple(detached(torch, part) for part in x)
    if isinstance(x, torch.Tensor):
        return x.detach().requires_grad_(x.is_floating_point())
    return x


def keep(kept, tensor):
    """Note what autograd saves, each piece of memory once."""
    kept[tensor.data_ptr()] = max(size(tensor), kept.get(tensor.data_ptr(), 0))
    return tensor


def clock(torch):
    """Now, in seconds, when the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def size(tensor):
    return tensor.numel() * tensor.element_size()


def micros(seconds):
    return max(0, round(seconds * 1e6))
