import type { Pipeline } from '../core/index.ts'
import { planRedo } from './data-set/invalidate.ts'
import { readNamed } from './status.ts'
import type { Problem } from './verify/verify.ts'

/** What it takes to mend a data set. */
export type Repair = {
  /** Partitions to be exported anew; none where a plain run mends all. */
  readonly redo: readonly string[]
  readonly rows: number
  readonly shards: number
  /** Pages that they took when they were exported. */
  readonly pages: number
}

/**
 * Says what has to be exported anew so that nothing is off any more; changes nothing. A file that is no committed shard needs
 * no more than a run: strangers are set aside, and the manifest is written anew.
 * @param maskKey as for `readStatus`
 * @throws ExportError `config` when rows would be lost that the pipeline no longer requests
 */
export async function planRepair(
  given: Pipeline,
  problems: readonly Problem[],
  nowMs: number,
  maskKey: Uint8Array | null = null,
): Promise<Repair> {
  const { pipeline, state } = await readNamed(given, maskKey)
  const paths = new Set(problems.map(({ path }) => path))
  const damaged = new Set<string>()
  for (const { path, partitions } of state?.shards ?? []) {
    if (paths.has(path)) for (const key of partitions) damaged.add(key)
  }
  if (damaged.size === 0) return { redo: [], rows: 0, shards: 0, pages: 0 }
  const redo = await planRedo(pipeline, state, [...damaged], nowMs)
  return {
    redo: [...damaged],
    rows: redo?.rows ?? 0,
    shards: redo?.invalidated.length ?? 0,
    pages: redo?.pages ?? 0,
  }
}
