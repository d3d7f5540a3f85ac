import {
  type ExportError,
  isExportError,
  type NamedPipeline,
  type OwnedStore,
  type Store,
} from '../core/index.ts'
import { type RestCatalog, requireTablesToFollow } from '../open-tables/index.ts'
import { type CheckpointState, checkMaskKey, type Journal } from '../state/index.ts'
import { refuseLinks } from './open/links.ts'
import { openChecked } from './open/open-checked.ts'
import { requireOwnCheckpoint } from './open/open-checkpoint.ts'
import { holdDataSet } from './open-store.ts'
import type { DataSetOptions } from './options.ts'
import { isOfCatalog, withCatalog } from './settle/catalog.ts'
import { type SettleOptions, settle } from './settle/settle.ts'
import { requireOwnTables } from './settle/update-tables.ts'

export type ChangeOptions = Pick<
  DataSetOptions,
  'clock' | 'stop' | 'onLog' | 'version' | 'build' | 'maskKey' | 'readSecret'
> & {
  /** Only says what would change; also during a run. Default: false. */
  readonly dryRun?: boolean
  /** Called before each shard that is read, and before each that is written, with its number. */
  readonly onShard?: (number: number, of: number) => void
}

type MarkOptions = ChangeOptions & Pick<SettleOptions, 'rebuild' | 'onTables'>

type Asked = {
  readonly pipeline: NamedPipeline
  readonly store: Store
  readonly state: CheckpointState
  readonly options: MarkOptions
}

type Check = (asked: Asked) => void | Promise<void>

const own: Check = ({ pipeline, state }) => requireOwnCheckpoint(pipeline, state)

const ownTables: Check = ({ pipeline, store, options }) =>
  requireOwnTables(pipeline, store, options.rebuild === true)

const tablesFollow: Check = ({ pipeline, store, state }) =>
  requireTablesToFollow(store, { ...pipeline.load.tables, dataSetId: state.header.data_set_id }, state.tables)

const sameMaskKey: Check = ({ pipeline, state, options }) =>
  checkMaskKey(state.header, options.maskKey, pipeline)

/** What has to hold before a command does this to a data set. A run, which may begin one, asks more. */
const ADMISSION = {
  /** Shards change. */
  change: [own, tablesFollow, sameMaskKey],
  /** What is there is brought in line, listed or signed. */
  mark: [own, ownTables],
} as const satisfies Record<string, readonly Check[]>

type Use = keyof typeof ADMISSION

/** @param state null: nothing has begun @throws ExportError */
export async function admit(
  use: Use,
  { state, ...asked }: Omit<Asked, 'state'> & { readonly state: CheckpointState | null },
): Promise<void> {
  if (state !== null) for (const check of ADMISSION[use]) await check({ ...asked, state })
}

export type Held = {
  readonly store: OwnedStore
  /** null: nothing has begun. */
  readonly journal: Journal | null
  readonly catalog: RestCatalog | null
}

/**
 * The one way to change a data set that is there. @param goes numbers of shards that go as they are, and need not be whole
 * @throws ExportError `locked` when a run holds it, and as {@link admit} and `openChecked`
 */
export function holdToChange<T>(
  pipeline: NamedPipeline,
  options: ChangeOptions,
  goes: (state: CheckpointState) => readonly number[],
  work: (held: Held) => Promise<T>,
): Promise<T> {
  return holdFor('change', pipeline, options, goes, work)
}

/**
 * For a command that itself commits nothing: the data set is settled first. A catalog that is out of reach is tried again
 * by the next command. @param work gets why it is behind; null: it is not
 */
export function holdSettled<T>(
  pipeline: NamedPipeline,
  options: MarkOptions,
  work: (store: OwnedStore, failure: ExportError | null) => Promise<T>,
): Promise<T> {
  return holdFor(
    'mark',
    pipeline,
    options,
    () => [],
    async ({ store, journal, catalog }) => {
      if (journal === null) return work(store, null)
      const settled = settle(pipeline, store, journal, { ...options, catalog })
      const failure = await settled.then(
        () => null,
        (error: unknown) => {
          if (isExportError(error) && isOfCatalog(error)) return error
          throw error
        },
      )
      return work(store, failure)
    },
  )
}

function holdFor<T>(
  use: Use,
  pipeline: NamedPipeline,
  options: MarkOptions,
  goes: (state: CheckpointState) => readonly number[],
  work: (held: Held) => Promise<T>,
): Promise<T> {
  const { clock, stop, onLog } = options
  const warn = (message: string): void => onLog('warn', message)
  return holdDataSet(pipeline, { clock, stop, warn }, ({ store }) =>
    withCatalog(pipeline, store, options, false, async (catalog) => {
      await refuseLinks(store)
      const journal = await openChecked(store, null, async (state) => {
        await admit(use, { pipeline, store, state, options })
        return state === null ? [] : goes(state)
      })
      try {
        return await work({ store, journal, catalog })
      } finally {
        await journal?.close()
      }
    }),
  )
}
