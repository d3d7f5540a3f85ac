import stringWidth from 'string-width'

/** Columns that a string takes on a terminal. */
export function widthOf(text: string): number {
  return stringWidth(text)
}

/** The text in no more than so many columns; what is cut ends in `…`. */
export function cutTo(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  if (columns <= 0) return ''
  let cut = ''
  let left = columns - 1
  for (const character of text) {
    left -= widthOf(character)
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
