"""Programs that run ONNX models."""
