import { randomBytes } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExportError, type TemporaryFile } from '../core/index.ts'
import { type Chunks, PART_BYTES } from './driver.ts'

/** A temporary file of this machine that has no name. @param make creates an object */
export async function unnamedFile(
  make: (path: string, chunks: Chunks) => Promise<boolean>,
): Promise<TemporaryFile> {
  const file = await openUnnamed().catch(noRoom)
  return {
    async append(chunks) {
      for (const chunk of chunks) await file.appendFile(chunk).catch(noRoom)
    },
    create: (path) =>
      make(path, file.createReadStream({ start: 0, autoClose: false, highWaterMark: PART_BYTES })),
    discard: () => file.close(),
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `spillway-${randomBytes(12).toString('hex')}`)
  const file = await open(path, 'wx+', 0o600)
  await rm(path, { force: true })
  return file
}

function noRoom(cause: unknown): never {
  throw new ExportError({
    kind: 'storage',
    what: 'A temporary file cannot be written',
    where: tmpdir(),
    next: 'Set TMPDIR to a folder that can be written to and has room, then run again.',
    cause,
  })
}
