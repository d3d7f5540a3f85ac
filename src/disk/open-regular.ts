import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/**
 * Opens a regular file and nothing else. A pipe that stands in its place is not waited for: that would take a thread
 * of the process for good, and no signal could end it.
 * @throws Error with the code `ENOTREG`, which no system has
 */
export async function openRegular(path: string, flags: number, mode?: number): Promise<FileHandle> {
  const handle = await open(path, flags | (constants.O_NONBLOCK ?? 0), mode)
  try {
    const found = await handle.stat()
    if (found.isDirectory()) throw coded('EISDIR')
    if (!found.isFile()) throw coded('ENOTREG')
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

function coded(code: string): Error {
  return Object.assign(new Error('no regular file'), { code })
}
