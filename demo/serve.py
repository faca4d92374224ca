"""A toy model server in one process: requests come in, are batched, decoded by
a small Transformer, and answered. Torch profiles it, and host spans say what
the loop was doing meanwhile.

    serve.py TORCH_DIR        (run by demo/run.sh under `shp run`)
"""

import random
import sys
import time

import torch
from torch.profiler import (ProfilerActivity, profile,
                            tensorboard_trace_handler)

import service_host_profiling as shp

STEPS = 40
WIDTH = 64


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(1000, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 128,
                                                 batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(WIDTH, 1000)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))[:, -1]


@shp.profile("receive")
def receive(source):
    time.sleep(0.0005)  # what a queue or a socket would cost
    return [[source.randrange(1000) for _ in range(source.randrange(4, 16))]
            for _ in range(source.randrange(1, 5))]


def build_batch(requests):
    longest = max(map(len, requests))
    return torch.tensor([r + [0] * (longest - len(r)) for r in requests])


def serve(model):
    source = random.Random(1)
    for step in range(STEPS):
        requests = receive(source)
        with shp.span("step", {"step": step, "requests": len(requests)}):
            with shp.span("build_batch"):
                batch = build_batch(requests)
            with shp.span("run_batch", {"tokens": batch.numel()}):
                logits = model(batch)
            with shp.span("sample"):
                torch.multinomial(torch.softmax(logits, -1), 1).tolist()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)  # a model this small gains nothing from more
    model = Model().eval()
    with torch.inference_mode(), profile(
            activities=[ProfilerActivity.CPU],
            on_trace_ready=tensorboard_trace_handler(sys.argv[1],
                                                     use_gzip=True)):
        serve(model)


if __name__ == "__main__":
    main()
