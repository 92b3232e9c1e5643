"""Networks as tables, trees and graphs.

Enter at `summary_table.py` and `graph_files.py`. May import: records, checks, render, render.verdict.

- `box_places`: positions of the boxes of a level: columns computed once for closed boxes, wider where one
  is open
- `box_rows`: the row and order of each box of a level, computed before any width is known
- `graph_files`: writes the graph of a network: a tree on the terminal, or the format that a file's suffix
  asks for
- `graph_layout`: the graph layout sent to the browser: every level that can be opened, with the positions
  of its boxes
- `graph_levels`: splits a graph by module: the boxes of one level, and how tensors flow between them
- `graph_loops`: draws a loop in a forward once: consecutive steps that are identical and connected alike
- `graph_svg`: the graph as an SVG: nested boxes, laid out level by level from the inside out
- `node_boxes`: the text in the box of a node, its width, and its colour
- `recorded_graph`: reads a graph back from JSON; the file may be damaged, malicious or from another
  version
- `shape_error_text`: a shape error as text: the module stack with shapes, expected against given, and
  possible fixes
- `summary_table`: a network as a table: the module tree in execution order, with totals below
"""
