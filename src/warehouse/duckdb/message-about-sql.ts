/** What has quotes in SQL: texts, and names, which may be texts in the wrong quotes. The last may lack its end. */
const QUOTED = /'[^']*(?:'|$)|"[^"]*(?:"|$)/g

/** Texts that a message would not spell as the SQL does, and comments, whose quotes need no end. */
const IN_DISGUISE = /\\|\$\w*\$|\bU&|--|\/\*/i

/** Shorter texts are found in any message. */
const LEAST = 3

/**
 * What DuckDB says of SQL that it cannot prepare: the first line of its message, as `: Referenced column "nme" not found
 * in FROM clause!`. It repeats words of the SQL, but nothing that has quotes there: that may be a password that somebody
 * looks for, and messages get into logs.
 * @returns empty: nothing can be shown
 */
export function messageOf(message: string, sql: string): string {
  if (IN_DISGUISE.test(sql)) return ''
  const texts = (sql.match(QUOTED) ?? []).map(bare)
  const isInSql = (word: string): boolean => word !== '' && texts.some((text) => text.includes(word))
  const line = (message.split('\n', 1)[0] ?? '').replace(QUOTED, (word) =>
    isInSql(bare(word)) ? '"…"' : word,
  )
  const rest = bare(line)
  if (line === '' || texts.some((text) => text.length >= LEAST && rest.includes(text))) return ''
  return `: ${line}`
}

/** Without quotes, which may be doubled, and in lower case, as DuckDB spells some names. */
function bare(text: string): string {
  return text.replace(/['"]/g, '').toLowerCase()
}
