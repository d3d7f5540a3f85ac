import { z } from 'zod'

/**
 * The lines of `_state/checkpoint.jsonl`. Each says one thing that has become durable; read in order they
 * are the whole truth about what is exported and where to go on.
 */

const count = z.number().int().nonnegative()
const json = z.json()

/** Large numbers are texts of digits: see Int64Json. */
const int64 = z.union([z.number(), z.string().regex(/^-?\d{16,19}$/)])

const position = z.object({ at: int64, ids: z.array(int64) })

const importedAt = z.object({ min: int64, max: int64 })

/** One answered page whose rows are durable. */
const page = z.object({
  partition: z.string(),
  /** The cursor of the page after it; null: the chain has ended. */
  next: z.string().nullable(),
  rows: count,
  /** Requests that it took, retries among them. */
  requests: count,
  /** Where its rows stand: the open shard, and the generation and end of its log. */
  shard: count.optional(),
  log: z.object({ generation: count, end: count }).optional(),
  imported_at: importedAt.optional(),
  /** Where a chain that has to start again could go on; null: nowhere safe; absent: as before. */
  position: position.nullable().optional(),
  /** End of the partition's quarantine file, and how many items this page added to it. */
  quarantine: z.object({ end: count, items: count }).optional(),
  unknown_fields: z.record(z.string(), count).optional(),
  /** Items that the chain had before; absent: none. */
  repeated: count.optional(),
  /** How far the ids of the chain's last pages are good; absent: as before. */
  ids: z.object({ file: count, end: count, crc: count }).optional(),
})

/** A shard that is whole and flushed; after this line it only has to get its final name. */
const seal = z.object({
  kind: z.literal('seal'),
  shard: count,
  path: z.string(),
  rows: count,
  bytes: count,
  sha256: z.string(),
  partitions: z.array(z.string()),
  imported_at: importedAt.nullable(),
  /** NUL characters that became U+FFFD, in CSV; absent: none. */
  replaced: count.optional(),
  /** A page that went straight into the shard, so that one line commits both. */
  page: page.optional(),
})

const error = z.object({ kind: z.string(), message: z.string() })

const lineSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('header'),
    version: z.literal(1),
    pipeline: z.string(),
    created_at: z.string(),
    settings: z.record(z.string(), json),
  }),
  /** Tells whether a secret query still asks for the same secret; a digest under the mask key. */
  z.object({ kind: z.literal('secret'), query: z.string(), check: z.string() }),
  /** What a name stands for that the user gave to a query: what it asks for, as its rows show it. */
  z.object({ kind: z.literal('query'), name: z.string(), asks: z.string() }),
  z.object({ kind: z.literal('run'), run: z.string(), started_at: z.string(), version: z.string() }),
  z.object({
    kind: z.literal('end'),
    run: z.string(),
    finished_at: z.string(),
    status: z.enum(['complete', 'failed', 'budget', 'interrupted']),
    requests: count,
    retries: count,
  }),
  /** What the pages of a run say that it sent, in the place of pages that are no longer there. It never ended. */
  z.object({ kind: z.literal('cut'), run: z.string(), requests: count }),
  z.object({ kind: z.literal('open'), shard: count, folder: z.string(), part: count }),
  page.extend({ kind: z.literal('page') }),
  /** A generation of an open shard's log has been encoded into the shard itself. */
  z.object({
    kind: z.literal('chunk'),
    shard: count,
    generation: count,
    offset: count,
    bytes: count,
    crc: z.number(),
    rows: count,
    meta: json,
    replaced: count.optional(),
  }),
  seal,
  z.object({ kind: z.literal('failed'), partition: z.string(), requests: count, error }),
  /** A refused cursor made the chain start again after this position; null: from its beginning. */
  z.object({ kind: z.literal('restart'), partition: z.string(), since: position.nullable() }),
  /** What the lines about a finished partition come to, once a compaction has taken their place. */
  z.object({
    kind: z.literal('done'),
    partition: z.string(),
    rows: count,
    pages: count,
    requests: count,
    quarantined: count,
    repeated: count.optional(),
  }),
  /** Finished shards whose partitions are exported anew: their files are to go. */
  z.object({ kind: z.literal('given-up'), shards: z.array(z.string()) }),
  z.object({ kind: z.literal('unknown'), fields: z.record(z.string(), count) }),
])

export type Line = z.infer<typeof lineSchema>
export type PageFacts = z.infer<typeof page>
export type SealLine = z.infer<typeof seal>
export type ChunkLine = Extract<Line, { kind: 'chunk' }>
export type HeaderLine = Extract<Line, { kind: 'header' }>
export type RunStatus = Extract<Line, { kind: 'end' }>['status']

/** @returns null when the line is none of the kinds above (a newer version may know more) */
export function parseLine(line: unknown): Line | null {
  const result = lineSchema.safeParse(line)
  return result.success ? result.data : null
}
