import { describe } from 'vitest'
import { bucketStore } from '../../src/bucket/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { SECOND_SERVER } from '../s3/second-server.ts'
import { S3_SERVERS } from '../s3/servers.ts'
import { cases } from '../support/thorough.ts'
import { bucketsOfOthers } from './conformance/buckets-of-others.ts'
import { storeConformance } from './conformance.ts'
import { s3World } from './s3-world.ts'

describe.each([...S3_SERVERS, SECOND_SERVER])('$name', (kind) => {
  describe.skipIf(!kind.isThere)('holds', () => {
    const makeWorld = s3World(kind, (location) => bucketStore(s3Driver(location)))
    storeConformance('a store in a bucket', makeWorld, {
      sequences: kind.isDouble ? cases(25, 3) : cases(5, 1),
    })
    bucketsOfOthers(makeWorld)
  })
})
