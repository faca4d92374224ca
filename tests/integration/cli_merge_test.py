"""`shp merge-dir` by its command line: arguments, status, what it says on standard
output and what on standard error, and what it leaves behind.
"""

import gzip
import json
import os
import signal
import subprocess
import time
import unittest

from merge_case import BASE, ERROR, Merge, session, trace
from shp_testing import SHP, clean_environment, main, run


class Words(Merge):
    def test_a_trace_gets_its_spans_and_one_line_says_so(self):
        self.put("rank0.json.gz", trace())
        path = self.put("deep/er/rank1.json", trace(8))
        self.put_host()
        self.put_host("two.jsonl", session(8, spans=((2000, 10), (2100, 1))))
        self.expect(self.merge(), 0,
                    "deep/er/rank1.json: 2 spans from 1 host file, clock "
                    "realtime, ±200 ns\n"
                    "rank0.json.gz: 1 span from 1 host file, clock realtime, "
                    "±200 ns\n", "")
        self.assertEqual(self.spans_of(path), [(8, 2000, 10), (8, 2100, 1)])

    def test_two_sessions_of_one_process_share_a_trace(self):
        path = self.put("a.json", trace())
        self.put_host("1.jsonl", session(end=4000))
        self.put_host("2.jsonl", session(begin=4001, spans=((5000, 3),)))
        self.expect(self.merge(), 0, "a.json: 2 spans from 2 host files, "
                    "clock realtime, ±200 ns\n", "")
        self.assertEqual(self.spans_of(path), [(7, 2000, 10), (7, 5000, 3)])

    def test_several_traces_of_one_process_get_the_spans_of_their_window(self):
        first = self.put("a.json", trace(begin=1000, end=3000))
        second = self.put("b.json", trace(begin=5000, end=6000))
        self.put_host(made=session(spans=(
            (900, 200), (2000, 10), (3500, 10), (4900, 2000), (7000, 1))))
        self.expect(self.merge(), 0)
        self.assertEqual(self.spans_of(first), [(7, 900, 200), (7, 2000, 10)])
        self.assertEqual(self.spans_of(second), [(7, 4900, 2000)])

    def test_other_files_are_left_alone_with_a_reason(self):
        self.put("a.json", trace())
        self.put_host()
        self.put("memory.json", b'{"categories":[1,2]}')
        self.put("rows.json", b"[[1,2],[3,4]]")
        self.put("half.json.tmp", b'{"traceEvents":[')
        self.put("notes.txt", b"nothing")
        self.put("x.pickle", b"\x80\x04")
        self.put("named.json/inner.txt", b"a folder")
        self.put("gpu.json", trace(label=False).replace(b"cpu_op", b"kernel"))
        self.put("merged.json", trace().replace(b'"pid": 7',
                                                b'"pid": "[TP00] 7"'))
        self.put("other.json", trace(9))
        (self.torch / "link.json").symlink_to("a.json")
        self.put_host("z.jsonl", session(55))
        self.expect(self.merge(), 0, """\
a.json: 1 span from 1 host file, clock realtime, ±200 ns
gpu.json: skipped: has no process of the host in it
half.json.tmp: skipped: is a writer's unfinished file
link.json: skipped: is a link
memory.json: skipped: is JSON without traceEvents
merged.json: skipped: has names for pids (merged already by another tool)
named.json/inner.txt: skipped: is not JSON
notes.txt: skipped: is not JSON
other.json: skipped: no host file of pid 9
rows.json: skipped: is a JSON array of other things than events
x.pickle: skipped: is a pickle
z.jsonl: matches no trace (pid 55, host host-a)
""", "")

    def test_one_broken_trace_does_not_stop_the_others(self):
        good = self.put("good.json", trace())
        cut = self.put("cut.json", trace()[:-60])
        cut_gz = self.put("cut.json.gz", b"")
        cut_gz.write_bytes(gzip.compress(trace())[:-9])
        self.put("empty.json", b"")
        self.put("none.json", b"not json")
        self.put_host()
        before = cut.read_bytes()
        self.expect(self.merge(), 1, None,
                    f"{ERROR}cut.json: byte {len(before)}: file ends inside "
                    "an event (cut off?)\n"
                    f"{ERROR}cut.json.gz: compressed byte "
                    f"{cut_gz.stat().st_size}: gzip file is cut off\n"
                    f"{ERROR}empty.json: byte 0: file is empty\n")
        self.assertEqual(len(self.spans_of(good)), 1)
        self.assertEqual(cut.read_bytes(), before)

    def test_a_bad_host_file_is_named_and_the_others_serve(self):
        self.put("a.json", trace())
        self.put_host()
        bad = self.host / "bad.jsonl"
        bad.write_text(bad.parent.joinpath("one.jsonl").read_text()[:-20])
        self.expect(self.merge(), 1, "a.json: 1 span from 1 host file, clock "
                    "realtime, ±200 ns\n",
                    f"{ERROR}bad.jsonl: line 2: is not whole JSON (cut off?)\n")

    def test_an_incomplete_session_is_taken_with_a_warning(self):
        self.put("a.json", trace())
        made = session()
        made.extra = {"complete": False, "end_reason": "killed"}
        made.lines = [{"type": "open_span", "tid": 7, "name": "last",
                       "start_ns": BASE + 3_000_000 - made.offset}]
        self.put_host(made=made)
        self.expect(self.merge(), 0, None,
                    f"{ERROR}warning: a.json: one.jsonl is not complete\n")
        events = json.loads((self.torch / "a.json").read_bytes())
        marks = [e for e in events["traceEvents"] if e["ph"] == "i"]
        self.assertEqual([(m["name"], m["ts"], m["args"]) for m in marks],
                         [("last", 3000, {"unfinished": True})])

    def test_nothing_to_merge_is_a_failure(self):
        self.put("a.json", trace(9))
        self.put_host()
        self.expect(self.merge(), 1, "a.json: skipped: no host file of pid 9\n"
                    "one.jsonl: matches no trace (pid 7, host host-a)\n",
                    f"{ERROR}no trace got any spans\n")

    def test_names_of_files_and_hosts_move_no_cursor(self):
        """Seen to fail while they went to the terminal as they were."""
        self.put("a\x1b[2J\u009b1m.json", trace(9))
        self.put("cut\x1b]0;x\x07.json", b"")
        made = session()
        made.hostname = "evil\x1b[31m"
        self.put_host(made=made)
        result = self.merge()
        said = result.stdout + result.stderr
        self.assertIn("a?[2J?1m.json: skipped: no host file of pid 9\n", said)
        self.assertIn("cut?]0;x?.json: byte 0: file is empty\n", said)
        self.assertIn("(pid 7, host evil?[31m)\n", said)
        self.assertNotRegex(said, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_json_says_the_same_to_programs(self):
        self.put("a.json", trace(more=[
            {"ph": "X", "cat": "shp", "name": "old", "pid": 7, "tid": 1,
             "ts": 1, "dur": 1}]))
        self.put("b.json", b"{}")
        self.put_host()
        result = self.merge("--json")
        self.expect(result, 0, None, "")
        report = json.loads(result.stdout)
        self.assertEqual(report["traces"], [
            {"trace": "a.json", "outcome": "merged", "kind": "kineto base",
             "base_ns": BASE, "rank": None, "host_pids": [7],
             "window_ns": [BASE + 1_000_000, BASE + 9_000_000],
             "output": str(self.torch / "a.json"), "spans": 1,
             "async": 0, "unfinished": 0, "marks": 0, "replaced_events": 1,
             "hosts": [{"path": str(self.host / "one.jsonl"), "pid": 7,
                        "clock": {"source": "realtime",
                                  "offset_ns": BASE - 5_000_000_000,
                                  "uncertainty_ns": 200}}],
             "warnings": []},
            {"trace": "b.json", "outcome": "skipped",
             "reason": "is JSON without traceEvents"}])
        self.assertEqual(report["host_files"], [
            {"path": str(self.host / "one.jsonl"), "pid": 7,
             "hostname": "host-a", "used": True, "problem": None}])


class Usage(Merge):
    def test_wrong_usage_is_status_2(self):
        for arguments in (["merge-dir"],
                          ["merge-dir", self.host, "--torch-dir", self.torch,
                           "--clock-offset-ns", "1", "--clock-anchors-ns",
                           "[]"],
                          ["merge-dir", self.host, "--torch-dir", self.torch,
                           "--never-heard"]):
            result = run([SHP, *arguments], env=clean_environment())
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertTrue(result.stderr.startswith(ERROR), result.stderr)
            self.assertEqual(result.stdout, "")

    def test_help_has_an_example(self):
        result = run([SHP, "merge-dir", "--help"], env=clean_environment())
        self.assert_ok(result)
        self.assertIn("shp merge-dir out/ --torch-dir log/", result.stdout)

    def test_directories_are_checked_in_the_predecessors_words(self):
        self.expect(self.merge(), 1, "", f"{ERROR}No closed Host JSONL files "
                    f"found under {self.host}\n")
        path = self.put_host()
        result = run([SHP, "merge-dir", path, "--torch-dir", self.torch],
                     env=clean_environment())
        self.expect(result, 1, "", f"{ERROR}HOST_DIR must be a Host capture "
                    "directory\n")
        result = run([SHP, "merge-dir", self.host, "--torch-dir", "/nowhere"],
                     env=clean_environment())
        self.expect(result, 1, "",
                    f"{ERROR}/nowhere: No such file or directory\n")

    def test_wrong_values_are_refused_before_anything_is_touched(self):
        path = self.put("a.json", trace())
        before = path.read_bytes()
        self.put_host()
        for option, value, message in (
                ("--pid-map", "[]", "--pid-map must be a JSON object"),
                ("--pid-map", '{"x": 1}',
                 "--pid-map keys must be decimal OS PIDs"),
                ("--pid-map", '{"1": 2, "01": 2}',
                 "--pid-map contains duplicate PID spellings"),
                ("--clock-offset-ns", '{"x": 1}',
                 "--clock-offset-ns keys must be decimal Host OS PIDs"),
                ("--clock-anchors-ns", '{"x": 1}',
                 "--clock-anchors-ns keys must be decimal Host OS PIDs"),
                ("--clock-offset-ns", "soon",
                 "--clock-offset-ns is not valid JSON")):
            self.expect(self.merge(option, value), 1, "",
                        f"{ERROR}{message}\n")
        self.assertEqual(path.read_bytes(), before)


class Files(Merge):
    def test_mode_is_kept_and_nothing_is_left_over(self):
        path = self.put("a.json.gz", trace())
        path.chmod(0o640)
        leftover = self.torch / ".shp-abcdef.tmp"
        leftover.write_bytes(b"of a killed run")
        os.utime(leftover, (1, 1))
        self.put_host()
        self.expect(self.merge(), 0)
        self.assertEqual(path.stat().st_mode & 0o7777, 0o640)
        self.assertEqual(os.listdir(self.torch), ["a.json.gz"])

    def test_a_dry_run_changes_nothing(self):
        path = self.put("a.json", trace())
        before = path.stat()
        self.put_host()
        self.expect(self.merge("--dry-run"), 0,
                    "a.json: would put in 1 span from 1 host file, clock "
                    "realtime, ±200 ns\n", "")
        self.assertEqual(path.stat().st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(os.listdir(self.torch), ["a.json"])

    def test_an_output_directory_leaves_the_originals_alone(self):
        path = self.put("sub/a.json", trace())
        before = path.read_bytes()
        self.put_host()
        self.expect(self.merge("--output-dir", self.out), 0)
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual(self.spans_of(self.out / "sub" / "a.json"),
                         [(7, 2000, 10)])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_directory_that_cannot_be_written_is_one_line(self):
        path = self.put("a.json", trace())
        self.put_host()
        self.torch.chmod(0o555)
        self.addCleanup(self.torch.chmod, 0o755)
        self.expect(self.merge(), 1, None,
                    f"{ERROR}a.json: {self.torch}: Permission denied\n")
        self.assertNotIn(b"shp", path.read_bytes())

    def test_no_room_leaves_the_original(self):
        path = self.put("a.json", trace())
        before = path.read_bytes()
        made = session(spans=[(2000 + i, 1) for i in range(5000)])
        self.put_host(made=made)
        result = run(["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", SHP,
                      "merge-dir", self.host, "--torch-dir", self.torch],
                     env=clean_environment())
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(path.read_bytes(), before)

    def test_a_killed_run_leaves_the_original_or_the_whole_result(self):
        rows = [{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 7, "tid": 7,
                 "ts": 1000 + i, "dur": 0.5} for i in range(50_000)]
        path = self.put("a.json.gz", trace(more=rows))
        before = path.read_bytes()
        self.put_host(made=session(spans=[(2000 + i / 10, 0.05)
                                          for i in range(20_000)]))
        for delay in (0.01, 0.03, 0.1, 0.2):
            process = subprocess.Popen(
                [SHP, "merge-dir", self.host, "--torch-dir", self.torch],
                env=clean_environment(), stdout=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if path.read_bytes() != before:
                break
        self.expect(self.merge(), 0)
        self.assertEqual(len(self.spans_of(path)), 20_000)

    def test_two_runs_at_once_do_no_harm(self):
        path = self.put("a.json", trace())
        self.put_host(made=session(spans=[(2000 + i / 10, 0.05)
                                          for i in range(20_000)]))
        runs = [subprocess.Popen([SHP, "merge-dir", self.host, "--torch-dir",
                                  self.torch], env=clean_environment(),
                                 stdout=subprocess.DEVNULL) for _ in range(4)]
        self.assertEqual([one.wait(120) for one in runs], [0] * 4)
        self.assertEqual(len(self.spans_of(path)), 20_000)
        self.assertEqual(os.listdir(self.torch), ["a.json"])


if __name__ == "__main__":
    main()
