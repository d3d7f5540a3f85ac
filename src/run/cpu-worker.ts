import { parentPort, workerData } from 'node:worker_threads'
import { isExportError } from '../core/index.ts'
import type { CpuAnswer, CpuCall, CpuPlans } from './cpu-calls.ts'
import { inlineCpu } from './cpu-inline.ts'

if (parentPort !== null) serve(parentPort, workerData as CpuPlans)

function serve(port: NonNullable<typeof parentPort>, { decodePlan, encodePlan }: CpuPlans): void {
  const cpu = inlineCpu(decodePlan, encodePlan)

  const answer = async ({ id, work }: CpuCall): Promise<void> => {
    const reply = (value: unknown, transfer: ArrayBuffer[] = []): void =>
      port.postMessage({ id, ok: true, value } satisfies CpuAnswer, transfer)
    switch (work.kind) {
      case 'decode': {
        const page = await cpu.decode(work.body, work.context)
        // The buffer of the answer goes back as well: it is good for another.
        const body = work.body.buffer
        const transfer = page.frame === null ? [body] : [body, page.frame.buffer]
        return port.postMessage({ id, ok: true, value: page, body } satisfies CpuAnswer, transfer)
      }
      case 'header':
        return reply(await cpu.coder.header())
      case 'encode': {
        const chunk = await cpu.coder.encode(work.frames)
        return reply(chunk, [chunk.bytes.buffer])
      }
      case 'footer':
        return reply(await cpu.coder.footer(work.chunks))
    }
  }

  port.on('message', (call: CpuCall) => {
    answer(call).catch((error: unknown) => {
      port.postMessage({ id: call.id, ok: false, error: described(error) } satisfies CpuAnswer)
    })
  })
}

function described(error: unknown): Extract<CpuAnswer, { ok: false }>['error'] {
  if (isExportError(error)) {
    const { kind, what, where, next } = error
    return { kind, what, where, next }
  }
  // Only the kind of error: the messages of parsers quote what they parse.
  return {
    kind: null,
    message: `unexpected ${error instanceof Error ? error.name : typeof error} in the worker`,
  }
}
