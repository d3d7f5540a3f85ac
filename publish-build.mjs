import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** The files of a build that are not in chunks/. The entry points refer to chunks, and are replaced last. */
const ENTRIES = ['index.js', 'cli/main.js']
const KEPT_MS = 24 * 60 * 60 * 1000

/**
 * Moves a build into the folder that commands start from, without a moment in which one cannot start. A running command
 * goes on: it imports chunks and starts threads as it needs them, so the chunks of a build have a folder of their own,
 * which stays. The first build a day after its replacement removes it.
 * @param next the new build, with its chunks in chunks/. Its folder is removed
 * @param alone removes the chunks of all earlier builds
 */
export function publishBuild(next, dist, { alone = false } = {}) {
  const chunks = `chunks-${digestOf(join(next, 'chunks'))}`
  mkdirSync(join(dist, 'cli'), { recursive: true })
  if (!existsSync(join(dist, chunks))) renameSync(join(next, 'chunks'), join(dist, chunks))
  const former = formerChunks(dist)
  for (const entry of ENTRIES) {
    const path = join(next, entry)
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('/chunks/', `/${chunks}/`))
  }
  const others = readdirSync(next).filter((name) => !['chunks', 'cli', ...ENTRIES].includes(name))
  for (const name of [...others, ...ENTRIES]) renameSync(join(next, name), join(dist, name))
  rmSync(next, { recursive: true })

  const now = Date.now()
  const built = [...others, 'index.js', 'cli', chunks]
  for (const name of readdirSync(dist).filter((each) => !built.includes(each))) {
    const path = join(dist, name)
    // The time of a folder of chunks is when it was replaced.
    if (name === former) utimesSync(path, now / 1000, now / 1000)
    const isKept = name.startsWith('chunks') && !alone && statSync(path).mtimeMs > now - KEPT_MS
    if (!isKept) rmSync(path, { recursive: true })
  }
}

/** The name of the folder of chunks that commands start from until now. */
function formerChunks(dist) {
  const entry = join(dist, ENTRIES[1])
  return existsSync(entry) ? /\/(chunks[^/"]*)\//.exec(readFileSync(entry, 'utf8'))?.[1] : undefined
}

function digestOf(folder) {
  const hash = createHash('sha256')
  for (const name of readdirSync(folder).sort())
    hash.update(`${name}\0`).update(readFileSync(join(folder, name)))
  return hash.digest('hex').slice(0, 12)
}
