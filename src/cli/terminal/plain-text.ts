/**
 * Text from elsewhere (the service, files, other people's names) as a terminal may show it: without control
 * characters, terminal escapes among them, and without marks that turn the direction of writing. Line ends
 * and tabs stay.
 */
export function plainText(text: string): string {
  return text.toWellFormed().replace(NOT_PLAIN, '')
}

/** The same on one line. */
export function plainLine(text: string): string {
  return plainText(text.replace(/[\r\n\t\u2028\u2029]+/g, ' '))
}

/** JSON that a terminal can show as well: what {@link plainText} leaves out is escaped. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value).replace(NOT_PLAIN, escaped)
}

// Zl and Zp: line ends by another name.
const NOT_PLAIN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

function escaped(character: string): string {
  let text = ''
  for (let unit = 0; unit < character.length; unit++) {
    text += `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`
  }
  return text
}
