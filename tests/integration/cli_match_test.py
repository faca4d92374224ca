"""`shp merge-dir`: which host files are whose trace's, and by which clock spans are
placed: --pid-map, --clock-offset-ns, --clock-anchors-ns, a wall clock that was set.
"""

import hashlib
import json

from merge_case import BASE, ERROR, Merge, session, trace
from shp_testing import main


class Matching(Merge):
    def test_a_pid_map_names_the_process(self):
        path = self.put("a.json", trace(9))
        self.put_host()
        self.expect(self.merge("--pid-map", '{"007": 9}'), 0)
        self.assertEqual(self.spans_of(path), [(9, 2000, 10)])

    def test_one_pid_on_two_hosts_is_never_guessed(self):
        path = self.put("a.json", trace())
        before = path.read_bytes()
        self.put_host("g.jsonl", session(hostname="g"))
        self.put_host("h.jsonl", session(hostname="h"))
        self.expect(self.merge(), 1, None,
                    f"{ERROR}a.json: host files of several processes have pid "
                    "7: g.jsonl (host g, OS pid 7), h.jsonl (host h, OS pid "
                    "7); settle it with --pid-map, keyed by "
                    '"HOST:PID"\n')
        self.assertEqual(path.read_bytes(), before)
        # So does --pid-map.
        self.expect(self.merge("--pid-map", '{"g:7": 7}', "--dry-run"), 0,
                    "a.json: would put in 1 span from 1 host file, clock "
                    "realtime, ±200 ns\nh.jsonl: matches no trace (pid 7, "
                    "host h)\n", "")
        # The trace's own word settles it.
        path.write_bytes(trace(top={"host_name": "h.lan"}))
        self.expect(self.merge(), 0)
        self.assertEqual(len(self.spans_of(path)), 1)

    def test_containers_are_told_apart_by_the_pid_outside(self):
        path = self.put("a.json", trace())
        for outer, start in ((700, 2000), (701, 3000)):
            made = session(spans=((start, 1),))
            made.extra = {"host_pid": outer, "pid_namespace": outer}
            self.put_host(f"{outer}.jsonl", made)
        self.expect(self.merge(), 1, None, f"{ERROR}a.json: host files of "
                    "several processes have pid 7: 700.jsonl (host host-a, OS "
                    "pid 700), 701.jsonl (host host-a, OS pid 701); settle it "
                    "with --pid-map\n")
        self.expect(self.merge("--pid-map", '{"701": 7}'), 0)
        self.assertEqual(self.spans_of(path), [(7, 3000, 1)])

    def test_sessions_elsewhere_in_time_or_space_do_not_match(self):
        self.put("a.json", trace(begin=20_000, end=30_000))
        self.put("b.json", trace(top={"host_name": "other"}))
        self.put_host()
        self.expect(self.merge(), 1,
                    "a.json: skipped: pid 7 does not overlap in time with "
                    "one.jsonl (host host-a, OS pid 7)\n"
                    "b.json: skipped: pid 7 is of host other, not that of "
                    "one.jsonl (host host-a, OS pid 7)\n"
                    "one.jsonl: matches no trace (pid 7, host host-a)\n")


class Manifests(Merge):
    """What attach_sglang leaves beside an archived host file."""

    def put_manifest(self, path, **changed):
        rows = path.read_bytes().splitlines()
        metadata = json.loads(rows[0])
        document = {
            "schema_version": 1, "type": "host_rank_archive",
            "complete": True, "profile_id": "p", "rank": 3,
            "session_id": metadata["session_id"],
            "db_relative_path": f"HOST_TRACE/{path.name}",
            "db_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "hostname": metadata["hostname"], "pid": metadata["pid"],
            "pid_namespace": "pid:[1]", "clock_anchors": {}, **changed}
        manifest = path.with_name("rank-3-x.closed.json")
        manifest.write_text(json.dumps(document, indent=2))

    def test_a_rank_must_be_the_traces(self):
        path = self.put("a.json", trace(top={"distributedInfo": {"rank": 3}}))
        host = self.put_host()
        self.put_manifest(host)
        self.expect(self.merge(), 0)
        self.put_manifest(host, rank=2)
        self.expect(self.merge(), 1, "a.json: skipped: pid 7 is of rank 3, "
                    "not that of one.jsonl (host host-a, OS pid 7)\n"
                    "one.jsonl: matches no trace (pid 7, host host-a)\n")
        self.put_manifest(host, rank=None)
        self.expect(self.merge(), 0)
        self.assertEqual(len(self.spans_of(path)), 1)

    def test_what_it_says_of_its_file_is_checked(self):
        self.put("a.json", trace())
        host = self.put_host()
        for changed, why in (({"db_sha256": "0" * 64}, "another digest"),
                             ({"pid": 8}, "another process"),
                             ({"hostname": "b"}, "another process"),
                             ({"session_id": "t"}, "another session_id")):
            self.put_manifest(host, **changed)
            self.expect(self.merge(), 1, None,
                        f"{ERROR}one.jsonl: does not match its manifest "
                        f"rank-3-x.closed.json: {why}\n"
                        f"{ERROR}no trace got any spans\n")
        self.put_manifest(host, db_relative_path="gone.jsonl")
        self.expect(self.merge(), 1, None, f"{ERROR}rank-3-x.closed.json: its "
                    "host file is not beside it\n")


