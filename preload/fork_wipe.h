// What makes a forked child find itself not recording: the page of g_wiped
// (recorder.h) is emptied in it.
#pragma once

namespace shp::recorder {

// Arms it; any thread, any number of times. Must come before the first lock or
// state in that page is used, or a fork right then would hand it on. False with
// errno when neither the kernel nor a handler will do it.
bool wipe_on_fork() noexcept;

}  // namespace shp::recorder
