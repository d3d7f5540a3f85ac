// Makes a part of a run's state durable, then creates a folder. disk-fault.mjs simulates a power failure at that call.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { diskStore } from '../../src/disk/index.ts'
import { beginCheckpoint, findCheckpoint, Journal } from '../../src/state/index.ts'

const [root, what] = process.argv.slice(2)
const store = await diskStore({ root, fileMode: 0o600, dirMode: 0o700 }).own('0123456789ab')

const HEADER = {
  kind: 'header',
  version: 5,
  pipeline: 'acme',
  data_set_id: '0b5bd4f5-6a3c-4c0e-9d0e-6a1f1c2d3e4f',
  created_at: '2024-07-01T00:00:00.000Z',
  settings: {},
  schema: { include: [], columns: ['id'], extra_columns: [], secret_facts: null },
}
const query = (name) => ({ kind: 'query', name, value: name })

await beginCheckpoint(store, HEADER)
if (what !== 'checkpoint that has begun') {
  const log = await Journal.open(store, await findCheckpoint(store))
  await log.append([query('a')])
  await log.append([query('b'), query('c')])
  if (what === 'saved checkpoint') await log.close()
}
await mkdir(join(root, 'end'))
