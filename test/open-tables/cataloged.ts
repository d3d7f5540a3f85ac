import { parseInstant } from '../../src/core/index.ts'
import { compactDataSet, forgetPeople, pruneDataSet } from '../../src/data-set/index.ts'
import type { Fields } from '../run/world.ts'
import { type RestCatalog, startCatalog } from './rest-catalog.ts'
import { itemsOf, type TableWorld, tableWorld } from './world.ts'

const DAYS = ['2024-01-05', '2024-01-06', '2024-02-10', '2024-02-11', '2024-03-03']
export const TOKEN = 'a-token-of-the-catalog'
export const OURS = { warehouse: 'lake', namespace: 'leaks', table: 'acme', token_env: 'CATALOG_TOKEN' }

export type Cataloged = { readonly world: TableWorld; readonly catalog: RestCatalog }

/** A data set whose Iceberg table a catalog shows. @param given other settings of the catalog */
export async function cataloged(
  given: object = {},
  items: readonly Fields[] = itemsOf(...DAYS),
): Promise<Cataloged> {
  const catalog = await startCatalog()
  catalog.tokens = new Set([TOKEN])
  const world = await tableWorld(items, {
    table_formats: ['iceberg'],
    shard_rows: 1,
    catalog: { ...OURS, uri: catalog.url, ...given },
  })
  world.env.CATALOG_TOKEN = TOKEN
  return { world, catalog }
}

const PEOPLE = ['person-1@scatterholt.com']

type Change = (world: TableWorld, more?: { dryRun?: boolean; onShard?: () => void }) => Promise<unknown>

export const CHANGES: Readonly<Record<'a run' | 'redo' | 'forget' | 'prune' | 'compact', Change>> = {
  'a run': (world) => {
    return world.runUntil('2024-04-01')
  },
  redo: (world) => {
    const { items } = world.service
    world.service.items = items.map((item) => ({ ...item, id: (item.id as number) + 10_000 }))
    return world.run({ redo: ['*'] })
  },
  forget: async (world, more) =>
    forgetPeople(await world.opened(), PEOPLE, { ...world.changing(), onShard: () => {}, ...more }),
  prune: async (world, more) =>
    pruneDataSet(await world.opened(), parseInstant('2024-02-15T00:00:00Z')!, {
      ...world.changing(),
      ...more,
    }),
  compact: async (world, more) => {
    // Smaller shards are written together.
    world.load = { ...world.load, shard_rows: 1000 }
    return compactDataSet(await world.opened(), 2, { ...world.changing(), ...more })
  },
}
