import {
  ExportError,
  isExportError,
  type NamedQuery,
  type OwnStore,
  partition,
  type WindowRun,
} from '../../core/index.ts'
import { openShardPath, ownsFolder, quarantinePath, type ShardSet } from '../../load/index.ts'
import { planWindows } from '../../plan/index.ts'
import { type Checkpoint, type Fact, ID_FOLDER, openPart } from '../../state/index.ts'
import { exportAll, Tally } from '../chains/index.ts'
import { begunOf, survey } from '../data-set/index.ts'
import { openShards, type Session } from '../session/index.ts'
import { withPlace } from '../setting/index.ts'
import type { Bench } from './bench.ts'
import { openChainStore } from './chain-store.ts'

/** One chain of a plan, as the process that holds it has it. */
export type Part = {
  /** Its place in the plan. */
  readonly number: number
  /** Which holder this process is, from 1 on. */
  readonly fence: number
  readonly query: NamedQuery
  readonly windows: WindowRun
  /** What is on record of it. */
  readonly lines: readonly string[]
  /** Puts a line on record; fails with `locked` when the chain is another's by now. */
  readonly put: (line: string) => Promise<void>
  /** Gives a shard of a folder that chains share its number. @param before shards that were there when the run began */
  readonly allotPart: (folder: string, before: number) => Promise<number>
  /** Aborts to have it stop asking and commit what is in hand. */
  readonly stop: AbortSignal
}

export type PartEnding = {
  /** Why it has not come to its end; null: it has. */
  readonly error: ExportError | null
  /** Partitions that failed, the first hundred, with why. */
  readonly failures: readonly { readonly partition: string; readonly message: string }[]
  readonly failed: number
  /** Why items were set aside, and how many. */
  readonly reasons: Readonly<Record<string, number>>
  readonly replacedNuls: number
}

/** Numbers of chains and shards that each part of a plan has for itself. */
const STRIDE = 1_000_000

/** Follows one chain of a plan to its end, from wherever it stands, with all that comes of it: shards and lines. */
export async function exportPart(bench: Bench, part: Part): Promise<PartEnding> {
  try {
    return await exportIt(bench, part)
  } catch (error) {
    if (!isExportError(error)) throw error
    const none = { failures: [], failed: 0, reasons: {}, replacedNuls: 0 }
    return {
      error: withPlace(bench.pipeline, error),
      ...none,
    }
  }
}

async function exportIt(bench: Bench, part: Part): Promise<PartEnding> {
  const { pipeline, data, secrets, before, cpu, buffers, service, options } = bench
  const { number, query, windows } = part
  const checkpoint = openPart(before.header, part.lines, part.put)
  const { state } = checkpoint
  const firstChain = before.nextChain + number * STRIDE
  const store = await openChainStore(
    data,
    { run: bench.run, chain: number, fence: part.fence },
    growingFilesOf(part, firstChain),
  )
  let chains = Math.max(firstChain, state.nextChain)
  const session: Session = {
    checkpoint,
    cpu,
    buffers,
    shards: shardsOf(bench, part, checkpoint, store, (facts) => session.onRecorded(facts)),
    onRecorded: () => {},
    nextChain: () => chains++,
    async close() {
      await session.shards.close()
      await checkpoint.close()
    },
  }
  try {
    await settle(session, store)
    const begun = begunOf(query.name, state, [...state.chains.values()])
    const plan = planWindows(query, windows, begun)
    const work = survey(pipeline, plan, state)
    const tally = new Tally(work)
    session.onRecorded = (facts) => tally.recorded(facts)
    const { error } = await exportAll({
      pipeline: { ...pipeline, extract: { ...pipeline.extract, concurrency: 1 } },
      store,
      session,
      plan,
      work,
      tally,
      secrets,
      options: { ...options, stop: part.stop },
      months: { settle: async () => {} },
      service,
    })
    // What is left in its folder is for whoever goes on with it.
    if (state.chains.size === 0 && state.openShards.size === 0) await store.leave()
    const { failures, failed, reasons, replacedNuls } = tally
    return { error, failures, failed, reasons: reasons ?? {}, replacedNuls }
  } finally {
    await session.close()
  }
}

function shardsOf(
  { pipeline, before, cpu, workplace, options }: Bench,
  { number, allotPart }: Part,
  checkpoint: Checkpoint,
  store: OwnStore,
  onRecorded: (facts: readonly Fact[]) => void,
): ShardSet<Fact> {
  const { extract, load } = pipeline
  const { state } = checkpoint
  const partsBefore = (folder: string): number => before.partsOf.get(folder) ?? 0
  const isShared = !ownsFolder(extract.resource, load.partitionBy)
  return openShards(
    pipeline,
    { store, cpu, checkpoint, observer: options.observer, onRecorded },
    {
      workplace,
      nextShard: Math.max(before.nextShard + number * STRIDE, state.nextShard),
      partsOf: (folder) => Math.max(partsBefore(folder), state.partsOf.get(folder) ?? 0),
      ...(isShared && { allotPart: (folder: string) => allotPart(folder, partsBefore(folder)) }),
    },
  )
}

/** Gives shards their names that a crash kept them from, and takes up those that are open. */
async function settle({ checkpoint: { state }, shards }: Session, store: OwnStore): Promise<void> {
  for (const { shard, path, bytes } of state.shards) {
    const size = await store.size(path)
    if (size === bytes) continue
    if (size === null && (await store.size(openShardPath(shard))) === bytes) {
      await store.publish(openShardPath(shard), path)
      continue
    }
    throw new ExportError(
      'damaged',
      size === null
        ? 'A finished shard is missing'
        : `A finished shard holds ${size} bytes instead of ${bytes}`,
      path,
      'Put it back as it was and submit again, or start over with --fresh.',
    )
  }
  const lost = await shards.restore(state.openShards.values())
  if (lost.size === 0) return
  throw new ExportError(
    'damaged',
    'Rows of an open shard are damaged or gone',
    [...state.openShards.values()].find(({ shard }) => lost.has(shard))?.folder ?? '',
    'Put _state back as it was and submit again, or start over with --fresh.',
  )
}

/** Files of a chain that are added to under names that they keep. */
function growingFilesOf({ query, windows }: Part, firstChain: number): (path: string) => boolean {
  // Asked for only where somebody held the chain before.
  let own: Set<string> | null = null
  const quarantineFiles = (): Set<string> => {
    const keys = Array.from({ length: windows.count }, (_, place) => partition(query, windows.at(place)).key)
    return new Set(keys.map(quarantinePath))
  }
  return (path) => {
    if (!path.startsWith(`${ID_FOLDER}/`)) {
      own ??= quarantineFiles()
      return own.has(path)
    }
    const chain = Number.parseInt(path.slice(ID_FOLDER.length + 1), 10)
    return chain >= firstChain && chain < firstChain + STRIDE
  }
}
