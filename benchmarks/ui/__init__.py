"""What the browser view costs on a large run, beside TensorBoard on the same data."""
