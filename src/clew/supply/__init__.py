"""What is known of a data pipeline, as plain data between `pipeline`, `checks` and `show`. No torch here."""
