import { join } from 'node:path'
import { splitStore } from '../../src/bucket/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { storeAt, temporaryFolder } from '../disk/temporary-store.ts'
import { S3_SERVERS } from '../s3/servers.ts'
import { cases } from '../support/thorough.ts'
import { storeConformance } from './conformance.ts'
import { s3World } from './s3-world.ts'

let folder = ''
const makeInBucket = s3World(S3_SERVERS.find(({ isDouble }) => isDouble)!, (location) => {
  return splitStore(s3Driver(location), storeAt(folder), { folder, fresh: false })
})

storeConformance(
  'a store with its state on a disk',
  async () => {
    const { open, names } = await makeInBucket()
    const root = join(temporaryFolder(), 'state')
    const openHere = () => {
      folder = root
      return open()
    }
    return { open: openHere, names }
  },
  { sequences: cases(25, 2) },
)
