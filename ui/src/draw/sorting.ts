// Rows of a table in the order of a column.

/** Unknown values come last in either direction. */
export function sortedBy<T>(rows: T[], column: keyof T, down: boolean): T[] {
  return [...rows].sort((a, b) => {
    const [x, y] = [a[column], b[column]];
    if (x === y) return 0;
    if (x === undefined || x === null) return 1;
    if (y === undefined || y === null) return -1;
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
  });
}
