// Deferred attributes: callables, or dicts that hold some, of spans that ended
// are asked for their values once, in stop(), after the freeze. GIL held.
#pragma once

namespace shp::python {

// Resolves all of them in the order in which their spans ended and gives them
// to the recorder. What raises costs its span the args. False: an exception
// that is no fault of theirs (Ctrl-C, SystemExit) is pending; the spans that
// were left then have lost their args too, and the file can be published.
bool resolve_deferred() noexcept;

}  // namespace shp::python
