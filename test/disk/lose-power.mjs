// Runs one operation of a store, then creates a folder. disk-fault.mjs simulates a power failure at that call.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { diskStore } from '../../src/disk/index.ts'

const [root, what] = process.argv.slice(2)
const store = diskStore({ root, fileMode: 0o600, dirMode: 0o700 })
const own = await store.own('0123456789ab')

const work = {
  entry: () => own.create('_state/log/1', ['who', 'le']),
  'entries at the same time': () =>
    Promise.all([1, 2, 3, 4].map((number) => own.create(`_state/log/${number}`, ['whole']))),
  'files of new folders': () =>
    Promise.all([1, 2, 3, 4].map((number) => own.create(`credentials/${number % 2}/${number}`, ['whole']))),
  'file written anew': async () => {
    await own.replace('_manifest.json', ['half'])
    await own.replace('_manifest.json', ['whole'])
  },
  shard: async () => {
    await own.create('_state/sealed/0', ['whole'])
    await own.publish('_state/sealed/0', 'credentials/query=a/part-00000.parquet')
  },
  'second shard': async () => {
    await work.shard()
    const chunks = async function* () {
      for (const size of [1, (2 << 20) - 1]) yield Buffer.alloc(size, '#')
    }
    await own.build(chunks(), () => '_state/sealed/1')
    await own.publish('_state/sealed/1', 'credentials/query=a/part-00001.parquet')
  },
  'removal beside a creation': async () => {
    await own.create('credentials/a/1', ['half'])
    await Promise.all([own.remove('credentials/a/1'), own.create('credentials/a/2', ['whole'])])
  },
}
await work[what]()
await mkdir(join(root, 'end'))
