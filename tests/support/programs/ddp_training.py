"""A small real training in two processes: torch.distributed over gloo, DDP,
torch.profiler, and host spans by attach_torch_profiler.

    ddp_training.py ROOT [STEPS]

leaves ROOT/torch/*.pt.trace.json.gz, ROOT/host/HOST_TRACE/*.jsonl and, a rank,
ROOT/brackets.RANK.json: for each span with a record_function twin, in order,
the width in ns of the bracket that holds both starts, and of that which holds
both ends, as CLOCK_MONOTONIC measured them on the spot.
"""

import json
import pathlib
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import (ProfilerActivity, profile, record_function,
                            tensorboard_trace_handler)

import service_host_profiling as shp

NAMES = ("fetch", "forward", "loss", "backward", "optimize")
TWINS = ("fetch", "forward", "optimize")
now = time.monotonic_ns


class Twin:
    """A host span and a record_function that start and end together; which of
    them is outside alternates."""

    def __init__(self, brackets):
        self.brackets = brackets
        self.outside = False

    def __call__(self, name, work):
        self.outside = not self.outside
        annotation = record_function(name)
        if self.outside:
            before = now()
            span = shp.span_start(name)
            annotation.__enter__()
            started = now()
            result = work()
            ending = now()
            annotation.__exit__(None, None, None)
            shp.span_end(span)
        else:
            before = now()
            annotation.__enter__()
            span = shp.span_start(name)
            started = now()
            result = work()
            ending = now()
            shp.span_end(span)
            annotation.__exit__(None, None, None)
        ended = now()
        self.brackets.append({"name": name, "outside": self.outside,
                              "start_ns": started - before,
                              "end_ns": ended - ending})
        return result


def alone(name, work):
    span = shp.span_start(name, {"twin": False})
    result = work()
    shp.span_end(span)
    return result


def train(rank, steps, twin):
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss()
    for _ in range(steps):
        batch, labels = twin("fetch", lambda: (
            torch.randn(32, 64), torch.randint(0, 8, (32,))))
        output = twin("forward", lambda: model(batch))
        loss = alone("loss", lambda: criterion(output, labels))
        alone("backward", loss.backward)
        twin("optimize", lambda: (optimizer.step(), optimizer.zero_grad()))


def worker(rank, root, steps, rendezvous):
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}",
                            rank=rank, world_size=2)
    torch.set_num_threads(1)
    root = pathlib.Path(root)
    brackets = []
    binding = shp.attach_torch_profiler(root / "host")
    binding.start()
    with profile(activities=[ProfilerActivity.CPU],
                 on_trace_ready=tensorboard_trace_handler(
                     str(root / "torch"), worker_name=f"rank{rank}",
                     use_gzip=True)):
        train(rank, steps, Twin(brackets))
    shp.stop()
    binding.archive(root / "host")
    (root / f"brackets.{rank}.json").write_text(json.dumps(brackets))
    dist.destroy_process_group()


if __name__ == "__main__":
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (sys.argv[1], steps, folder + "/rendezvous"),
                 nprocs=2)
