"""ONNX models in ONNX Runtime, called as those of openrnn.onnx."""

try:
    import onnxruntime
except ImportError:  # the examples run without it
    onnxruntime = None


class Program:
    """Of a model's path; outputs by name from inputs by name."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.inputs = {given.name: (given.type, given.shape) for given in self.session.get_inputs()}

    def __call__(self, given):
        return dict(zip(self.names, self.session.run(self.names, given)))


def difference(found, compute, paths):
    """Prints how far `found` is from what `compute` makes with ONNX Runtime's programs."""
    if onnxruntime is None:
        print("ONNX Runtime is not installed")
        return
    theirs = compute(*[Program(path) for path in paths])
    print(f"largest difference from ONNX Runtime: {abs(found - theirs).max():.1e}")
