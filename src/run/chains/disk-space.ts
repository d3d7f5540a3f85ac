import { ExportError, type Pipeline, type Store } from '../../core/index.ts'

// Masked rows take 80 to 300 bytes in the log of an open shard; texts may be long.
const BYTES_A_ROW = 1024
// For the lines of the checkpoint, the manifest and what else is small.
const BYTES_BESIDES = 1 << 20

/** Bytes that the pages in flight may need on the disk. */
function spaceNeeded({ extract }: Pipeline): number {
  return extract.concurrency * extract.pageSize * BYTES_A_ROW + BYTES_BESIDES
}

/**
 * Whether what is requested next could be kept: a page that finds no room on the disk was paid for in vain.
 * @returns what is to be said when it could not; null when it could, or when nothing is known of the disk
 */
export async function lackOfDiskSpace(pipeline: Pipeline, store: Store): Promise<ExportError | null> {
  const free = await store.freeBytes()
  const needed = spaceNeeded(pipeline)
  if (free === null || free >= needed) return null
  return new ExportError(
    'storage',
    `The disk has room for ${megabytes(free)} more, and the pages in flight may need ${megabytes(needed)}`,
    pipeline.load.path,
    'Free some space and run again, which goes on from the last committed page; a smaller extract.concurrency or page_size needs less.',
  )
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
