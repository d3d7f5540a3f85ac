import type { Database } from './database.ts'

/** What is on record of a run, those of a chain in their order; so many at a time. */
export async function* linesOf(database: Database, run: string): AsyncGenerator<string> {
  let after = { chain: -1, number: -1 }
  for (;;) {
    const rows = await database.query(
      'SELECT chain, number, line FROM lines WHERE run = $1 AND (chain, number) > ($2, $3) ORDER BY chain, number LIMIT 2000',
      [run, after.chain, after.number],
    )
    for (const { line } of rows) yield String(line)
    const last = rows.at(-1)
    if (last === undefined) return
    after = { chain: Number(last.chain), number: Number(last.number) }
  }
}
