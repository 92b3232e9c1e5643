// Rows of a table in the order of a column.

/** What is not known is last, whichever way. */
export function sortedBy<T>(rows: T[], column: keyof T, down: boolean): T[] {
  const value = (row: T) => row[column];
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === y) return 0;
    if (x === undefined || x === null) return 1;
    if (y === undefined || y === null) return -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  });
}
