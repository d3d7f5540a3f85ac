import { createHash, type Hash } from 'node:crypto'
import {
  createEncoder,
  decodeRecordBatches,
  type EncodePlan,
  type ShardEncoder,
  type WrittenRowGroup,
} from '../../load/index.ts'
import { owned, serve } from '../../threads/index.ts'

/** The encoders of the runs that share the thread, by number. */
const encoders = new Map<number, ShardEncoder>()
const hashes = new Map<number, Map<number, Hash>>()

serve({
  async open(run: number, plan: EncodePlan) {
    encoders.set(run, createEncoder(plan))
    hashes.set(run, new Map())
    return { value: null }
  },
  header: async (run: number) => ({ value: encoders.get(run)!.header() }),
  async encode(run: number, recordBatches: readonly Uint8Array[]) {
    const value = await encoders.get(run)!.encode(decodeRecordBatches(recordBatches))
    return { value, transfer: owned(value.bytes.buffer) }
  },
  footer: async (run: number, rowGroups: readonly WrittenRowGroup[]) => ({
    value: await encoders.get(run)!.footer(rowGroups),
  }),
  async hash(run: number, hash: number, segments: readonly Uint8Array[]) {
    hashOf(run, hash, segments)
    return { value: null }
  },
  async digest(run: number, hash: number, segments: readonly Uint8Array[]) {
    const value = hashOf(run, hash, segments).digest('hex')
    hashes.get(run)!.delete(hash)
    return { value }
  },
  async close(run: number) {
    hashes.delete(run)
    return { value: encoders.delete(run) }
  },
})

/** The hash of that number; it is created with its first bytes. */
function hashOf(run: number, number: number, segments: readonly Uint8Array[]): Hash {
  const ofRun = hashes.get(run)!
  const hash = ofRun.get(number) ?? createHash('sha256')
  ofRun.set(number, hash)
  for (const bytes of segments) hash.update(bytes)
  return hash
}
