"""The parts of `foretell bench soak`: a sandbox, a mixed load on it, samples, trends and their chart."""
