import { workerData } from 'node:worker_threads'
import type { ExpectedStat } from '../core/index.ts'
import { serve } from '../threads/index.ts'
import { mismatchesOf } from './stat-check.ts'

serve({
  stat: async (expected: string) => ({
    value: mismatchesOf(workerData as string, JSON.parse(expected) as ExpectedStat[]),
  }),
})
