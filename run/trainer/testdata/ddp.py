"""A plain PyTorch DistributedDataParallel script on CPUs.

It knows nothing of Muster but two optional things: it appends progress lines where
MUSTER_PROGRESS says, and it saves and exits with 143 on SIGTERM, as any script that
runs on preemptible machines does. Start it with torchrun, or with RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT set.
"""

import argparse
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SIGNALS = {"stop": False}


def report(line):
    path = os.environ.get("MUSTER_PROGRESS")
    if path and dist.get_rank() == 0:
        with open(path, "a") as f:
            f.write(line + "\n")


def checkpoint_path():
    folder = os.environ.get("MUSTER_CHECKPOINT_DIR")
    return os.path.join(folder, "ddp.pt") if folder else None


def save(step, model, optimizer):
    path = checkpoint_path()
    if path is None:
        return
    if dist.get_rank() == 0:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        state = {"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        with open(path + ".tmp", "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(path + ".tmp", path)
        report(f"checkpoint step={step} path={path}")
    dist.barrier()


def restore(model, optimizer):
    path = checkpoint_path()
    if path is None or not os.path.exists(path):
        return 0
    report("phase name=restore")
    state = torch.load(path, map_location="cpu")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def batch_for(step, size, rank, world):
    """The global batch depends on the step only; each rank takes its part."""
    generator = torch.Generator().manual_seed(1000 + step)
    x = torch.randn(size, 32, generator=generator)
    y = torch.sin(x.sum(dim=1, keepdim=True)) + 0.5 * x[:, :1]
    return x[rank::world], y[rank::world]


def stop_everywhere():
    """All ranks learn whether any of them was asked to stop."""
    flag = torch.tensor([1.0 if SIGNALS["stop"] else 0.0])
    dist.all_reduce(flag)
    return flag.item() > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--checkpoint-every", type=int, default=50)
    parser.add_argument("--step-delay", type=float, default=0.0, help="least seconds per step")
    args = parser.parse_args()

    def on_term(signum, frame):
        SIGNALS["stop"] = True

    signal.signal(signal.SIGTERM, on_term)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    os.environ.setdefault("USE_LIBUV", "0")  # Debian's PyTorch 2 is built without it
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    net = torch.nn.Sequential(
        torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1)
    )
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    first = restore(model, optimizer)
    dist.barrier()

    report("phase name=train")
    stopped = False
    for step in range(first + 1, args.steps + 1):
        begin = time.monotonic()
        x, y = batch_for(step, args.batch, rank, world)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

        mean = loss.detach().clone()
        dist.all_reduce(mean)
        report(f"step={step} of={args.steps} loss={mean.item() / world:.6f} samples={step * args.batch}")
        stopped = stop_everywhere()
        if stopped or step % args.checkpoint_every == 0 or step == args.steps:
            save(step, model, optimizer)
        if stopped:
            break
        time.sleep(max(0.0, args.step_delay - (time.monotonic() - begin)))

    # Not by sys.exit: taking the process group down at exit, PyTorch 1.13 now and then waits
    # for ever, with the interpreter's lock held, for a thread that wants that lock.
    sys.stdout.flush()
    os._exit(143 if stopped else 0)


if __name__ == "__main__":
    main()
