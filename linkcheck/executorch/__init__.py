"""ExecuTorch's files as far as TensorRT engines are concerned: the delegate's blob, .pte programs, .ptd data."""
