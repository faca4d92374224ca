"""shp doctor: what would stop a recording is said, with the mend; exit status."""

import os
import resource
import subprocess
import unittest

from shp_testing import Case, SHP, clean_environment, main, run, sanitizers


class Doctor(Case):
    def doctor(self, *words, **environment):
        return run([SHP, "doctor", *words],
                   env=clean_environment(SHP_SOCKET=self.folder / "s",
                                         **environment))

    def test_a_good_host(self):
        daemon = self.daemon()
        result = run([SHP, "doctor", "-o", self.folder, "python3"],
                     env=clean_environment(SHP_SOCKET=daemon.socket))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertNotIn("BAD", result.stdout)
        self.assertIn(f"(pid {daemon.process.pid}) answers", result.stdout)
        self.assertIn("Nothing here would stop a recording.", result.stdout)

    def test_no_daemon_and_none_may_be_started(self):
        result = self.doctor(SHP_NO_SPAWN="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("BAD   no shpd answers, and SHP_NO_SPAWN", result.stdout)
        self.assertIn("→ `systemctl start shpd`", result.stdout)

    def test_no_daemon_that_will_be_started(self):
        result = self.doctor()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("note  no shpd runs", result.stdout)

    def test_switched_off(self):
        result = self.doctor(HOST_SERVICE_PROFILER_ENABLE="0")
        self.assertEqual(result.returncode, 1)
        self.assertIn("BAD   HOST_SERVICE_PROFILER_ENABLE=0", result.stdout)

    def test_a_file_in_the_directorys_place(self):
        path = self.folder / "file"
        path.write_text("")
        result = self.doctor("-o", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"BAD   {path}: Not a directory", result.stdout)

    def test_a_static_program(self):
        program = self.folder / "static"
        source = self.script("int main(void) { return 0; }", "static.c")
        if run(["gcc", "-static", "-o", program, source]).returncode:
            self.skipTest("no static libc")
        result = self.doctor(program)
        self.assertEqual(result.returncode, 1)
        self.assertIn("LD_PRELOAD does not apply", result.stdout)

    @unittest.skipIf(sanitizers(), "shadow memory does not fit")
    def test_little_address_space(self):
        limit = 300 << 20
        result = subprocess.run(
            [SHP, "doctor"], capture_output=True, text=True,
            env=clean_environment(SHP_SOCKET=self.folder / "s"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                  (limit, limit)))
        self.assertIn("note  RLIMIT_AS (ulimit -v) is 300 MiB", result.stdout)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_directory_that_may_not_be_written(self):
        self.out.mkdir(mode=0o500)
        result = self.doctor("-o", self.out)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Permission denied", result.stdout)


if __name__ == "__main__":
    main()
