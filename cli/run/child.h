// The recorded program, run in the foreground: started, given the signals that
// are meant for it, waited for.
//
// It stays in our process group, so that a terminal, nohup and a shell's job
// control treat the two as one. What the terminal sends (Ctrl-C, Ctrl-Z,
// SIGWINCH, hang-up) the kernel delivers to both, and we pass nothing on; what
// another process sends to us alone, we pass on. We stop when it has stopped
// and continue it when we are continued.
//
// One Child at a time, on the main thread of `shp run`.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/run/child_environment.h"
#include "common/base/result.h"

namespace shp {

class Child {
 public:
  // Holds the signals that are passed on until wait() looks at them; until this
  // object goes, they do not end us.
  Child();
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts argv[0], found along $PATH. The error's errno_value is exec's.
  [[nodiscard]] Status start(const std::vector<std::string>& argv,
                             const Environment& environment);

  // Returns its wait status when it has ended.
  [[nodiscard]] int wait();

  // Waits up to `timeout_ms`; true when a signal asks us to end meanwhile.
  [[nodiscard]] bool interrupted_within(int timeout_ms);

  pid_t pid() const { return pid_; }

 private:
  void pass_on(const siginfo_t& info) const;
  bool ended(int& status);
  void stop_with_it();

  pid_t pid_ = -1;
  sigset_t handled_;
  sigset_t before_;
};

// Ends this process as its child ended: the same status, or by the same signal
// (without a second core dump), so that a shell's own rules go on working.
[[noreturn]] void end_like(int wait_status);

}  // namespace shp
