import { workerData } from 'node:worker_threads'
import type { Look } from '../core/index.ts'
import { serve } from '../threads/index.ts'
import { look } from './look.ts'

serve({
  look: async (looks: string) => ({ value: look(workerData as string, JSON.parse(looks) as Look[]) }),
})
