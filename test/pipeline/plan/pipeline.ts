import {
  type Micros,
  type NamedPipeline,
  type NamedQuery,
  nameQuery,
  type Order,
  type PartitionBy,
  parseInstant,
  type Window,
  type WindowSettings,
  windowRange,
} from '../../../src/core/index.ts'
import type { Begun, BegunChain } from '../../../src/pipeline/index.ts'
import { read, withLine } from '../pipeline-file.ts'

export const at = (text: string): Micros => parseInstant(text) ?? Number.NaN
export const NOW = at('2030-01-01')
export const HOUR = 3_600_000_000

const READ = await read(withLine('transform', 'columns: [id, hash, imported_at]'))

export type Wanted = {
  readonly queries?: readonly NamedQuery[]
  /** Without `perChain`: null. */
  readonly windows?: (Omit<WindowSettings, 'perChain'> & Partial<WindowSettings>) | null
  readonly partitionBy?: readonly PartitionBy[]
  readonly order?: Order
}

/** A pipeline with these queries and windows; everything else is the default. */
export function pipelineOf({
  queries = [domain('acme.com')],
  windows = null,
  partitionBy = ['query', 'window'],
  order = 'asc',
}: Wanted): NamedPipeline {
  return {
    ...READ,
    file: 'acme.yaml',
    locations: {},
    extract: {
      ...READ.extract,
      unfiltered: null,
      queries,
      windows: windows === null ? null : { perChain: null, ...windows },
      order,
    },
    load: { ...READ.load, partitionBy },
  }
}

export function domain(fqdn: string): NamedQuery {
  return nameQuery({ type: 'domain', fqdn }, fqdn)
}

export type BegunWindow = { readonly window: Window | null; readonly done: boolean }

/** The state of a query as a plan reads it. */
export function begunOf(windows: readonly BegunWindow[], chains: readonly BegunChain[] = []): Begun {
  return { windows: new Map(windows.map(({ window, done }) => [windowRange(window), { done }])), chains }
}
