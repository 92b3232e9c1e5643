"""A tensor becomes a few numbers. Reads memory, changes nothing, and knows no other room."""
