"""SHP_FOLLOW=torch: a session runs exactly while torch.profiler does in this
process, and its file goes into HOST_TRACE/ beside the trace that is exported,
with a manifest, as attach_sglang files it.

torch.profiler.profile, a schedule's cycles, tensorboard_trace_handler and what
SGLang and vLLM do all come through three methods, which are wrapped here. What
goes wrong costs the host file, never the profile: it is logged.
"""

import functools
import os
import tempfile
from pathlib import Path

from . import _native
from .integrations.sglang import SGLangCapture
from .integrations.torch import TorchBinding, attach_torch_profiler

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")


def log(text):
    _native.log("SHP_FOLLOW", text)


def begin(watch):
    watch.add(lambda name: name == "torch.profiler.profiler", _wrap)


def rank():
    """This process's, from torch.distributed or its environment, or None."""
    import torch
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    for name in _RANKS:
        word = os.environ.get(name, "")
        if word.isdigit():
            return int(word)
    return None


class _Binding(TorchBinding):
    """One that stages where it can, since the trace's place is not known yet,
    and is archived wherever that turns out to be."""

    staging = None

    @property
    def output_dir(self):
        return self.staging


def _new_capture():
    plain = attach_torch_profiler("/")
    binding = _Binding(plain.output_root, plain.session_id)
    binding.staging = Path(tempfile.gettempdir(),
                           f"shp-follow-{os.getuid()}") / plain.session_id
    return SGLangCapture(binding, "torch", rank())


def _quietly(what, step):
    try:
        return step()
    except Exception as error:
        log(f"{what}: {type(error).__name__}: {error}")
        return None


def _start(profiler):
    def step():
        capture = _new_capture()
        capture.start()
        profiler._shp_capture = capture
    profiler._shp_capture = None
    _quietly("no session beside this profile", step)


def _stop(profiler):
    capture = getattr(profiler, "_shp_capture", None)
    if capture is not None and _quietly("stop", capture.stop) is None:
        profiler._shp_capture = None


def _archive(profiler, path):
    """The last stopped session goes where the trace went, once."""
    capture = getattr(profiler, "_shp_capture", None)
    if capture is None or capture.manifest_path is not None:
        return

    def step():
        capture.archive(Path(path).resolve().parent)
        # Empty now; somebody else's files keep it.
        capture.binding.staging.rmdir()
    _quietly(f"beside {path}", step)


def _wrap(module):
    base = module._KinetoProfile
    start, stop, export = (base.start_trace, base.stop_trace,
                           base.export_chrome_trace)

    @functools.wraps(start)
    def start_trace(self, *args, **kwargs):
        _start(self)
        return start(self, *args, **kwargs)

    @functools.wraps(stop)
    def stop_trace(self, *args, **kwargs):
        try:
            return stop(self, *args, **kwargs)
        finally:
            _stop(self)

    @functools.wraps(export)
    def export_chrome_trace(self, path, *args, **kwargs):
        result = export(self, path, *args, **kwargs)
        _archive(self, path)
        return result

    base.start_trace = start_trace
    base.stop_trace = stop_trace
    base.export_chrome_trace = export_chrome_trace
