import { windowRange } from '../../../core/index.ts'
import type { ExtractedPage } from '../../../extract/index.ts'
import { folderOf, ownsFolder } from '../../../load/index.ts'
import { encodeIds, type JournalEntry, type PageEntry, schemaToJson } from '../../../state/index.ts'
import type { Session } from '../../session.ts'
import type { Chain, PageChange, SplitPage } from '../chain.ts'
import { failedEntry, haltAfter } from '../chain-failure.ts'
import type { ChainsContext } from '../run-context.ts'
import { excessesOf, invalidItemOf, type PartitionFault, quarantineOf } from './quarantine.ts'
import { splitByWindow } from './split-by-window.ts'

/**
 * Commits a page of a chain: not before the page before it, which may hand windows over to other chains.
 * @returns the fault of a partition in progress that has too many rejected items with it; null: none has
 * @throws PartitionFault for any rejected item under `on_invalid: fail`: then it is not committed
 */
export async function commitPage(
  extracted: ExtractedPage,
  chain: Chain,
  run: ChainsContext,
): Promise<PartitionFault | null> {
  const { session, measurements, tally } = run
  const { transform } = run.pipeline
  const split = splitByWindow(extracted, chain, (index) => folderAt(index, chain, run))
  const invalid = invalidItemOf(split, chain, transform)
  if (invalid !== null) throw invalid
  const change = chain.after(split)
  const ended = excessesOf(split, chain, transform, change.finished)
  const [excess = null] = excessesOf(split, chain, transform, change.inProgress)
  const { before, page, blobs } = entriesOf(split, chain, change, session)
  const advanced = chain.advanced
  await session.shards.commit({
    slices: split.slices,
    close: foldersToClose(change, split, chain, run),
    entries: (placement) => [
      ...before,
      { ...page, ...placement },
      ...measurements.entries([split.size, split.ms]),
      ...ended.map((fault) => failedEntry(chain, fault.index, fault, 0, true)),
    ],
    blobs,
  })
  chain.committed(change)
  tally.advanced += chain.advanced - advanced
  const failed = new Set(ended.map(({ index }) => index))
  const finished = change.finished.filter((index) => !failed.has(index))
  tally.committed(chain, split, change, finished)
  for (const fault of ended) {
    tally.fail(chain, fault.index, fault, 0)
    haltAfter(fault, run)
  }
  await measurements.enterMonth(session.journal)
  return excess
}

function folderAt(index: number, chain: Chain, { pipeline: { extract, load } }: ChainsContext): string {
  return folderOf(extract.resource, chain.partitionAt(index), load.partitionBy)
}

/** What a page adds to the journal, without the places of its rows. */
function entriesOf(
  split: SplitPage,
  chain: Chain,
  change: PageChange,
  session: Pick<Session, 'journal' | 'own'>,
): { readonly before: readonly JournalEntry[]; readonly page: PageEntry; readonly blobs: Uint8Array[] } {
  const { page, requests, size, forgotten } = split
  const quarantine = quarantineOf(split, chain)
  const blobs: Uint8Array[] = quarantine.map(({ lines }) => lines)
  const { ids } = change
  return {
    before: [...(change.hasSchema ? newSchema(chain, session) : []), ...change.before],
    page: {
      kind: 'page',
      chain: chain.chain,
      next: page.next,
      requests,
      size: size === chain.folded?.size ? undefined : size,
      quarantine:
        quarantine.length === 0
          ? undefined
          : quarantine.map(({ window, items }, blob) => ({ window, items, blob })),
      forgotten: forgotten.size === 0 ? undefined : byWindow(forgotten, chain),
      ids:
        ids === null
          ? undefined
          : { blob: blobs.push(encodeIds({ ids: page.ids, until: ids.until })) - 1, keep: ids.keep },
      ...change.entry,
      unknown_fields: Object.keys(page.unknownFields).length === 0 ? undefined : page.unknownFields,
    },
    blobs,
  }
}

/** A data set gains columns with the first rows that have them. */
function newSchema({ schema }: Chain, { journal, own }: Pick<Session, 'journal' | 'own'>): JournalEntry[] {
  if (schema !== own.number || own.number < journal.state.schemas.length) return []
  return [{ kind: 'schema', schema: own.number, ...schemaToJson(own.schema) }]
}

function byWindow(items: ReadonlyMap<number, number>, chain: Chain): NonNullable<PageEntry['forgotten']> {
  return [...items].map(([index, items]) => ({ window: windowRange(chain.windowAt(index)), items }))
}

/** Folders that can get no more rows and may have an open shard. */
function foldersToClose(
  { finished, reopened }: PageChange,
  { rows }: SplitPage,
  chain: Chain,
  run: ChainsContext,
): readonly string[] {
  const { pipeline, counts } = run
  if (ownsFolder(pipeline.extract.resource, pipeline.load.partitionBy)) {
    const hasRows = (index: number): boolean => rows.has(index) || (chain.foldedAt(index)?.rows ?? 0) > 0
    return finished.filter(hasRows).map((index) => folderAt(index, chain, run))
  }
  const { unfinished } = counts
  const change = (index: number, by: number): readonly string[] => {
    const folder = folderAt(index, chain, run)
    const left = (unfinished.get(folder) ?? 0) + by
    if (left > 0) unfinished.set(folder, left)
    else unfinished.delete(folder)
    return left > 0 ? [] : [folder]
  }
  for (const index of reopened) change(index, 1)
  return finished.flatMap((index) => change(index, -1))
}
