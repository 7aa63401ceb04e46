"""Loads schedules as PyTorch's pipeline runtime does, trains some steps of each by gloo
processes, and compares losses and weights with those of one process.

    python load.py FOLDER

FOLDER has files NAME.compute_only.csv and NAME.compute_comms.csv. A line is printed of each:
ok, skipped or FAILED. The runtime's names are private (an underscore before them): where a
release has changed them, this fails and says so.
"""
import os
import re
import sys
import tempfile
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage, schedules

WIDTH, STEPS, RATE = 8, 3, 0.5
CELL = re.compile(r"(\d+)(F|B|I|W|SEND_F|SEND_B|RECV_F|RECV_B)(\d+)")


class Plan:
    """What a file says of itself: who has which stage, and how many microbatches there are."""

    def __init__(self, file):
        self.file, self.format = file, file.split(".")[-2]
        with open(file) as f:
            self.text = f.read()
        rows = [CELL.findall(row) for row in self.text.strip().split("\n")]
        self.held = [sorted({int(stage) for stage, _, _ in row}) for row in rows]
        self.ranks = len(rows)
        self.stages = 1 + max(stage for held in self.held for stage in held)
        self.microbatches = 1 + max(int(micro) for row in rows for _, _, micro in row)
        self.rank_of = {stage: rank for rank, held in enumerate(self.held) for stage in held}


def model(stages):
    torch.manual_seed(3)
    return [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in range(stages)]


def batches(plan):
    torch.manual_seed(4)
    return [[torch.randn(2 * plan.microbatches, WIDTH) for _ in "xy"] for _ in range(STEPS)]


def update(parts, share):
    """A step of gradient descent, where gradients are of that share of the loss."""
    with torch.no_grad():
        for part in parts:
            for weight in part.parameters():
                weight -= RATE * share * weight.grad
                weight.grad = None


def one_process(plan):
    """The losses of a model that is in one piece, and its weights afterwards."""
    parts, losses = model(plan.stages), []
    for x, y in batches(plan):
        loss = torch.nn.functional.mse_loss(torch.nn.Sequential(*parts)(x), y)
        loss.backward()
        losses.append(loss.item())
        update(parts, 1)
    return losses, parts


def pipelined(plan, rank):
    """The losses that a rank sees, which is those of the last stage, and its stages afterwards."""
    parts = model(plan.stages)
    # With shapes given: PyTorch 2.6 asks for them along ranks, and not along stages.
    shape = torch.empty(2, WIDTH, requires_grad=True)
    held = [PipelineStage(parts[s], s, plan.stages, torch.device("cpu"), input_args=shape, output_args=shape) for s in plan.held[rank]]
    run = schedules._PipelineScheduleRuntime(held, plan.microbatches, loss_fn=torch.nn.MSELoss())
    # Before the file is loaded: stages by turns are what PyTorch assumes.
    for who in [run, *held]:
        who.stage_index_to_group_rank = plan.rank_of
    run._load_csv(plan.file, format=plan.format)
    share = 1 if getattr(run, "scale_grads", False) else 1 / plan.microbatches
    means = []
    for x, y in batches(plan):
        losses, args, named = [], [], {}
        if any(stage.is_first for stage in held):
            args.append(x)
        if any(stage.is_last for stage in held):
            named.update(target=y, losses=losses)
        run.step(*args, **named)
        if losses:
            means.append(sum(loss.item() for loss in losses) / len(losses))
        update([parts[s] for s in plan.held[rank]], share)
    return means, parts


def work(rank, plan, meet, out):
    try:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=plan.ranks, timeout=timedelta(seconds=60))
        got, parts = pipelined(plan, rank)
        want, whole = one_process(plan)
        torch.testing.assert_close(got, want if plan.rank_of[plan.stages - 1] == rank else [])
        for s in plan.held[rank]:
            for mine, theirs in zip(parts[s].parameters(), whole[s].parameters()):
                torch.testing.assert_close(mine, theirs, msg=lambda text: f"weights of stage {s}: {text}")
        if got:
            out.put(f"losses {got}, one process {want}")
        dist.destroy_process_group()
    except BaseException:
        out.put(f"rank {rank}: {traceback.format_exc()}")
        os._exit(1)  # the others may wait for this one for ever


def load(plan, meet):
    """Says how it went; processes find each other by the file meet."""
    for cell in "OVERLAP_F_B", "REDUCE_GRAD":
        if cell in plan.text and not hasattr(schedules, cell):
            return f"skipped: this release has no {cell}"
    if plan.format == "compute_comms" and hasattr(schedules, "REDUCE_GRAD") and "REDUCE_GRAD" not in plan.text:
        return "skipped: this release scales gradients at a REDUCE_GRAD alone"
    # Forked, so that PyTorch is imported once; nothing was computed here that a fork would break.
    forks = mp.get_context("fork")
    out = forks.SimpleQueue()
    workers = [forks.Process(target=work, args=(rank, plan, meet, out)) for rank in range(plan.ranks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(90)
        if worker.exitcode != 0:
            break
    failed = any(worker.exitcode != 0 for worker in workers)
    for worker in workers:
        worker.kill()
    said = "no word" if out.empty() else out.get()
    return f"FAILED\n{said}" if failed else f"ok: {plan.ranks} processes, {plan.stages} stages, {said}"


def main():
    print("torch", torch.__version__)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in sorted(os.listdir(sys.argv[1])):
            results.append(load(Plan(os.path.join(sys.argv[1], name)), os.path.join(scratch, name)))
            print(f"{name}: {results[-1]}", flush=True)
    sys.exit(any(result.startswith("FAILED") for result in results))


if __name__ == "__main__":
    main()
