"""Loads a schedule as PyTorch's pipeline runtime does, trains one step of it by gloo processes,
and compares the loss with that of one process.

    python load.py FILE FORMAT RANKS STAGES MICROBATCHES

FORMAT is compute_only or compute_comms. The runtime's names are private (an underscore before
them): where a release has changed them, this fails and says so.
"""
import os
import re
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

WIDTH = 8


def layers(stages):
    torch.manual_seed(3)
    return [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in range(stages)]


def batch(microbatches):
    torch.manual_seed(4)
    return torch.randn(2 * microbatches, WIDTH), torch.randn(2 * microbatches, WIDTH)


def mine(file, rank):
    """The stages of a rank, from its row."""
    row = open(file).read().strip().split("\n")[rank]
    return sorted({int(stage) for stage in re.findall(r"(?:^|[,(;])(\d+)", row)})


def work(rank, file, form, ranks, stages, microbatches, port, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    parts, (x, y) = layers(stages), batch(microbatches)
    held = [PipelineStage(parts[s], s, stages, torch.device("cpu")) for s in mine(file, rank)]
    run = _PipelineScheduleRuntime(held, microbatches, loss_fn=torch.nn.MSELoss())
    run._load_csv(file, format=form)
    losses, args, named = [], [], {}
    if any(s.is_first for s in held):
        args.append(x)
    if any(s.is_last for s in held):
        named.update(target=y, losses=losses)
    run.step(*args, **named)
    if losses:
        open(out, "w").write(repr(float(sum(losses) / len(losses))))
    dist.destroy_process_group()


def main():
    file, form, (ranks, stages, microbatches) = sys.argv[1], sys.argv[2], map(int, sys.argv[3:6])
    x, y = batch(microbatches)
    want = float(torch.nn.functional.mse_loss(torch.nn.Sequential(*layers(stages))(x), y))
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "loss")
        mp.spawn(work, (file, form, ranks, stages, microbatches, 29000 + os.getpid() % 20000, out), nprocs=ranks)
        got = float(open(out).read())
    print(f"torch {torch.__version__}: one process {want!r}, {ranks} processes {got!r}")
    sys.exit(0 if abs(got - want) < 1e-5 else 1)


if __name__ == "__main__":
    main()
