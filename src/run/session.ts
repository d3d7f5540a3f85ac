import {
  type BufferPool,
  bufferPool,
  columnsOf,
  type DecodedPage,
  type DecodePage,
  type DecodePlan,
  ExportError,
  FEED_FIELDS,
  LEFT_OUT,
  MAX_CURSOR_BYTES,
  type NamedPipeline,
  type PageContext,
  type Pipeline,
  type RefusedItem,
  repeatsSecret,
  type SuppressList,
  unlessSecret,
} from '../core/index.ts'
import {
  type EncodePlan,
  rowGroupRows,
  ShardSet,
  type ShardSetOptions,
  shardExtension,
} from '../load/index.ts'
import { type Checkpoint, manifestShard } from '../state/index.ts'
import { isKnownField } from '../transform/index.ts'
import { openOwnCheckpoint } from './admission/open-checkpoint.ts'
import { type Cpu, openCpu } from './cpu/cpu.ts'
import { invalidationOf, redoEntry, requireRepeatable } from './data-set/invalidate.ts'
import { earlyPartitions } from './data-set/plan-state.ts'
import type { Owner } from './data-set/recover.ts'
import { readForgotten, readSuppression, requireForgotten } from './data-set/suppression.ts'
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
 * bytes of the log are lost, the partitions that need them are invalidated.
 * @throws ExportError `config` or `damaged` when the run may not resume
 */
