import { parentPort, workerData } from 'node:worker_threads'
import { type DecodePlan, type ErrorKind, isExportError, type PageContext } from '../core/index.ts'
import type { EncodePlan, PlacedChunk } from '../load/index.ts'
import { inlineCpu } from './cpu-inline.ts'

/** The other end of the worker thread: what it is started with, asked, and answers. */
export type CpuPlans = { readonly decodePlan: DecodePlan; readonly encodePlan: EncodePlan }

export type CpuCall = {
  readonly id: number
  readonly work:
    | { readonly kind: 'decode'; readonly body: Uint8Array<ArrayBuffer>; readonly context: PageContext }
    | { readonly kind: 'header' }
    | { readonly kind: 'encode'; readonly frames: readonly Uint8Array<ArrayBuffer>[] }
    | { readonly kind: 'footer'; readonly chunks: readonly PlacedChunk[] }
}

export type CpuAnswer =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | {
      readonly id: number
      readonly ok: false
      readonly error:
        | { readonly kind: ErrorKind; readonly what: string; readonly where: string; readonly next: string }
        | { readonly kind: null; readonly message: string }
    }

if (parentPort !== null) serve(parentPort, workerData as CpuPlans)

function serve(port: NonNullable<typeof parentPort>, { decodePlan, encodePlan }: CpuPlans): void {
  const cpu = inlineCpu(decodePlan, encodePlan)

  const answer = async ({ id, work }: CpuCall): Promise<void> => {
    const reply = (value: unknown, transfer: (ArrayBuffer | undefined)[] = []): void =>
      port.postMessage(
        { id, ok: true, value } satisfies CpuAnswer,
        transfer.filter((buffer) => buffer !== undefined),
      )
    switch (work.kind) {
      case 'decode': {
        const page = await cpu.decode(work.body, work.context)
        return reply(page, [page.frame?.buffer])
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
