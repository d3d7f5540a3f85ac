// Makes a part of a run's state durable, then creates a folder. disk-fault.mjs simulates a power failure at that call.
import { writeSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { diskStore } from '../../src/disk/index.ts'
import { openCheckpoint, openIdLog, rewriteCheckpoint } from '../../src/state/index.ts'

const [root, what] = process.argv.slice(2)
const store = diskStore({ root, fileMode: 0o600, dirMode: 0o700 })

const HEADER = {
  kind: 'header',
  version: 3,
  pipeline: 'acme',
  data_set_id: '0b5bd4f5-6a3c-4c0e-9d0e-6a1f1c2d3e4f',
  created_at: '2024-07-01T00:00:00.000Z',
  settings: {},
}
const begin = () => openCheckpoint(store, HEADER, () => {})
const query = (name) => ({ kind: 'query', name, value: name })

async function appendIds(pages, rowsOfPage) {
  const log = await openIdLog(store, 0, null)
  let mark = null
  for (let page = 0; page < pages; page++) {
    const rows = Int32Array.from({ length: rowsOfPage }, (_, row) => 10 * page + row)
    mark = (await log.append({ rows, refused: new Int32Array(0) })) ?? mark
  }
  await log.close()
  writeSync(1, JSON.stringify(mark))
}

const work = {
  'checkpoint that has begun': begin,
  'committed entry': async () => {
    const checkpoint = await begin()
    await checkpoint.append([query('a')])
    await checkpoint.append([query('b'), query('c')])
    await checkpoint.close()
  },
  'compacted checkpoint': async () => {
    const checkpoint = await begin()
    for (const name of ['a', 'b', 'c']) await checkpoint.append([query(name)])
    await checkpoint.close()
    await rewriteCheckpoint(store, checkpoint.state)
  },
  'page of ids': () => appendIds(2, 5),
  // Enough ids to begin the other of the two files.
  'page of ids in the other file': () => appendIds(4, 100_000),
}
await work[what]()
await mkdir(join(root, 'end'))
