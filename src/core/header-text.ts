/** Printable ASCII only: anything else could end an HTTP header and begin another. */
export function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text)
}
