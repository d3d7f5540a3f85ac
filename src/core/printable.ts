/** Control characters (those of escape sequences among them), direction marks, and line breaks by another name. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Foreign text on one line, with single spaces and nothing that does not print. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, ' ').replace(/\s+/g, ' ').trim()
}

/** Whether a string is printable ASCII. Other characters could end an HTTP header and begin another. */
export function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text)
}
