// The LTTng-UST tracepoints that lttng_bench.c fires: a begin with a name's
// number and an end, which is the least that a span needs there.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER shp_peer

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng/shp_peer.h"

#if !defined(SHP_PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHP_PEER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    shp_peer,
    span_begin,
    LTTNG_UST_TP_ARGS(uint32_t, name),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))

LTTNG_UST_TRACEPOINT_EVENT(
    shp_peer,
    span_end,
    LTTNG_UST_TP_ARGS(uint32_t, name),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, name, name)))

#endif

#include <lttng/tracepoint-event.h>
