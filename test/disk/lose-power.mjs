// Runs one operation of a store, then creates a folder. disk-fault.mjs simulates a power failure at that call.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { diskStore } from '../../src/disk/index.ts'
import { appendQuarantine } from '../../src/load/index.ts'

const [root, what] = process.argv.slice(2)
const store = diskStore({ root, fileMode: 0o600, dirMode: 0o700 })

async function writeLog(path) {
  const log = await store.openLog(path, 0)
  await log.append([Buffer.from('whole')])
  await log.fsync()
  await log.close()
}

const work = {
  log: () => writeLog('_state/open/0.log'),
  'second log': async () => {
    await writeLog('_state/open/0.log')
    await writeLog('_state/open/1.log')
  },
  'whole file': () => store.writeWhole('_manifest.json', ['who', 'le']),
  'file written anew': async () => {
    await store.writeWhole('_manifest.json', ['half'])
    await store.writeWhole('_manifest.json', ['whole'])
  },
  shard: async () => {
    await writeLog('_state/open/0.part')
    await store.publish('_state/open/0.part', 'credentials/query=a/part-00000.parquet')
  },
  'second shard': async () => {
    await work.shard()
    await writeLog('_state/open/1.part')
    await store.publish('_state/open/1.part', 'credentials/query=a/part-00001.parquet')
  },
  quarantine: () => appendQuarantine(store, 'domain.a.com/all', 0, [{ id: 1 }]),
  removal: async () => {
    await store.writeWhole('_SUCCESS', [''])
    await store.remove('_SUCCESS')
  },
}
await work[what]()
await mkdir(join(root, 'end'))
