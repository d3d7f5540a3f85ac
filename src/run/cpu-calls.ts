import type { DecodePage, DecodePlan, ErrorKind, PageContext } from '../core/index.ts'
import type { EncodePlan, PlacedChunk, ShardCoder } from '../load/index.ts'

/** The work that costs processor time: answers to rows, rows to shard bytes. */
export type Cpu = {
  readonly decode: DecodePage
  readonly coder: ShardCoder
  close(): Promise<void>
}

/** What a worker thread is started with, asked, and answers. */
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
  | { readonly id: number; readonly ok: true; readonly value: unknown; readonly body?: ArrayBuffer }
  | {
      readonly id: number
      readonly ok: false
      readonly body?: never
      readonly error:
        | { readonly kind: ErrorKind; readonly what: string; readonly where: string; readonly next: string }
        | { readonly kind: null; readonly message: string }
    }
