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
  let size = 0
  return {
    async append(chunks) {
      for (const chunk of chunks) {
        await writeAll(file, chunk).catch(noRoom)
        size += chunk.byteLength
      }
    },
    create: (path) => make(path, readAll(file, size)),
    discard: () => file.close(),
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `spillway-${randomBytes(12).toString('hex')}`)
  const file = await open(path, 'wx+', 0o600)
  await rm(path, { force: true })
  return file
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    done += (await file.write(bytes, done, bytes.byteLength - done)).bytesWritten
  }
}

async function* readAll(file: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < size; ) {
    const block = new Uint8Array(Math.min(PART_BYTES, size - start))
    const { bytesRead } = await file.read(block, 0, block.byteLength, start)
    if (bytesRead === 0) noRoom(new Error('a temporary file became shorter'))
    start += bytesRead
    yield block.subarray(0, bytesRead)
  }
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