class Clocks(Merge):
    def test_an_offset_is_on_the_traces_absolute_timeline(self):
        path = self.put("a.json", trace())
        made = session(offset=0)
        self.put_host(made=made)
        self.expect(self.merge("--clock-offset-ns", "5000"), 0,
                    "a.json: 1 span from 1 host file, clock offset +5000 ns, given\n")
        self.assertEqual(self.spans_of(path), [(7, 2005, 10)])
        self.expect(self.merge("--clock-offset-ns", '{"7": -1000}'), 0)
        self.assertEqual(self.spans_of(path), [(7, 1999, 10)])

    def test_the_report_tells_source_offset_and_uncertainty(self):
        self.put("a.json", trace())
        self.put_host(made=session(offset=1000))
        result = self.merge()
        self.assertEqual(result.stdout, "a.json: 1 span from 1 host file, "
                         "clock realtime +1000 ns, ±200 ns\n")

    def test_null_is_not_given_as_in_the_predecessor(self):
        path = self.put("a.json", trace())
        self.put_host()
        for option in ("--pid-map", "--clock-offset-ns", "--clock-anchors-ns"):
            self.expect(self.merge(option, "null"), 0)
            self.assertEqual(self.spans_of(path), [(7, 2000, 10)])
        self.expect(self.merge("--clock-offset-ns", ""), 1, "",
                    f"{ERROR}--clock-offset-ns is not valid JSON\n")

    def test_anchors_are_a_line(self):
        path = self.put("a.json", trace())
        self.put_host(made=session(offset=0))
        pairs = [[BASE + 2_000_000, BASE + 3_000_000],
                 [BASE + 2_010_000, BASE + 3_020_000]]
        for value in (pairs, {"7": pairs}):
            self.expect(self.merge("--clock-anchors-ns", json.dumps(value)), 0)
            self.assertEqual(self.spans_of(path), [(7, 3000, 20)])

    def test_one_clock_is_not_for_several_traces(self):
        self.put("a.json", trace())
        self.put("b.json", trace(8))
        self.put_host()
        self.put_host("8.jsonl", session(8))
        self.expect(self.merge("--clock-offset-ns", str(BASE)), 1)

    def test_without_a_base_a_clock_has_to_be_given(self):
        path = self.put("a.json", trace(base=None))
        self.put_host(made=session(offset=BASE))
        self.expect(self.merge(), 1, None,
                    f"{ERROR}a.json: its times are relative and it has no "
                    "baseTimeNanoseconds; give --clock-offset-ns or "
                    "--clock-anchors-ns\n")
        self.expect(self.merge("--clock-offset-ns", "0"), 0)
        self.assertEqual(self.spans_of(path), [(7, 2000, 10)])

    def stepped(self, at):
        made = session(begin=0, end=20_000)
        for i in range(21):
            jump = 3_000_000 if i * 1000 >= at else 0
            made.lines.append({
                "type": "clock",
                "monotonic_ns": BASE + i * 1_000_000 - made.offset,
                "realtime_ns": BASE + i * 1_000_000 + jump,
                "uncertainty_ns": 100})
        return made

    def test_a_wall_clock_set_during_the_capture_is_refused(self):
        self.put("a.json", trace())
        self.put_host(made=self.stepped(at=5000))
        self.expect(self.merge(), 1, None,
                    f"{ERROR}a.json: the wall clock of one.jsonl was set by "
                    "3000000 ns during the capture; give --clock-offset-ns "
                    "or --clock-anchors-ns\n")

    def test_a_wall_clock_set_after_it_is_said_and_no_matter(self):
        path = self.put("a.json", trace())
        self.put_host(made=self.stepped(at=15_000))
        self.expect(self.merge(), 0, None, f"{ERROR}warning: a.json: the wall "
                    "clock of one.jsonl was set by 3000000 ns during its "
                    "session, outside the capture\n")
        self.assertEqual(self.spans_of(path), [(7, 2000, 10)])


if __name__ == "__main__":
    main()
