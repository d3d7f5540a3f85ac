/**
 * Takes deadlines away from a process, for `node --import`: timers of the durations in NO_DEADLINE_MS never fire. What
 * ends such a process is not the clock, however busy the machine is.
 */
const { setTimeout } = globalThis
const durations = new Set((process.env.NO_DEADLINE_MS ?? '').split(',').map(Number))
const NEVER_MS = 2 ** 31 - 1

globalThis.setTimeout = (work, ms, ...rest) => setTimeout(work, durations.has(ms) ? NEVER_MS : ms, ...rest)
Object.defineProperties(globalThis.setTimeout, Object.getOwnPropertyDescriptors(setTimeout))
