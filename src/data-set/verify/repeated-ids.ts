import { getOrInsert, type Pipeline, rulesOf } from '../../core/index.ts'
import type { ShardReader } from '../../load/index.ts'
import { type ManifestShard, splitPath } from '../../state/index.ts'
import { highWord, IdSet, lowWord, REDACTED } from '../../transform/index.ts'

// Some 130 MB. More ids are read in several rounds.
const MAX_IDS = 8_000_000

/** The policies that make different values of different secrets. */
const KEEP_APART: ReadonlySet<string> = new Set(['hmac', 'plaintext'])

/**
 * Counts the rows with an id that an earlier row of the same query has. Queries that share a shard are
 * distinguished by the columns `query_type` and `query_value`. If these are left out, or masked to the same value for
 * several queries, nothing is counted.
 * @param shards all shards that may come
 * @returns null when the columns do not distinguish queries
 */
export async function repeatedIds({ extract, transform, load }: Pipeline, shards: readonly ManifestShard[]) {
  const queries = new Set(shards.flatMap(({ partitions }) => partitions.map((key) => splitPath(key)[0])))
  const isShared = rulesOf(extract.resource).reading === 'list' || !load.partitionBy.includes('query')
  const byRow = isShared && queries.size > 1
  const needed = byRow ? ['id', 'query_type', 'query_value'] : ['id']
  if (!needed.every((name) => transform.columns.includes(name))) return null
  const looksLikeOthers = (type: string, value: string): boolean =>
    byRow && (value === REDACTED || (type === 'secret' && !KEEP_APART.has(transform.secret)))

  // Loaded here, so that other commands start faster.
  const { readIds } = await import('../../load/inspect/index.ts')
  const rounds = Math.ceil(shards.reduce((sum, { rows }) => sum + rows, 0) / MAX_IDS)
  let seen = new Map<string, IdSet>()
  let current = 0
  let found = 0
  return {
    /** How often all shards have to be read: it holds 8,000,000 ids at a time. */
    rounds,
    /** Number of such rows. */
    get found() {
      return found
    },
    /** Takes the ids of a shard that belong to a round, from 0 on; all shards of one round before those of the next. */
    async take(shard: ManifestShard, reader: ShardReader, round: number): Promise<void> {
      if (round !== current) seen = new Map()
      current = round
      const own = byRow ? '' : splitPath(shard.partitions[0] ?? '')[0]
      await readIds(reader, load.format, byRow, (id, type, value) => {
        const low = lowWord(id)
        const high = highWord(id)
        if (roundOf(low, high, rounds) !== round || looksLikeOthers(type, value)) return
        const ids = getOrInsert(seen, byRow ? `${type} ${value}` : own, () => new IdSet())
        if (!ids.add(low, high)) found++
      })
    },
  }
}

/** Spreads ids evenly over the rounds. */
function roundOf(low: number, high: number, rounds: number): number {
  return rounds === 1 ? 0 : ((Math.imul(low ^ high, 0x9e3779b1) >>> 8) & 0xffff) % rounds
}
