/** Sets the clock of a process ahead by AHEAD_MS, for `node --import`. */
const now = Date.now.bind(Date)
const aheadMs = Number(process.env.AHEAD_MS ?? 0)

Date.now = () => now() + aheadMs
