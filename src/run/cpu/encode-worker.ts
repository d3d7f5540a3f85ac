import { decodeRecordBatch } from '../../core/index.ts'
import {
  createEncoder,
  type EncodePlan,
  encodeWithAggregates,
  type WrittenRowGroup,
} from '../../load/index.ts'
import { serve } from '../../threads/index.ts'
import { owned } from './owned.ts'

/** Of the runs that share the thread. */
const encoders = new Map<number, ReturnType<typeof createEncoder>>()

serve({
  async open(run: number, plan: EncodePlan) {
    encoders.set(run, createEncoder(plan))
    return { value: null }
  },
  header: async (run: number) => ({ value: encoders.get(run)!.header() }),
  async encode(run: number, recordBatches: readonly Uint8Array[]) {
    const value = await encodeWithAggregates(encoders.get(run)!, recordBatches.map(decodeRecordBatch))
    return { value, transfer: owned(value.bytes.buffer) }
  },
  footer: async (run: number, rowGroups: readonly WrittenRowGroup[]) => ({
    value: await encoders.get(run)!.footer(rowGroups),
  }),
  async close(run: number) {
    return { value: encoders.delete(run) }
  },
})
