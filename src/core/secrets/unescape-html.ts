import { decodeHTML } from 'entities/decode'

/** The characters that Windows-1252 has at 0x80 to 0x9f; where it has none, the control character. */
export const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** Undoes `&eacute;`, `&#233;` and `&#xe9;`; also without the semicolon, as browsers do, and in capitals. */
export function unescapeHtml(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(
    /&(?:#0*(\d{1,7})|#x0*([0-9a-f]{1,6})|[a-z][a-z0-9]{1,31});?/gi,
    (found, decimal, hex) => {
      if (decimal !== undefined) return numbered(Number(decimal))
      return hex === undefined ? named(found) : numbered(Number.parseInt(hex, 16))
    },
  )
}

/** Halves of a surrogate pair are kept, since some software writes each as a number. */
function numbered(codePoint: number): string {
  // Numbers of Windows-1252 are common; HTML defines them so (13.2.5.80).
  if (codePoint >= 0x80 && codePoint <= 0x9f) return WINDOWS_1252[codePoint - 0x80]!
  return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : ''
}

function named(found: string): string {
  const character = decodeHTML(found)
  return character === found ? decodeHTML(found.toLowerCase()) : character
}
