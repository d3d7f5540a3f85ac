/**
 * Ends a process with a message at any call of node:fs that changes something below one folder and is not counted,
 * because no fault can be injected there. Every call that is not known to be read-only counts as a change, also new
 * calls of Node.js.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import all from 'node:fs'
import promises from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const { constants, readlinkSync, writeSync } = all
const exit = process.reallyExit.bind(process)

const READS =
  /^(?:access|exists|f?stat|lstat|statfs|read|readv|readFile|readLines|readlink|readdir|opendir|realpath|close|watch|watchFile|unwatchFile|createReadStream|openAsBlob|readableWebStream|getAsyncId|constructor|fd)(?:Sync)?$/
const OPENS = /^(?:open|openSync)$/
// Classes, and properties that are not functions.
const NO_CALLS = /^(?:[A-Z_]|promises$|constants$)/
const CHANGING_FLAGS =
  constants.O_WRONLY | constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND

const within = new AsyncLocalStorage()

/** Allows the calls that a counted call makes itself: `rm`, for example, unlinks. */
export function asCounted(work) {
  return within.run(true, work)
}

/**
 * @param root the folder
 * @param counted functions of node:fs/promises that are counted, and therefore allowed. Handles are opened for reading
 * alone
 * @param countedHere the same of node:fs
 */
export function guardDisk(root, counted, countedHere) {
  for (const [label, object] of [
    ['fs', all],
    ['fs.promises', promises],
  ]) {
    for (const name of Object.getOwnPropertyNames(object)) {
      if (NO_CALLS.test(name) || READS.test(name)) continue
      const isCounted = (object === all ? countedHere : counted).has(name)
      // A creation is counted if its flags are a number.
      if (isCounted && name !== 'openSync') continue
      const original = object[name]
      if (typeof original !== 'function') continue
      object[name] = function (...args) {
        if (within.getStore() === true) return original.apply(this, args)
        const path = args
          .slice(0, 2)
          .map(pathOf)
          .find((each) => each !== null && isBelow(root, each))
        const isAllowed =
          OPENS.test(name) && (!changes(args[1]) || (isCounted && typeof args[1] === 'number'))
        if (path !== undefined && !isAllowed) {
          writeSync(2, `disk-fault: ${label}.${name} changes ${path} and is not counted\n`)
          exit(99)
        }
        return original.apply(this, args)
      }
    }
  }
}

function changes(flags = 'r') {
  return typeof flags === 'number' ? (flags & CHANGING_FLAGS) !== 0 : /[wa+]/.test(String(flags))
}

function pathOf(argument) {
  if (typeof argument === 'number') return pathOfFd(argument)
  if (argument instanceof URL) return fileURLToPath(argument)
  if (typeof argument === 'string' || Buffer.isBuffer(argument)) return resolve(String(argument))
  return null
}

/** null on systems other than Linux. */
function pathOfFd(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return null
  }
}

function isBelow(root, path) {
  return path === root || path.startsWith(root + sep)
}
