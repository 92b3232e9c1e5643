"""Every rendering of what checks found. Draws, never recomputes, and never imports torch."""
