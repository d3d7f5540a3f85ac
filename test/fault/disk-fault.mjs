/**
 * Injects disk faults from outside, for `node --import`: counts the calls with which a process changes files below one
 * folder, and injects a fault at the n-th. The product has no hooks for it.
 *
 *   DISK_FAULT_ROOT   the folder
 *   DISK_FAULT        `count`     only list the calls: at exit, the file DISK_FAULT_COUNT gets a line for each
 *                     `kill:n`    SIGKILL instead of call n
 *                     `torn:n`    if call n is a write, half of it, then SIGKILL
 *                     `stop:n`    SIGSTOP before call n, which is made when the process continues
 *                     `power:n`   the power fails instead of call n: what is not fsynced by then is lost
 *                     `holes:n`   the same, but of each file only the first sector that is not fsynced is lost: disks
 *                                 write in any order
 *                     `full:n`    from call n on, the disk is full: each call that needs space fails with ENOSPC
 *                     `eio:n`     call n fails with EIO
 *                     `stuck:n`   the same, and each later call that is listed the same
 *                     `dead:n`    from call n on, every call fails with EIO: to a process of tests, like a kill
 *                     `room:n`    the disk has room for n bytes in all, and statfs reports that
 *
 *                     Instead of a number n, a call as it is listed: the first such one, however many come before it;
 *                     with `+m` at its end, the m-th call after that. `open.#` is any temporary file of an owner
 *
 *   DISK_FAULT_ONE_THREAD   if set, the process sees a single processor and starts no threads
 *   DISK_FAULT_HERE         if set, the process is that of a test, which removes what is installed here: see
 *                           disk-fault-here.ts
 *
 * A call that changes something in the folder and is not counted ends the process: see disk-guard.mjs. A test's process
 * is not guarded.
 */
import all from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { asCounted, guardDisk } from './disk-guard.mjs'

