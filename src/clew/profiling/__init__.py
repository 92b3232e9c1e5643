"""Where the time and the memory of training go: torch's profiler, a sampler of Python, the process itself."""