export async function openSession(
  pipeline: NamedPipeline,
  owner: Owner,
  secrets: QuerySecrets,
  options: RunOptions,
): Promise<Session> {
  // One for each response in flight or not committed yet, and one more for responses that grow.
  const shared = options.cpu ?? null
  const buffers = shared?.buffers ?? bufferPool(pipeline.extract.concurrency + 1)
  const suppress = await readSuppression(pipeline, owner.store, options)
  const plans = [decodePlan(pipeline, options.maskKey, suppress), encodePlan(pipeline, options)] as const
  const cpu = await openCpu(...plans, buffers, shared)
  try {
    for (;;) {
      const session = await openOnce(pipeline, owner, secrets, { cpu, buffers }, options)
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
  owner: Owner,
  secrets: QuerySecrets,
  { cpu, buffers }: Pick<Session, 'cpu' | 'buffers'>,
  options: RunOptions,
): Promise<Session | null> {
  const checkpoint = await openOwnCheckpoint(pipeline, owner, secrets, options)
  const { state } = checkpoint
  const { log } = options.observer
  try {
    if (state.erasures.length > 0) requireForgotten(await readForgotten(owner.store), state)
    const sealed = { shards: 0, bytes: 0, replacedNuls: 0 }
    const onSealed: ShardSetOptions['onSealed'] = ({ path, rows, bytes, replaced = 0 }) => {
      sealed.shards++
      sealed.bytes += bytes
      sealed.replacedNuls += replaced
      log('info', 'shard sealed', { event: 'shard.sealed', path, rows, bytes })
    }
    const shardOptions = shardSetOptions(pipeline, owner, cpu, checkpoint, options.observer)
    const opened = await ShardSet.open({ ...shardOptions, onSealed }, state.openShards.values())
    const rejected = await lostRejections(checkpoint)
    const early = earlyPartitions(pipeline, options.clock.now(), state)
    if ('set' in opened && rejected.length === 0 && early.length === 0) {
      const shards = opened.set
      let chains = state.nextChain
      return {
        checkpoint,
        sealed,
        cpu,
        decode: withoutSecrets(cpu.decode, cpu.release),
        buffers,
        shards,
        nextChain: () => chains++,
        async close() {
          await shards.close()
          await cpu.close()
          await checkpoint.close()
        },
      }
    }
    if ('set' in opened) await opened.set.close()
    if (early.length > 0) requireRepeatable(pipeline, state, early, options.clock.now())
    const given = invalidationOf(state, {
      partitions: [...rejected, ...early],
      shards: 'lost' in opened ? opened.lost : [],
    })
    await checkpoint.append([redoEntry(given)])
    await checkpoint.close()
    const why =
      early.length > 0 ? 'windows were done before they ended' : 'rows that wait in the log were damaged'
    log('warn', `${why}; the partitions concerned are exported anew`, {
      partitions: given.partitions.size,
      rows: given.rows,
    })
    return null
  } catch (error) {
    await checkpoint.close()
    throw error
  }
}

/** Partitions whose rejected items in the log are lost. */
async function lostRejections(checkpoint: Checkpoint): Promise<readonly string[]> {
  const lost: string[] = []
  for (const [partition, blobs] of checkpoint.state.rejected) {
    for (const ref of blobs) if ((await checkpoint.read(ref)) === null) lost.push(partition)
  }
  return lost
}

/** Totals of sealed shards. */
type SealedSoFar = {
  shards: number
  bytes: number
  /** NUL characters that became U+FFFD, in CSV. */
  replacedNuls: number
}

/** How the open shards of a pipeline go on by its checkpoint. */
export function shardSetOptions(
  { load }: Pick<NamedPipeline, 'load'>,
  { store }: Owner,
  { coder }: Pick<Cpu, 'coder'>,
  checkpoint: Checkpoint,
  observer: Pick<RunObserver, 'log' | 'shard'>,
): ShardSetOptions {
  const { state } = checkpoint
  return {
    store,
    coder,
    log: checkpoint,
    readsCost: load.location.kind !== 'disk',
    extension: shardExtension(load.format),
    rowGroupRows: rowGroupRows(load.format),
    shardRows: load.shardRows,
    nextShard: state.nextShard,
    partsOf: (folder) => state.partsOf.get(folder) ?? 0,
    held: state.held,
    warn: (message) => observer.log('warn', message),
    onSealed: () => {},
    onPublished: (entry) => {
      observer.log('info', 'shard published', { event: 'shard.published', path: entry.path })
      observer.shard?.(manifestShard(entry))
    },
  }
}

/** The settings for decoding pages. */
function decodePlan(
  pipeline: Pipeline,
  maskKey: Uint8Array | null,
  suppress: readonly SuppressList[],
): DecodePlan {
  const { extract, transform } = pipeline
  return {
    resource: extract.resource,
    columns: columnsOf(pipeline),
    extras:
      extract.resource === 'feed' ? [...FEED_FIELDS, ...transform.extraColumns] : transform.extraColumns,
    order: extract.order,
    secret: transform.secret,
    identity: transform.identity,
    maskKey,
    suppress,
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
    // In this exact form: parquet-java ignores the statistics of a writer whose name it cannot parse.
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
 * fields, nor in quarantine. A cursor with a secret cannot be stored, so the chain fails.
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
    const shown = shownName(name)
    cleared.set(shown, (cleared.get(shown) ?? 0) + times)
  }
  return Object.fromEntries(cleared)
}

function clearedItem(quarantined: RefusedItem): RefusedItem {
  const { issues, item } = quarantined
  return {
    ...quarantined,
    issues: issues.map(({ path, message }) => ({ path: unlessSecret(path, 'long'), message })),
    item: cleared(item),
  }
}

/** The same value without strings, or names of fields, that repeat a secret. */
function cleared(value: unknown): unknown {
  if (typeof value === 'string') return unlessSecret(value, 'long')
  if (Array.isArray(value)) return value.map(cleared)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      isKnownField(name) ? name : shownName(name),
      cleared(inner),
    ]),
  )
}

const MAX_NAME_LENGTH = 100

/** The name of a field that the service does not document. It is searched before it is cut. */
function shownName(name: string): string {
  return unlessSecret(name).slice(0, MAX_NAME_LENGTH).toWellFormed()
}

function secretInCursor({ partition, page }: PageContext): ExportError {
  return new ExportError(
    'data',
    `The cursor that the service sent cannot be stored: ${LEFT_OUT}`,
    `${partition}, page ${page + 1}`,
    'Choose windows so short that each fits on one page, and report it to the service.',
  )
}
