import {
  type BufferPool,
  bufferPool,
  columnsOf,
  type DecodedPage,
  type DecodePage,
  type DecodePlan,
  ExportError,
  LEFT_OUT,
  MAX_CURSOR_BYTES,
  type NamedPipeline,
  type PageContext,
  type Pipeline,
  type RefusedItem,
  repeatsSecret,
  type Store,
  unlessSecret,
} from '../core/index.ts'
import { type EncodePlan, rowGroupRows, ShardSet, shardExtension } from '../load/index.ts'
import { type Checkpoint, type CheckpointState, idPath, manifestShard, sweepIds } from '../state/index.ts'
import { openOwnCheckpoint } from './admission/open-checkpoint.ts'
import { type Cpu, openCpu } from './cpu/cpu.ts'
import { invalidate, invalidationOf, requireRepeatable } from './data-set/invalidate.ts'
import { earlyPartitions } from './data-set/plan-state.ts'
import type { RunObserver, RunOptions } from './options.ts'
import type { QuerySecrets } from './queries.ts'

/** What a run holds open on its data set. */
export type Session = {
  readonly checkpoint: Checkpoint
  /** The shards that were sealed since the beginning. */
  readonly sealed: SealedSoFar
  readonly shards: ShardSet
  readonly cpu: Cpu
  /** Decodes in `cpu`; its pages repeat no known secret. */
  readonly decode: DecodePage
  /** For the bodies of responses. */
  readonly buffers: BufferPool
  /** A number that no other chain of the data set has. */
  nextChain(): number
  close(): Promise<void>
}

/**
 * Opens checkpoint and shards and makes them consistent: finished shards are published and open ones continued. If
 * bytes of open shards are lost, their partitions are invalidated.
 * @throws ExportError `config` or `damaged` when the run may not resume
 */
