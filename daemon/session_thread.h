// The life of a session on its own thread; see session.h.
#pragma once

namespace shp {

class Session;

// Runs the session to its end and calls session.finish().
void run_session(Session& session);

}  // namespace shp
