/** Text from a file as a message may show it: cut short, without control and direction characters. */
export function shown(value: string): string {
  const short = value.length > 60 ? `${value.slice(0, 60)}…` : value
  return short.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{FFFD}')
}