export async function openSession(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<Session> {
  // One for each response in flight or not committed yet, and one more for responses that grow.
  const shared = options.cpu ?? null
  const buffers = shared?.buffers ?? bufferPool(pipeline.extract.concurrency + 1)
  const plans = [decodePlan(pipeline, options.maskKey), encodePlan(pipeline, options)] as const
  const cpu = await openCpu(...plans, buffers, shared)
  try {
    for (;;) {
      const session = await openOnce(pipeline, store, secrets, { cpu, buffers }, options)
      if (session !== null) return session
    }
  } catch (error) {
    await cpu.close()
    throw error
  }
}

/** @returns null when something was invalidated: then everything has to be opened again */
async function openOnce(
  pipeline: NamedPipeline,
  store: Store,
  secrets: QuerySecrets,
  { cpu, buffers }: Pick<Session, 'cpu' | 'buffers'>,
  options: RunOptions,
): Promise<Session | null> {
  const checkpoint = await openOwnCheckpoint(pipeline, store, secrets, options)
  const { state } = checkpoint
  let shards: ShardSet | null = null
  let chains = state.nextChain
  try {
    const sealed = { shards: 0, bytes: 0, replacedNuls: 0 }
    const telling = loggingSeals(checkpoint, sealed, options.observer.log)
    const session: Session = {
      checkpoint: telling,
      sealed,
      cpu,
      decode: withoutSecrets(cpu.decode, cpu.release),
      buffers,
      shards: openShards(pipeline, store, cpu, telling, options.observer),
      nextChain: () => chains++,
      async close() {
        await session.shards.close()
        await cpu.close()
        await checkpoint.close()
      },
    }
    shards = session.shards
    const lost = await shards.restore(state.openShards.values())
    const early = earlyPartitions(pipeline, options.clock.now(), state)
    if (lost.size === 0 && early.length === 0) {
      await sweepIds(store, () => idFiles(state))
      return session
    }
    if (early.length > 0) requireRepeatable(pipeline, state, early, options.clock.now())
    await checkpoint.close()
    const given = invalidationOf(state, { partitions: early, shards: lost })
    await invalidate(store, state, given)
    const why = early.length > 0 ? 'windows were done before they ended' : 'open shards were damaged'
    options.observer.log('warn', `${why}; the partitions concerned are exported anew`, {
      partitions: given.partitions.size,
      rows: given.rows,
    })
    return null
  } catch (error) {
    await shards?.close()
    await checkpoint.close()
    throw error
  }
}

/** The files with the ids of unfinished chains. */
function idFiles(state: CheckpointState): ReadonlySet<string> {
  const paths = new Set<string>()
  for (const { chain, ids } of state.chains.values()) if (ids !== null) paths.add(idPath(chain, ids.file))
  return paths
}

/** Totals of sealed shards. */
type SealedSoFar = {
  shards: number
  bytes: number
  /** NUL characters that became U+FFFD, in CSV. */
  replacedNuls: number
}

/** The same checkpoint; shards that it seals are logged. @param sealed counts them */
function loggingSeals(checkpoint: Checkpoint, sealed: SealedSoFar, log: RunObserver['log']): Checkpoint {
  return {
    ...checkpoint,
    async append(entries) {
      await checkpoint.append(entries)
      for (const entry of entries) {
        if (entry.kind !== 'seal') continue
        const { path, rows, bytes, replaced = 0 } = entry
        sealed.shards++
        sealed.bytes += bytes
        sealed.replacedNuls += replaced
        log('info', 'shard sealed', { event: 'shard.sealed', path, rows, bytes })
      }
    },
  }
}

/** The open shards of a pipeline, by its checkpoint. */
export function openShards(
  { load }: Pick<NamedPipeline, 'load'>,
  store: Store,
  { coder, encodeBuffer }: Pick<Cpu, 'coder' | 'encodeBuffer'>,
  checkpoint: Checkpoint,
  observer: Pick<RunObserver, 'log' | 'shard'>,
): ShardSet {
  const { state } = checkpoint
  return new ShardSet({
    store,
    coder,
    encodeBuffer,
    journal: checkpoint,
    extension: shardExtension(load.format),
    rowGroupRows: rowGroupRows(load.format),
    shardRows: load.shardRows,
    nextShard: state.nextShard,
    partsOf: (folder) => state.partsOf.get(folder) ?? 0,
    held: state.held,
    warn: (message) => observer.log('warn', message),
    onPublished: (entry) => {
      observer.log('info', 'shard published', { event: 'shard.published', path: entry.path })
      observer.shard?.(manifestShard(entry))
    },
  })
}

/** The settings for decoding pages. */
function decodePlan(pipeline: Pipeline, maskKey: Uint8Array | null): DecodePlan {
  const { extract, transform } = pipeline
  return {
    resource: extract.resource,
    columns: columnsOf(pipeline),
    extras: transform.extraColumns,
    order: extract.order,
    secret: transform.secret,
    identity: transform.identity,
    maskKey,
  }
}

/** The settings for encoding shards. */
export function encodePlan(
  pipeline: Pipeline,
  { version, build }: Pick<RunOptions, 'version' | 'build'>,
): EncodePlan {
  const { name, transform, load } = pipeline
  const columns = columnsOf(pipeline)
  return {
    format: load.format,
    columns,
    // In this exact form: parquet-java ignores the statistics of a writer whose name it can't parse.
    createdBy: `spillway version ${version} (build ${build})`,
    fileMetadata: {
      'spillway.pipeline': name,
      'spillway.masking': JSON.stringify({ secret: transform.secret, identity: transform.identity }),
      'spillway.columns': JSON.stringify(
        Object.fromEntries(columns.map((column) => [column.name, column.meaning])),
      ),
    },
  }
}

/**
 * A decoder whose pages hold known secrets only in their rows, which are the data itself: not in names of unknown
 * fields, nor in quarantine. A cursor with a secret can't be stored, so the chain fails.
 * @param release gets a page that is discarded because of its cursor
 */
function withoutSecrets(decode: DecodePage, release: (page: DecodedPage) => void): DecodePage {
  return async (body, context) => {
    const page = await decode(body, context)
    if (page.next !== null && isKept(page.next) && repeatsSecret(page.next, 'long')) {
      release(page)
      throw secretInCursor(context)
    }
    return {
      ...page,
      unknownFields: namesWithoutSecrets(page.unknownFields),
      quarantined: page.quarantined.map(clearedItem),
    }
  }
}

/** A longer one is rejected for its length and need not be searched. */
function isKept(cursor: string): boolean {
  return Buffer.byteLength(cursor) <= MAX_CURSOR_BYTES
}

function namesWithoutSecrets(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const cleared = new Map<string, number>()
  for (const [name, times] of Object.entries(counts)) {
    const shown = unlessSecret(name)
    cleared.set(shown, (cleared.get(shown) ?? 0) + times)
  }
  return Object.fromEntries(cleared)
}

function clearedItem(quarantined: RefusedItem): RefusedItem {
  const { issues, item } = quarantined
  return { ...quarantined, issues: cleared(issues) as RefusedItem['issues'], item: cleared(item) }
}

/** The same value without strings, or names of fields, that repeat a secret. */
function cleared(value: unknown): unknown {
  if (typeof value === 'string') return unlessSecret(value, 'long')
  if (Array.isArray(value)) return value.map(cleared)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [unlessSecret(name, 'long'), cleared(inner)]),
  )
}

function secretInCursor({ partition, page }: PageContext): ExportError {
  return new ExportError(
    'data',
    `The cursor that the service sent can not be stored: ${LEFT_OUT}`,
    `${partition}, page ${page + 1}`,
    'Choose windows so short that each fits on one page, and report it to the service.',
  )
}
