"""What merge-dir makes of every file of the collection of real traces.

A row says of a trace that takes spans: what it is (the decision table of the
format notes), its base, its host pids, the likeliest first, its rank, and its
window, relative to its base; of any other file: what the report says of it.
Each number was taken from the file by Python's json, none from our report; the
test checks them against both.
"""

import collections

Merged = collections.namedtuple("Merged", "kind base hosts rank window")

BASE = "kineto base"          # baseTimeNanoseconds, before or after the events
ABSOLUTE = "kineto absolute"  # us since 1970
ASCEND = "ascend"             # an array with quoted times

NOT_TRACE = "is JSON without traceEvents"
NO_HOST = "has no process of the host in it"

TABLE = {
    "ascend-meta/2023-no-start_info/profiler_info_0.json": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/end_info": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/host_start.log":
        "is a JSON array of other things than events",
    "ascend-meta/PROF_msconfig/host/info.json": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/sample.json": NOT_TRACE,
    "ascend-meta/PROF_msconfig/host/start_info": NOT_TRACE,
    "ascend-meta/torch_npu-2.7.1/profiler_info_0.json": NOT_TRACE,
    "ascend-meta/torch_npu-2.7.1/profiler_info_1.json": NOT_TRACE,
    "ascend-meta/torch_npu-2.7.1/profiler_metadata.json": NOT_TRACE,
    "ascend/level0/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json":
        Merged(ASCEND, None, [3016828], 0,
               (1736405443861785630, 1736405443998996860)),
    "ascend/level0/rank0_ascend_pt/profiler_info_0.json": NOT_TRACE,
    "ascend/level0/rank0_ascend_pt/profiler_metadata.json": NOT_TRACE,
    "ascend/level0/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json":
        Merged(ASCEND, None, [3016830], 1,
               (1736405443877805710, 1736405443999067280)),
    "ascend/level0/rank1_ascend_pt/profiler_info_1.json": NOT_TRACE,
    "ascend/level0/rank1_ascend_pt/profiler_metadata.json": NOT_TRACE,
    "ascend/old-decimal-pids/trace_view.json":
        Merged(ASCEND, None, [437675], None,
               (1704161511420289011, 1704161511434380981)),
    "ascend/tiny-heatmap/trace_view.json": NO_HOST,
    "ascend/tiny-meta-only/trace_view_tiny.json": NO_HOST,
    "broken/kineto-issue-105-inf.json": NO_HOST,
    "broken/kineto-pr-1459-unescaped-quote.json":
        "byte 103: no comma after an event's value (unescaped quote?)",
    "broken/pytorch-issue-121219-replacement-chars.json":
        Merged(ABSOLUTE, None, [1434697], None,
               (1723230573475064000, 1723230573532637000)),
    "broken/pytorch-issue-33961-legacy-exporter.json":
        "byte 306: event's key does not start with a quote",
    "broken/pytorch-issue-98432-windows-backslash.json":
        Merged(ABSOLUTE, None, [21428], None,
               (1680718159986758000, 1680718159986759000)),
    "decoys/benchmark_simple_add_et.json.gz": NOT_TRACE,
    "decoys/cpu_op_map_trace1.json": NOT_TRACE,
    "kineto-1.8.1/"
    "resnet50_profiler_api_num_workers_4.worker0.pt.trace.json.gz":
        Merged(ABSOLUTE, None, [120018], None,
               (1610366728297910000, 1610366729106361000)),
    "kineto-1.9/gpu_metrics_input.json":
        Merged(ABSOLUTE, None, [24572], None,
               (1621401187223005000, 1621401187237108000)),
    "kineto-abs-us-frac/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz":
        Merged(ABSOLUTE, None, [1102], 0,
               (1712195495406752797, 1712195496004644183)),
    "kineto-abs-us/backward_thread.json":
        Merged(ABSOLUTE, None, [3914], 0,
               (1666149715033200000, 1666149715446651000)),
    "kineto-abs-us/benchmark_result_924719_1679055439_trace.json.gz":
        Merged(ABSOLUTE, None, [924719], 0,
               (1679055451545746000, 1679055463390908000)),
    "kineto-abs-us/benchmark_simple_add_trace.json.gz":
        Merged(ABSOLUTE, None, [563677], 0,
               (1689360788459677000, 1689360808308238000)),
    "kineto-abs-us/event_sync_trace.json.gz":
        Merged(ABSOLUTE, None, [948300], 0,
               (1707417525509335000, 1707417525512622000)),
    "kineto-abs-us/large/df_index_resolver.json.gz":
        Merged(ABSOLUTE, None, [783658], 1,
               (1669783687352244000, 1669783689181563000)),
    "kineto-abs-us/sampled/sampled_rank-0.json.gz":
        Merged(ABSOLUTE, None, [4037], 0,
               (1682725898079292000, 1682725899309581000)),
    "kineto-abs-us/sampled/sampled_rank-1.json.gz":
        Merged(ABSOLUTE, None, [4045], 1,
               (1682725898079484000, 1682725899318077000)),
    "kineto-base-first/b200_eager_trace.json.gz":
        Merged(BASE, 1767189312000000000, [6583], 0,
               (1365627862757064, 1365627950169927)),
    "kineto-base-last/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz":
        Merged(BASE, 1719853884000000000, [1074], 34,
               (1212075525586016, 1212076832503044)),
    "kineto-base-last/triton_example.json.gz":
        Merged(BASE, 1727743122000000000, [1670242, 3100453], None,
               (2413668742269099, 2413669097927433)),
    "multirank-dlrm8/worker0_step_12.1694128201545.pt.trace.json":
        Merged(ABSOLUTE, None, [59811], 0,
               (1694128201426556000, 1694128201442995000)),
    "multirank-dlrm8/worker1_step_12.1694128201556.pt.trace.json":
        Merged(ABSOLUTE, None, [59812], 1,
               (1694128201421058000, 1694128201443445000)),
    "multirank-dlrm8/worker2_step_12.1694128201554.pt.trace.json":
        Merged(ABSOLUTE, None, [59813], 2,
               (1694128201427928000, 1694128201442998000)),
    "multirank-dlrm8/worker3_step_12.1694128201557.pt.trace.json":
        Merged(ABSOLUTE, None, [59814], 3,
               (1694128201421753000, 1694128201443587000)),
    "multirank-dlrm8/worker4_step_12.1694128201547.pt.trace.json":
        Merged(ABSOLUTE, None, [59815], 4,
               (1694128201423846000, 1694128201444219000)),
    "multirank-dlrm8/worker5_step_12.1694128201549.pt.trace.json":
        Merged(ABSOLUTE, None, [59816], 5,
               (1694128201424006000, 1694128201443809000)),
    "multirank-dlrm8/worker6_step_12.1694128201553.pt.trace.json":
        Merged(ABSOLUTE, None, [59817], 6,
               (1694128201427914000, 1694128201443531000)),
    "multirank-dlrm8/worker7_step_12.1694128201553.pt.trace.json":
        Merged(ABSOLUTE, None, [59818], 7,
               (1694128201428551000, 1694128201443499000)),
    "rewritten/h100_bert-small-uncased__1016001.json.gz":
        Merged(BASE, 1751410836000000000, [19392], None,
               (1419247332500684, 1419247340892366)),
    "rocm/mi210_gpu_only_trace.json.gz":
        Merged(BASE, 1759300074000000000, [44077], None,
               (6869181217913045, 6869181224115277)),
    "rocm/mi250_minitoy_train_ROCm6_2_kineto.json.gz":
        Merged(BASE, 1735632360000000000, [597913], None,
               (4203669603018756, 4203669613175703)),
    "rocm/normalization_layer_test.json.gz":
        Merged(BASE, 1767189312000000000, [2300490], None,
               (3545056405156060, 3545057594437838)),
    "sglang/capture_traces/execution_details.json":
        'is a JSON array whose objects have no "ph"',
    "sglang/sglang_Qwen3-8B_decode.json.gz":
        Merged(BASE, 1775078550000000000, [251], 0,
               (4909914216204635, 4909914681921269)),
    "vllm/graph_execution.json.gz":
        Merged(BASE, 1767189312000000000, [851], 0,
               (6520618853487683, 6520618855896281)),
}
