from .collector import (counter as counter, instant as instant,
                        profile as profile, span as span, span_end as span_end,
                        span_start as span_start, start as start, stop as stop)
from .integrations.sglang import attach_sglang as attach_sglang
from .integrations.torch import attach_torch_profiler as attach_torch_profiler

__version__: str
__all__: list[str]

def is_enabled() -> bool: ...
