"""What the browser view costs on a large run, compared with TensorBoard on the same data."""
