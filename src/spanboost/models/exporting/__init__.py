"""Models in other forms for prediction: C source and ONNX."""