// The original functions, for calls without faults.
const { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = all
const { closeSync, fdatasync, fsync, openSync, unlinkSync, writeSync, writevSync, statfsSync } = all

const root = resolve(process.env.DISK_FAULT_ROOT ?? '/nowhere')
let [mode, at] = (process.env.DISK_FAULT ?? 'count').split(':')
let target = Number(at)
const [named = '', later = '0'] = (at ?? '').split('+')
const isHere = process.env.DISK_FAULT_HERE !== undefined
/** The calls that were counted. */
export const lines = []
let calls = 0
/** What fails under `stuck:n` from now on. */
let stuck = null

/** Paths of the descriptors that are open below the root, as they were when opened. */
const files = new Map()
/** Later names of renamed files. */
const renamed = new Map()
/** Durable content of each file. */
const synced = new Map()
/** Changes of folders that are not fsynced yet, oldest first, and how to undo them. */
let unsynced = []

const COUNTED = ['rename', 'link', 'unlink', 'mkdir', 'rm', 'rmdir']

/** Functions of `node:fs` itself that are counted. */
export const COUNTED_HERE = ['openSync', 'writevSync', 'renameSync', 'unlinkSync', 'fdatasync', 'fsync']

if (isMainThread) {
  install()
  installHere()
  if (mode === 'count' && !isHere)
    process.on('exit', () => writeFileSync(process.env.DISK_FAULT_COUNT ?? '/dev/null', lines.join('\n')))
}
if (process.env.DISK_FAULT_ONE_THREAD) os.availableParallelism = () => 1
// Threads only read, so their calls are not counted.
if (!isHere) guardDisk(root, new Set(isMainThread ? COUNTED : []), new Set(isMainThread ? COUNTED_HERE : []))
syncBuiltinESMExports()

function install() {
  const { rename, link, unlink, mkdir, rm, rmdir } = fs

  fs.rename = (from, to) =>
    inject(covers(from), 'rename', to, async () => {
      const before = contentOf(to)
      await rename(from, to)
      moved(from, to, before)
    })
  fs.link = (from, to) =>
    inject(covers(to), 'link', to, async () => {
      await link(from, to)
      synced.set(to, synced.get(from) ?? contentOf(to))
      changed(to, () => rmSync(to, { force: true }))
    })
  fs.unlink = (path) =>
    inject(covers(path), 'unlink', path, async () => {
      const before = contentOf(path)
      await unlink(path)
      unlinked(path, before)
    })
  fs.mkdir = (path, options) =>
    inject(covers(path), 'mkdir', path, async () => {
      const result = await mkdir(path, options)
      const first = options?.recursive ? result : path
      for (let made = path; first !== undefined && made.length >= first.length; made = dirname(made)) {
        const folder = made
        changed(folder, () => rmSync(folder, { recursive: true, force: true }), true)
      }
      return result
    })
  fs.rm = (path, options) =>
    inject(covers(path), 'rm', path, async () => {
      const before = contentOf(path)
      await asCounted(() => rm(path, options))
      if (before !== null) changed(path, () => writeFileSync(path, before))
    })
  fs.rmdir = (path) =>
    inject(covers(path), 'rmdir', path, async () => {
      await rmdir(path)
      changed(path, () => mkdirSync(path, { recursive: true }))
    })
}

/** The same for the calls that are synchronous, or have a callback. */
function installHere() {
  all.openSync = (path, flags, ...rest) => {
    // With flags as a string, creations are left to the guard.
    const creates = (flags & 0o100) !== 0 && covers(path)
    const isNew = creates && !existsSync(path)
    return injectHere(creates, isNew ? 'create' : 'open', path, () => {
      const file = openSync(path, flags, ...rest)
      opened(file, path, flags, isNew)
      return file
    })
  }
  all.closeSync = (file) => {
    files.delete(file)
    closeSync(file)
  }
  const pathOfFile = (file) => renamed.get(files.get(file)) ?? files.get(file)
  all.writevSync = (file, chunks) => {
    const path = pathOfFile(file)
    const length = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
    if (mode === 'room' && path !== undefined && usedBytes(root) + length > target) throw noSpace()
    const whole = () => writevSync(file, chunks)
    const half = () => writeSync(file, Buffer.concat(chunks), 0, Math.floor(length / 2))
    return injectHere(path !== undefined, 'write', path, whole, half)
  }
  all.renameSync = (from, to) =>
    injectHere(covers(from), 'rename', to, () => {
      const before = contentOf(to)
      renameSync(from, to)
      moved(from, to, before)
    })
  all.unlinkSync = (path) => {
    // The first `rmSync` of a process keeps this function, and calls it with buffers.
    if (!covers(path)) return unlinkSync(path)
    injectHere(true, 'unlink', path, () => {
      const before = contentOf(path)
      unlinkSync(path)
      unlinked(path, before)
    })
  }
  const withSync = (name, original) => (file, callback) => {
    const path = pathOfFile(file)
    if (path === undefined) return original(file, callback)
    inject(true, name, path, async () => {
      const done = syncing(path)
      await new Promise((resolve, reject) =>
        original(file, (error) => (error === null ? resolve() : reject(error))),
      )
      done()
    }).then(() => callback(null), callback)
  }
  all.fdatasync = withSync('datasync', fdatasync)
  all.fsync = withSync('sync', fsync)
  all.statfsSync = (path, ...rest) => {
    if (mode !== 'room' || !covers(path)) return statfsSync(path, ...rest)
    return { bsize: 1, blocks: target, bavail: Math.max(0, target - usedBytes(root)) }
  }
}

/** After a file was opened. */
function opened(file, path, flags, isNew) {
  // An earlier file with this name was another file.
  if (isNew) renamed.delete(path)
  // Heartbeats depend on the clock, so they would shift the numbers of all other calls.
  const isCounted = covers(path) && !/_state[/\\]lock\.\w+$/.test(path)
  if (isCounted) files.set(file, path)
  if (isCounted && (flags & 0o3) !== 0 && !synced.has(path)) keep(path)
  if (isNew) changed(path, () => rmSync(path, { force: true }))
}

/** After a rename. @param before what the new name held */
function moved(from, to, before) {
  renamed.set(from, to)
  const content = synced.get(from) ?? contentOf(to)
  if (content !== null) synced.set(to, content)
  synced.delete(from)
  // Files move with their folder.
  for (const [path, known] of [...synced]) {
    if (!path.startsWith(from + sep)) continue
    synced.set(to + path.slice(from.length), known)
    synced.delete(path)
  }
  const isSourceSynced = () => !unsynced.some((change) => change.sourceOf === to)
  changed(to, () => {
    // Where the old name's folder was fsynced alone, the file has neither name.
    if (isSourceSynced()) rmSync(to, { recursive: true, force: true })
    else renameSync(to, from)
    if (before !== null) writeFileSync(to, before)
  })
  unsynced.push({ folder: dirname(from), undo: () => {}, isFolder: false, sourceOf: to })
}

function unlinked(path, before) {
  if (before !== null) changed(path, () => writeFileSync(path, before))
}

/** Before an fsync, which does not cover later writes. @returns what to do after it */
function syncing(path) {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  const content = isFolder ? null : contentOf(path)
  return () => {
    if (isFolder) unsynced = unsynced.filter(({ folder }) => !isDurable(folder, path))
    else if (content !== null) synced.set(path, content)
  }
}

/** The disk works again. */
export function end() {
  stuck = null
  mode = 'none'
}

const NEEDS_SPACE = new Set(['create', 'mkdir', 'write', 'rename', 'link'])

async function inject(counts, name, path, work) {
  if (counts) isTorn(name, path, false)
  return work()
}

function injectHere(counts, name, path, work, half = null) {
  if (!counts || !isTorn(name, path, half !== null)) return work()
  half()
  return die()
}

/** Counts a call, and injects the fault if its turn has come. @returns whether the process ends after half of it */
function isTorn(name, path, hasHalf) {
  calls++
  const line = `${name} ${relative(root, path)}`
  if (mode === 'count') lines.push(line)
  if ((line === named || line.replace(/open\.\w+\/\d+/, 'open.#') === named) && Number.isNaN(target))
    target = calls + Number(later)
  if (mode === 'full' && calls >= target && NEEDS_SPACE.has(name)) throw noSpace()
  if (mode === 'dead' && calls > target) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
  if (mode === 'stuck' && calls === target) stuck = line
  if (calls !== target && line !== stuck) return false
  if (mode === 'eio' || mode === 'stuck' || mode === 'dead')
    throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
  if (mode === 'kill') die()
  if (mode === 'stop') process.kill(process.pid, 'SIGSTOP')
  if (mode === 'power') asCounted(loseUnsynced)
  if (mode === 'holes') asCounted(loseFirstSectors)
  return mode === 'torn' && hasHalf
}

/** Files get their content of the last fsync. Changes of a folder that was not fsynced are undone. */
function loseUnsynced() {
  mode = 'none'
  for (const [path, content] of synced) if (existsSync(path)) writeFileSync(path, content)
  // Undo files before folders: concurrent calls may have moved a file into a folder that is new.
  const changes = unsynced.toReversed()
  for (const { undo, isFolder } of changes) if (!isFolder) undo()
  for (const { undo, isFolder } of changes) if (isFolder) undo()
  die()
}

const SECTOR = 512

function loseFirstSectors() {
  mode = 'none'
  for (const [path, before] of synced) {
    const found = contentOf(path)
    if (found === null) continue
    for (let start = 0; start < found.length; start += SECTOR) {
      const old = before.subarray(start, start + SECTOR)
      if (found.subarray(start, start + SECTOR).equals(old)) continue
      found.fill(0, start, Math.min(start + SECTOR, found.length))
      old.copy(found, start)
      break
    }
    writeFileSync(path, found)
  }
  die()
}

function noSpace() {
  return Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
}

function usedBytes(folder) {
  let used = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) used += statSync(path, { throwIfNoEntry: false })?.size ?? 0
  }
  return used
}

function keep(path) {
  synced.set(path, contentOf(path) ?? Buffer.alloc(0))
}

function changed(path, undo, isFolder = false) {
  // The fsync of the parent of the root is not counted here.
  if (path === root || !covers(path)) return
  unsynced.push({ folder: dirname(path), undo, isFolder })
}

/** Whether an fsync of `synced` covers the names in a folder: it is the same, or it held the folder, which is gone. */
function isDurable(folder, synced) {
  return folder === synced || (folder.startsWith(synced + sep) && !existsSync(folder))
}

function contentOf(path) {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path) : null
}

function covers(path) {
  return typeof path === 'string' && (path === root || path.startsWith(root + sep))
}

/** Never returns. */
function die() {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}
