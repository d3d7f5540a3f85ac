import {
  ExportError,
  isExportError,
  nullIf,
  type OwnedStore,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import {
  type CheckpointState,
  isKeyOf,
  MANIFEST_PATH,
  type Manifest,
  parseManifest,
  type Verdict,
} from '../state/index.ts'
import { knownState } from './open/find-state.ts'
import { namingLocations, nothingExported, openStore, withLock } from './open-store.ts'
import type { WriteOptions } from './options.ts'
import { readVerdict } from './plan/verdict.ts'
import { asToldBy, differences, plannedBy, toldByManifest, withChanges } from './told.ts'

export type Place = {
  /** What the file says. Only the place, tables, `load.keep` and the name of the mask key are taken from it. */
  readonly pipeline: Pipeline
  /** Why the rest of it is not known; null: it is. */
  readonly unknown: ExportError | null
  /** Why a run with the file would be refused; null: it is valid, or only the path of a data set was given. */
  readonly invalid: ExportError | null
  /** The names of queries may need it; null: there is none. */
  readonly maskKey: Uint8Array | null
}

/** Readers know it by its manifest, others by its checkpoint, which may be ahead. Who changes one opens a `WritableDataSet`. */
export type Use = 'read' | 'status' | 'change'

/** A data set as a command finds it, read once. */
export class DataSet {
  readonly store: Store
  /** Null for readers, where nothing has begun, and where it cannot be read: see {@link DataSet.known}. */
  readonly state: CheckpointState | null
  /** As if its file still said what the data set was exported with. */
  readonly pipeline: Pipeline
  /** The same, with the queries, windows and columns that the file plans, where it is known. */
  readonly planned: Pipeline
  /** How the file differs from that; empty: it does not, or is not known. */
  readonly differences: readonly string[]
  readonly invalid: ExportError | null
  /** The manifest as it was read, for readers alone; null also where it cannot be read. */
  readonly listed: Listed | null
  protected readonly fault: ExportError | null

  protected constructor({ pipeline, unknown, invalid, maskKey }: Place, store: Store, found: Found) {
    const { state, fault, listed } = found
    const told = listed === null ? state : toldByManifest(listed.manifest)
    if (told === null && unknown !== null) throw unknown
    const isKnown = told !== null && unknown === null
    const exported = told === null ? pipeline : asToldBy(pipeline, told)
    const key = told !== null && isKeyOf(told.header.settings, maskKey) ? maskKey : null
    this.store = store
    this.state = state
    this.pipeline = isKnown ? withChanges(exported, pipeline) : exported
    this.planned = isKnown ? plannedBy(pipeline, this.pipeline, key) : exported
    this.differences = isKnown ? differences(pipeline, told, key) : []
    this.invalid = invalid
    this.fault = fault
    this.listed = listed
  }

  /** Before anything is exported, the file decides. @throws ExportError `config` when it does not say what to export */
  static open(place: Place, use: 'read' | 'status'): Promise<DataSet> {
    return namingLocations(place.pipeline, async () => {
      const store = openStore(place.pipeline)
      const listed = use === 'read' ? await readListed(store).catch(nullIf('damaged')) : null
      const { state, fault } = listed === null ? await knownState(store) : NOT_READ
      return new DataSet(place, store, { state, fault, listed })
    })
  }

  /** For a pipeline that is whole. */
  static of(
    pipeline: Pipeline,
    use: 'read' | 'status' = 'read',
    maskKey: Uint8Array | null = null,
  ): Promise<DataSet> {
    return DataSet.open({ pipeline, unknown: null, invalid: null, maskKey }, use)
  }

  /** null: nothing has begun. @throws ExportError why it cannot be read */
  known(): CheckpointState | null {
    if (this.fault !== null) throw this.fault
    return this.state
  }

  /**
   * Another command may replace the manifest and remove shards meanwhile: a failure, or a result that `isProblem`, counts
   * only if the manifest is still the same, else all is read again.
   */
  steadily<T>(
    read: (bytes: Uint8Array | null) => Promise<T>,
    isProblem: (result: T) => boolean = () => false,
    mayRepeat: () => boolean = () => true,
  ): Promise<T> {
    return this.named(async () => {
      for (let bytes = this.listed?.bytes ?? (await this.store.read(MANIFEST_PATH)); ; ) {
        let result: { readonly value: T } | null = null
        let failure: unknown = null
        try {
          result = { value: await read(bytes) }
          if (!isProblem(result.value)) return result.value
        } catch (error) {
          if (!isExportError(error)) throw error
          failure = error
        }
        const again = await this.store.read(MANIFEST_PATH)
        if (isSame(bytes, again) || !mayRepeat()) {
          if (result === null) throw failure
          return result.value
        }
        bytes = again
      }
    })
  }

  /** The same of a manifest that is there. @throws ExportError `config` when nothing is exported */
  reading<T>(
    read: (manifest: Manifest, bytes: Uint8Array) => Promise<T>,
    mayRepeat?: () => boolean,
  ): Promise<T> {
    const { listed } = this
    const known = (bytes: Uint8Array | null): Promise<T> => {
      if (bytes === null) throw nothingExported(this.pipeline)
      return read(bytes === listed?.bytes ? listed.manifest : parseManifest(bytes), bytes)
    }
    return this.steadily(known, undefined, mayRepeat)
  }

  /** @throws ExportError `damaged` with the first shard that is missing or has another length */
  async requireListed({ shards }: Manifest): Promise<void> {
    const expected = shards.map(({ path, bytes }) => ({ path, bytes }))
    const [first, ...others] = await this.store.mismatches(expected)
    if (first === undefined) return
    const more = others.length === 0 ? '' : `, and ${others.length} more`
    throw new ExportError({
      kind: 'damaged',
      what: `A shard is missing or not as long as the manifest says${more}`,
      where: first.path,
      next: 'List the differences with `verify`, which prints the command that repairs them.',
    })
  }

  named<T>(work: () => Promise<T>): Promise<T> {
    return namingLocations(this.pipeline, work)
  }

  /** As it is now. */
  verdict(): Promise<Verdict> {
    return this.named(async () => {
      const { state, fault } = await knownState(this.store)
      return readVerdict(this.store, this.planned, state, { fault, atWork: 'perhaps' })
    })
  }

  /** Holds the lock alone, which the summary page needs. @throws ExportError `locked` when a run holds it */
  hold<T>(
    options: Pick<WriteOptions, 'clock' | 'stop' | 'onLog'>,
    work: (store: OwnedStore) => Promise<T>,
  ): Promise<T> {
    const pipeline = this.pipeline
    return this.named(() => withLock(pipeline, options, ({ store }) => work(store)))
  }
}

type Listed = { readonly bytes: Uint8Array; readonly manifest: Manifest }

type Found = Awaited<ReturnType<typeof knownState>> & { readonly listed: Listed | null }

const NOT_READ = { state: null, fault: null }

export function isSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0
}

async function readListed(store: Store): Promise<Listed | null> {
  const bytes = await store.read(MANIFEST_PATH)
  return bytes === null ? null : { bytes, manifest: parseManifest(bytes) }
}
