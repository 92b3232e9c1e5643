"""Networks as tables, trees and graphs.

Enter at `summary_table.py` and `graph_files.py`. May import: as render.

- `box_places`: where the boxes of a level stand: columns found once for closed boxes, made wider where
  one is open
- `box_rows`: which row each box of a level stands in, and in which order: what can be said before any
  width is known
- `graph_files`: the graph of a network: as a tree on the terminal, or in the format that a file's name
  asks for
- `graph_html`: the graph as one HTML file: the page of the browser with nothing but the graph in it
- `graph_layout`: the layout of a graph as the browser gets it: every level that can be opened, with the
  places of its boxes
- `graph_levels`: A graph taken apart by module: the boxes of one level, and how tensors flow between them
- `graph_loops`: A loop of a forward is drawn once: steps that follow each other, look alike and are wired
  alike
- `graph_svg`: the graph as a picture: boxes within boxes, laid out level by level from the inside out
- `graphviz`: the graph in Graphviz's language: an open module is a cluster, a closed one a box
- `node_boxes`: what stands in the box of a node, how wide that is, and its colour
- `recorded_graph`: A graph read back from JSON with care: the file may be damaged, of another version, or
  somebody's joke
- `shape_error_text`: A forward that failed: the module stack with shapes, expected against given, and
  what would help
- `summary_table`: A network as a table: the module tree in the order in which it ran, and the sums
  beneath
- `table_width`: A table in the width that there is: names and shapes give way first, whole columns last
"""
