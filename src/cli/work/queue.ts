import { openQueue, QUEUE_VARIABLE, type Queue } from '../../cluster/index.ts'
import { readSecret } from '../../config/index.ts'
import { systemClock } from '../../core/index.ts'
import type { Io } from '../command-line/io.ts'

/** The queue that SPILLWAY_QUEUE_URL names, for as long as `use` takes. @throws ExportError `config`, `credentials`, `target` */
export async function withQueue<T>({ env, log }: Io, use: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = await openQueue(await readSecret(QUEUE_VARIABLE, env), {
    clock: systemClock,
    password: await readSecret('SPILLWAY_QUEUE_PASSWORD', env),
    warn: (message) => log('warn', message, { event: 'wait', for: 'queue' }),
  })
  try {
    return await use(queue)
  } finally {
    await queue.close()
  }
}
