/** Columns that a text takes on a terminal. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** The text in no more than so many columns; what is cut ends in `…`. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  if (columns <= 0) return ''
  let cut = ''
  let left = columns - 1
  for (const character of text) {
    left -= columnsOf(character)
    if (left < 0) break
    cut += character
  }
  return `${cut.trimEnd()}…`
}

/** The text in exactly so many columns. */
export function fitTo(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const cut = cutTo(text, columns)
  const blanks = ' '.repeat(Math.max(0, columns - widthOf(cut)))
  return align === 'left' ? cut + blanks : blanks + cut
}

function columnsOf(character: string): number {
  if (/\p{Mark}/u.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

// East Asian scripts with their punctuation and full-width forms, and emoji.
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u
