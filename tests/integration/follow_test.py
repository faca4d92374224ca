"""SHP_FOLLOW=torch: host files beside the traces that a program exports, which
knows nothing of us; and `shp merge-dir` over them as the whole rest."""

import json

from shp_testing import (Case, HostFile, SHP, clean_environment, main, run,
                         torch_python, traced_environment)

PROGRAM = r"""
import sys, torch
from torch.profiler import (ProfilerActivity, profile, schedule,
                            tensorboard_trace_handler)
out = sys.argv[1]
import os
os.makedirs(out + "/one")
def step():
    return (torch.ones(8, 8) @ torch.ones(8, 8)).norm()

with profile(activities=[ProfilerActivity.CPU]) as p:
    step()
p.export_chrome_trace(out + "/one/trace.json")

with profile(activities=[ProfilerActivity.CPU],
             schedule=schedule(wait=1, warmup=1, active=1, repeat=2),
             on_trace_ready=tensorboard_trace_handler(out + "/many")) as p:
    for _ in range(6):
        step()
        p.step()

p = profile(activities=[ProfilerActivity.CPU])
p.start(); p.stop()
try:
    p.export_chrome_trace("/proc/nowhere/trace.json")
except Exception as error:
    print("raised", type(error).__name__)
print("done")
"""


class Follow(Case):
    def setUp(self):
        super().setUp()
        self.python = torch_python()

    def test_host_files_lie_beside_the_traces(self):
        (self.folder / "list.txt").write_text("torch._tensor:Tensor.*\n")
        result = run([self.python, self.script(PROGRAM), self.out],
                     seconds=180, env=traced_environment(
                         self.daemon(), SHP_FOLLOW="torch", SHP_LOG=1, RANK=3,
                         SHP_TRACE=self.folder / "list.txt",
                         TMPDIR=self.folder))
        self.assert_ok(result)
        self.assertTrue(result.stdout.endswith("done\n"), result.stdout)
        for place, count in (("one", 1), ("many", 2)):
            kept = self.out / place / "HOST_TRACE"
            files = sorted(kept.glob("*.jsonl"))
            self.assertEqual(len(files), count, result.stderr)
            for path in files:
                self.assertTrue(HostFile(path).metadata["complete"])
            manifests = sorted(kept.glob("rank-3-*.closed.json"))
            self.assertEqual(len(manifests), count)
            self.assertEqual(json.loads(manifests[0].read_text())["rank"], 3)
            merged = run([SHP, "merge-dir", self.out / place, "--json"],
                         env=clean_environment())
            self.assert_ok(merged)
            spans = [t["spans"] for t in json.loads(merged.stdout)["traces"]]
            self.assertEqual(len(spans), count)
            self.assertTrue(all(spans), spans)

    def test_a_word_that_is_not_torch_is_a_line(self):
        result = run([self.python, "-c", "import json"],
                     env=traced_environment(SHP_FOLLOW="jax", SHP_LOG=1))
        self.assertIn("SHP_FOLLOW: 'jax' is not torch", result.stderr)


if __name__ == "__main__":
    main()
