"""Questions asked of a network by trying something on a snapshot: what they find, checks judge."""
