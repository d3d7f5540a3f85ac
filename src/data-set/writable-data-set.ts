import {
  ExportError,
  isExportError,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
  type Store,
} from '../core/index.ts'
import { mayHaveTables, type RestCatalog } from '../open-tables/index.ts'
import {
  type CheckpointState,
  type Journal,
  MANIFEST_PATH,
  readBlob,
  type SealedShard,
} from '../state/index.ts'
import { admitChange, admitMark } from './admission.ts'
import { type Change, commitChange, writeFiles } from './change.ts'
import { DataSet, type Place } from './data-set.ts'
import { isBegun, knownState } from './open/find-state.ts'
import { openChecked } from './open/open-checked.ts'
import { namingLocations, nothingExported, openStore } from './open-store.ts'
import type { ChangeOptions, WriteOptions } from './options.ts'
import { namePipeline } from './queries.ts'
import { isOfCatalog, withCatalog } from './settle/catalog.ts'
import { type SettleOptions, settle } from './settle/settle.ts'

/** A data set that is opened to be changed: it can be written to within {@link change} and {@link settled}, and nowhere else. */
export class WritableDataSet extends DataSet {
  /** @throws ExportError `config` where tables could not follow */
  static override open(place: Place): Promise<WritableDataSet> {
    const { pipeline, unknown } = place
    return namingLocations(pipeline, async () => {
      const store = openStore(pipeline)
      if (unknown !== null && mayHaveTables(await store.list('')))
        throw new ExportError({
          kind: 'config',
          what: 'There are tables over the shards, and only the pipeline file says which and where they are',
          where: '.',
          next: 'Give the pipeline file in place of the path.',
        })
      return new WritableDataSet(place, store, { ...(await knownState(store)), listed: null })
    })
  }

  static override of(pipeline: Pipeline): Promise<WritableDataSet> {
    return WritableDataSet.open({ pipeline, unknown: null, invalid: null, maskKey: null })
  }

  /**
   * The one way to change its shards. Without a lock where nothing may be written, or is there.
   * @param plan changes nothing itself; it is made anew under the lock @returns the shards that came, too
   * @param goes numbers of shards that go as they are, and need not be whole
   * @throws ExportError `locked` when a run holds it, `config` when it is another's, or tables could not follow
   */
  async change<Result>(
    options: ChangeOptions & { readonly goes?: readonly number[] },
    plan: (at: ChangedDataSet) => Change<Result> | Promise<Change<Result>>,
  ): Promise<{ readonly result: Result; readonly came: readonly SealedShard[] }> {
    const { dryRun = false } = options
    const pipeline = namePipeline(this.pipeline, options.maskKey)
    if (dryRun || !(await this.#isBegun())) {
      const { result, files } = await this.named(async () => {
        const { store } = this
        const state = this.known()
        if (state !== null) await admitChange(pipeline, store, state)
        return plan({ pipeline, store, state, read: (ref) => readBlob(store, ref) })
      })
      // The lock would create the folder.
      if (dryRun || files.length === 0) return { result, came: [] }
    }
    const accept: Accept = async (store, state) => {
      await admitChange(pipeline, store, state)
      return options.goes ?? []
    }
    return this.#open(pipeline, options, accept, async ({ store, journal, catalog }) => {
      if (journal === null) {
        const { result, files } = await plan({ pipeline, store, state: null, read: async () => null })
        await writeFiles(store, files)
        return { result, came: [] }
      }
      const change = await plan({ pipeline, store, state: journal.state, read: (ref) => journal.read(ref) })
      const came = await commitChange(pipeline, store, journal, change, options)
      await settle(pipeline, store, journal, { ...options, catalog })
      return { result: change.result, came }
    })
  }

  /**
   * Brings all in line, for a command that itself commits nothing. A catalog that is out of reach is tried again by the
   * next command. @throws ExportError `config` when nothing is exported
   */
  async settled<T>(
    options: WriteOptions & Pick<SettleOptions, 'rebuild' | 'onTables'>,
    work: (at: SettledDataSet) => Promise<T>,
  ): Promise<T> {
    // Before the lock, which would create the folder, also if there is no data set.
    if ((await this.named(() => this.store.size(MANIFEST_PATH))) === null)
      throw nothingExported(this.pipeline)
    const pipeline = namePipeline(this.pipeline, options.maskKey)
    const accept: Accept = async (store, state) => {
      await admitMark(pipeline, store, state, options.rebuild ?? false)
      return []
    }
    return this.#open(pipeline, options, accept, async ({ store, journal, catalog }) => {
      if (journal === null) return work({ store, state: null, failure: null })
      const failure = await settle(pipeline, store, journal, { ...options, catalog }).then(
        () => null,
        (error: unknown) => {
          if (isExportError(error) && isOfCatalog(error)) return error
          throw error
        },
      )
      return work({ store, state: journal.state, failure })
    })
  }

  async #isBegun(): Promise<boolean> {
    return this.state !== null || this.fault !== null || (await this.named(() => isBegun(this.store)))
  }

  #open<T>(
    pipeline: NamedPipeline,
    options: WriteOptions,
    accept: Accept,
    work: (opened: Opened) => Promise<T>,
  ): Promise<T> {
    return this.hold(options, (store) =>
      withCatalog(pipeline, store, options, false, async (catalog) => {
        const journal = await openChecked(store, null, (state) => accept(store, state))
        try {
          return await work({ store, journal, catalog })
        } finally {
          await journal?.close()
        }
      }),
    )
  }
}

/** A data set for a change of its shards: under its lock, or as it was found. */
export type ChangedDataSet = Pick<Journal, 'read'> & {
  readonly pipeline: NamedPipeline
  readonly store: Store
  /** null: nothing has begun. */
  readonly state: CheckpointState | null
}

export type SettledDataSet = {
  readonly store: OwnedStore
  /** null: nothing has begun. */
  readonly state: CheckpointState | null
  /** Why the catalog is behind; null: it is not. */
  readonly failure: ExportError | null
}

type Opened = {
  readonly store: OwnedStore
  /** null: nothing has begun. */
  readonly journal: Journal | null
  readonly catalog: RestCatalog | null
}

/** Refuses a state, or gives the shards that go and need not be whole. */
type Accept = (store: Store, state: CheckpointState) => Promise<readonly number[]>
