"""The way of a sample from the dataset to the model: seen, run bare, measured and surveyed."""
