// How every search of the page works.

/** Whether a text has all the words of a search, in any order and in upper or lower case. */
export function hasWords(text: string, search: string): boolean {
  const lower = text.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => lower.includes(word));
}
